//! A limit on the total number of permits. Its words reveal when they are used under another quota.

use std::num::NonZeroU64;
use std::time::Duration;

use tollgate::algorithm::{Algorithm, ChangeQuota, GiveBack, Settings};
use tollgate::error::QuotaError;
use tollgate::{Denied, Granted, Quota, Tick};

/// Panics on any word of another quota.
pub type Strict = Total<true>;
/// Answers [`MIXED`] for a word of another quota, for uses where such an answer is discarded.
pub type Lenient = Total<false>;

/// The number of available permits if quotas were mixed.
pub const MIXED: u64 = 1_000_000;
/// A word that belongs to no quota.
const NEVER: u64 = 1;

/// Grants `limit` permits in total. The word counts the taken ones, in units that depend on the
/// quota. The unit is stored twice, so that mixed words of two quotas show.
#[derive(Debug, Clone, Copy)]
pub struct Total<const STRICT: bool> {
    limit: u64,
    unit: u64,
    again: u64,
}

impl<const STRICT: bool> Total<STRICT> {
    /// Makes a limit whose units no other limit has.
    #[must_use]
    pub fn of(limit: u64) -> Self {
        Self {
            limit,
            unit: limit + 10,
            again: limit + 10,
        }
    }

    /// Returns whether the word belongs to another quota, or panics if `STRICT`.
    fn is_of_another(&self, word: u64) -> bool {
        let is_another = !word.is_multiple_of(self.whole());
        assert!(!(STRICT && is_another), "a word of another quota");
        is_another
    }

    fn whole(&self) -> u64 {
        assert_eq!(self.unit, self.again, "two quotas are mixed");
        assert_eq!(self.unit, self.limit + 10, "two quotas are mixed");
        self.unit
    }
}

impl<const STRICT: bool> Algorithm for Total<STRICT> {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        let there = self.available(word, now);
        if n > there {
            return Err(Denied::never(n, self.limit));
        }
        let next = word + n * self.whole();
        let granted = Granted::new(n, now).with_mark(next);
        Ok((next, granted.with_remaining(there - n, NonZeroU64::MIN)))
    }

    fn available(&self, word: u64, _now: Tick) -> u64 {
        match self.is_of_another(word) {
            true => MIXED,
            false => self.limit - word / self.whole(),
        }
    }

    fn is_idle(&self, word: u64, _now: Tick) -> bool {
        word == 0
    }
}

impl<const STRICT: bool> GiveBack for Total<STRICT> {
    fn undo(&self, word: u64, _now: Tick, granted: &Granted) -> (u64, u64) {
        assert_eq!(granted.mark() % self.whole(), 0, "a mark of another quota");
        match self.is_of_another(word) {
            true => (word, 0),
            false => (word - granted.n() * self.whole(), granted.n()),
        }
    }

    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        if self.is_of_another(word) {
            return (word, 0);
        }
        let n = n.min(self.limit - self.available(word, now));
        (word - n * self.whole(), n)
    }
}

impl<const STRICT: bool> ChangeQuota for Total<STRICT> {
    fn quota(&self) -> Quota {
        Quota::per(self.limit, Duration::from_secs(1))
    }

    fn with_quota(&self, quota: Quota) -> Result<Self, QuotaError> {
        match quota.permits() {
            0 => Err(QuotaError::ZeroPermits),
            limit => Ok(Self::of(limit)),
        }
    }

    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        if self.is_of_another(word) {
            return NEVER;
        }
        let there = self.available(word, now).min(next.limit);
        (next.limit - there) * next.whole()
    }

    fn carry_used(&self, word: u64, now: Tick, next: &Self) -> u64 {
        self.carry_over(word, now, next)
    }
}

impl<const STRICT: bool> Settings for Total<STRICT> {
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
