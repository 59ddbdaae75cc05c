//! A rate for servers that refuse requests and say nothing of their limits.
//!
//! Only refusals, and the waits that they name, tell a client how fast it may send and how many
//! other clients there are. So it sends a little faster after each grant, and slower after a
//! refusal:
//!
//! - A refusal multiplies the rate by `e^-0.1`, a grant by `1 + g`. The rate stands still if `g /
//!   0.1` of the requests are refused: 0.4 % to 4 %.
//! - Clients that share a limit see the same waits. In the time of a wait, one with a smaller rate
//!   has fewer grants, and each of them counts more: `g` falls with the root of the requests that
//!   go in one wait. So rates become equal, but only after hundreds of requests.
//! - A rate that is too high by far is seen at once: what was granted since the last refusal is the
//!   most that there was.

/// The part of the rate that a refusal takes, as a logarithm.
const REFUSED: f64 = 0.1;

/// The same after several refusals in a row that had only few grants between them.
const REFUSED_OFTEN: f64 = 0.5;

/// Fewer grants than `FEW` between two refusals are few. From `ENOUGH` on they tell the rate.
const FEW: f64 = 5.0;
const ENOUGH: f64 = 10.0;

/// This number of refusals with few grants between them means that the rate is too high.
const SHORT_ROWS: u32 = 2;

/// The rate is at most this many times what was granted lately.
const MOST_OF_GRANTED: f64 = 2.0;

/// A grant adds this part to the rate if one request goes in each wait that is named.
const GROWTH: f64 = 0.00125;

/// A grant adds at most this many times as much, so that at most 4 % are refused. If less than one
/// request goes in 32 waits, the client gets too little, and the bound is higher.
const MOST_GROWTH: f64 = 2.3;
const TOO_FEW: f64 = 0.03;

/// While the rate is not known, a grant adds this part: before a refusal has told the rate, and
/// while requests do not wait for their turn.
const FAST_GROWTH: f64 = 0.02;

/// The rate is at least this part of what was granted over [`LONG`] named waits: in a sliding
/// window that is used up, nothing comes back for a while.
const LEAST_OF_MEAN: f64 = 0.5;
const LONG: f64 = 64.0;
const LONGEST: f64 = 600.0;

/// A time without requests counts as at most this number of seconds.
const IDLE: f64 = 1.0;

/// The bounds of the rate, in requests a second.
const LEAST_RATE: f64 = 1e-6;
const MOST_RATE: f64 = 1e6;

/// A rate that is found by trying. Before the first refusal there is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tried {
    rate: Option<f64>,
    /// The grants since the last refusal, and the time in which requests went or waited.
    granted: f64,
    busy: f64,
    last_sent: Option<f64>,
    /// When the last refusal came.
    refused: f64,
    /// Whether a refusal has told the rate.
    is_known: bool,
    /// How many refusals in a row had few grants before them.
    short_rows: u32,
    /// The mean of the logarithms of the waits that were named.
    wait: Option<f64>,
    /// The grants a second, over about [`LONG`] waits, and the time of the last one.
    mean: f64,
    last: f64,
}

impl Tried {
    pub(super) const fn new() -> Self {
        Self {
            rate: None,
            granted: 0.0,
            busy: 0.0,
            last_sent: None,
            refused: 0.0,
            is_known: false,
            short_rows: SHORT_ROWS,
            wait: None,
            mean: 0.0,
            last: 0.0,
        }
    }

    /// Returns the time from one request to the next, if there is a rate.
    pub(super) fn spacing(&self) -> Option<f64> {
        self.rate.map(f64::recip)
    }

    /// Returns the same once the rate is more than a first guess.
    pub(super) fn spread(&self) -> Option<f64> {
        self.spacing().filter(|_| self.is_known)
    }

    /// A request goes. If it did not wait for its turn, there may have been no request for long.
    pub(super) fn sent(&mut self, now: f64, waited: bool) {
        let gap = (now - self.last_sent.unwrap_or(now)).max(0.0);
        self.busy += if waited { gap } else { gap.min(IDLE) };
        self.last_sent = Some(now);
    }

    /// A request was not refused. `waited` says whether requests wait for their turn.
    pub(super) fn granted(&mut self, now: f64, waited: bool) {
        self.mean = self.mean_at(now) + 1.0 / self.memory();
        self.last = now;
        self.granted += 1.0;
        let Some(rate) = &mut self.rate else {
            return;
        };
        let in_a_wait = *rate * self.wait.unwrap_or(0.0).exp();
        let most = MOST_GROWTH * (TOO_FEW / in_a_wait).max(1.0);
        let slow = GROWTH * in_a_wait.sqrt().recip().min(most);
        let is_known = self.is_known && waited;
        let growth = if is_known { slow } else { FAST_GROWTH };
        *rate = (*rate * (1.0 + growth)).min(MOST_RATE);
    }

    /// A request that went at `sent` was refused.
    pub(super) fn refused(&mut self, sent: f64, now: f64) {
        let time = std::mem::take(&mut self.busy) + (now - self.last_sent.unwrap_or(now));
        let time = time.max(1.0 / MOST_RATE);
        let since = std::mem::replace(&mut self.refused, now);
        let granted = std::mem::take(&mut self.granted);
        // If it went before the last refusal came, or if that one was the last answer, it says
        // nothing new. The server may be shut.
        let says_more = sent >= since && granted > 0.0;
        let Some(rate) = self.rate.filter(|_| says_more) else {
            let first = granted.max(1.0) / time;
            self.rate = self.rate.or(Some(first.max(LEAST_RATE)));
            return;
        };
        if granted < FEW {
            self.short_rows = self.short_rows.saturating_add(1);
        } else if granted >= ENOUGH {
            self.short_rows = 0;
        }
        let lower = if granted >= ENOUGH {
            let most = MOST_OF_GRANTED * granted / time;
            most.min(rate * (-REFUSED).exp())
        } else if self.short_rows > SHORT_ROWS {
            rate * (-REFUSED_OFTEN).exp()
        } else {
            rate * (-REFUSED).exp()
        };
        let least = LEAST_OF_MEAN * self.mean_at(now);
        self.rate = Some(lower.max(least).max(LEAST_RATE));
        self.is_known = true;
    }

    /// Returns the grants a second, over about [`LONG`] waits.
    fn mean_at(&self, now: f64) -> f64 {
        self.mean * (-(now - self.last).max(0.0) / self.memory()).exp()
    }

    fn memory(&self) -> f64 {
        (LONG * self.wait.unwrap_or(0.0).exp()).min(LONGEST)
    }

    /// The server named a wait.
    pub(super) fn waits(&mut self, wait: f64) {
        let wait = wait.max(1.0 / MOST_RATE).ln();
        let mean = self.wait.unwrap_or(wait);
        self.wait = Some(mean + (wait - mean) * 0.1);
    }
}
