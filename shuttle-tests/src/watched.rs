//! An algorithm whose answers show whether a word was used with another quota's parameters.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::time::Duration;

use tollgate::algorithm::{Algorithm, ChangeQuota, GiveBack, Settings};
use tollgate::error::QuotaError;
use tollgate::{Denied, Granted, Quota, Tick};

/// At most `limit` permits in total.
///
/// A table may run a step on a word of one quota with the parameters of another, as long as it
/// discards the result. So a mismatch does not panic here: the answer is [`WRONG`] instead, and so
/// are all later ones.
///
/// ```text
///  63        16 15                0
/// ┌────────────┬───────────────────┐
/// │ a number   │ permits * unit    │  the unit is the quota's own
/// └────────────┴───────────────────┘
/// ```
///
/// With `IDLES`, a key with no permits taken is idle. A change of the quota then makes it fresh
/// again, regardless of earlier grants. Without `IDLES`, permits never increase.
///
/// The number makes each word differ from all earlier ones. Without it, a thread could sleep until
/// the version bits wrap around, find an equal word, and decide by the old quota. That case is
/// outside what these models check.
#[derive(Debug, Clone, Copy)]
pub struct Watched<const IDLES: bool> {
    limit: u64,
    unit: u64,
    /// The unit once more, to detect parameters that mix two quotas.
    again: u64,
}

const NUMBER: u32 = 16;
const USED: u64 = (1 << NUMBER) - 1;

/// The number of permits in an answer that mixed two quotas.
pub const WRONG: u64 = u64::MAX;

impl<const IDLES: bool> Watched<IDLES> {
    /// Returns an algorithm with this limit and a unit that no other limit has.
    #[must_use]
    pub const fn of(limit: u64) -> Self {
        Self {
            limit,
            unit: limit + 10,
            again: limit + 10,
        }
    }

    /// Returns how many permits are taken, or `None` if the word or a parameter belongs to another
    /// quota.
    fn taken(&self, word: u64) -> Option<u64> {
        let is_whole = self.unit == self.limit + 10 && self.unit == self.again;
        let used = word & USED;
        let fits = is_whole && used.is_multiple_of(self.unit) && used / self.unit <= self.limit;
        fits.then(|| used / self.unit)
    }

    /// Returns a new word. Without `taken`, the word fits no quota.
    fn word(&self, taken: Option<u64>) -> u64 {
        thread_local! {
            static LAST: Cell<u64> = const { Cell::new(0) };
        }
        LAST.set(LAST.get() + 1);
        LAST.get() << NUMBER | taken.map_or(USED, |taken| taken * self.unit)
    }
}

impl<const IDLES: bool> Algorithm for Watched<IDLES> {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        let taken = match self.taken(word) {
            None => return Ok((self.word(None), Granted::new(WRONG, now))),
            Some(taken) if taken + n > self.limit => return Err(Denied::never(n, self.limit)),
            Some(taken) => taken + n,
        };
        let granted = Granted::new(n, now).with_remaining(self.limit - taken, NonZeroU64::MIN);
        let next = if n == 0 { word } else { self.word(Some(taken)) };
        Ok((next, granted))
    }

    fn available(&self, word: u64, _now: Tick) -> u64 {
        self.taken(word).map_or(WRONG, |taken| self.limit - taken)
    }

    fn is_idle(&self, word: u64, _now: Tick) -> bool {
        word == 0 || IDLES && self.taken(word) == Some(0)
    }
}

impl<const IDLES: bool> GiveBack for Watched<IDLES> {
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        self.refund(word, now, granted.n())
    }

    fn refund(&self, word: u64, _now: Tick, n: u64) -> (u64, u64) {
        match self.taken(word) {
            None => (self.word(None), WRONG),
            Some(taken) => {
                let back = n.min(taken);
                (self.word(Some(taken - back)), back)
            }
        }
    }
}

impl<const IDLES: bool> ChangeQuota for Watched<IDLES> {
    fn quota(&self) -> Quota {
        Quota::per(self.limit, Duration::from_secs(1))
    }

    fn with_quota(&self, quota: Quota) -> Result<Self, QuotaError> {
        match quota.permits() {
            0 => Err(QuotaError::ZeroPermits),
            limit => Ok(Self::of(limit)),
        }
    }

    fn carry_over(&self, word: u64, _now: Tick, next: &Self) -> u64 {
        let left = self.taken(word).map(|taken| self.limit - taken);
        next.word(left.map(|left| next.limit - left.min(next.limit)))
    }

    fn carry_used(&self, word: u64, now: Tick, next: &Self) -> u64 {
        self.carry_over(word, now, next)
    }
}

impl<const IDLES: bool> Settings for Watched<IDLES> {
    const WORDS: usize = 3;

    fn save(&self, write: &mut impl FnMut(u64)) {
        write(self.unit);
        write(self.limit);
        write(self.again);
    }

    fn restore(read: &mut impl FnMut() -> u64) -> Option<Self> {
        let (unit, limit, again) = (read(), read(), read());
        Some(Self { limit, unit, again })
    }
}
