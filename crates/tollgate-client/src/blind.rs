//! A rate for servers that refuse requests and say nothing of their limits.

/// With each second without a refusal, the rate grows by this part.
const GROWTH: f64 = 0.05;

/// A refusal multiplies the rate by this.
const REFUSED: f64 = 0.5;

/// The rate is given up after so many seconds without a refusal.
const FORGOTTEN: f64 = 60.0;

/// The sends of about so many seconds are counted.
const COUNTED: f64 = 2.0;

/// The lowest rate: one request in two seconds. `Retry-After` can be longer.
const LEAST: f64 = 0.5;

/// A rate that is found by trying: a refusal halves it, and it grows while there is none. Before
/// the first refusal there is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blind {
    rate: Option<f64>,
    /// When the last request went.
    last: f64,
    /// The requests that went lately. Older ones count less.
    sends: f64,
    /// When the rate was last lowered.
    lowered: f64,
    /// Until when the rate has grown.
    grown: f64,
}

impl Blind {
    pub(super) const fn new() -> Self {
        Self {
            rate: None,
            last: 0.0,
            sends: 0.0,
            lowered: 0.0,
            grown: 0.0,
        }
    }

    /// Returns when the next request may go.
    pub(super) fn next_send(&self) -> f64 {
        self.rate.map_or(0.0, |rate| self.last + 1.0 / rate)
    }

    /// A request goes.
    pub(super) fn sent(&mut self, now: f64, waited: bool) {
        let next = self.next_send();
        let keep = (-(now - self.last).max(0.0) / COUNTED).exp();
        self.sends = self.sends * keep + 1.0;
        let spacing = self.rate.map_or(0.0, |rate| 1.0 / rate);
        self.last = if waited && now - next <= spacing {
            next
        } else {
            now
        };
        if now - self.lowered > FORGOTTEN {
            self.rate = None;
        }
        if let Some(rate) = &mut self.rate {
            if waited {
                *rate *= 1.0 + GROWTH * (now - self.grown).clamp(0.0, 1.0);
            }
            self.grown = now;
        }
    }

    /// A request that went at `sent` was refused. What went before the last refusal came does not
    /// count again.
    pub(super) fn refused(&mut self, sent: f64, now: f64) {
        if self.rate.is_some() && sent <= self.lowered {
            return;
        }
        let rate = self.rate.unwrap_or(self.sends / COUNTED);
        self.rate = Some((rate * REFUSED).max(LEAST));
        (self.lowered, self.grown) = (now, now);
    }
}
