//! An algorithm by which it shows if words, parameters or marks of two quotas are mixed. `shuttle-tests` reads this
//! file, too.

use std::num::NonZeroU64;
use std::time::Duration;

use tollgate::{Algorithm, ConfigError, Denied, GiveBack, Granted, Quota, Requota, Settings, Tick};

/// At most so many, ever: the word counts those that were taken, in units of the quota's own. The unit is kept
/// twice, so that it shows if words of two quotas are mixed.
#[derive(Debug, Clone, Copy)]
pub struct Total {
    limit: u64,
    unit: u64,
    again: u64,
}

impl Total {
    /// Of this limit, and units that no other limit has.
    pub fn of(limit: u64) -> Self {
        Self {
            limit,
            unit: limit + 10,
            again: limit + 10,
        }
    }

    fn whole(&self) -> u64 {
        assert_eq!(self.unit, self.again, "two quotas are mixed");
        assert_eq!(self.unit, self.limit + 10, "two quotas are mixed");
        self.unit
    }
}

impl Algorithm for Total {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        let there = self.available(word, now);
        if n > there {
            return Err(Denied::never(n, self.limit));
        }
        let next = word + n * self.whole();
        let granted = Granted::new(n, now).with_mark(next);
        Ok((next, granted.with_room(there - n, NonZeroU64::MIN)))
    }

    fn available(&self, word: u64, _now: Tick) -> u64 {
        assert_eq!(word % self.whole(), 0, "a word of another quota");
        self.limit - word / self.whole()
    }

    fn is_idle(&self, word: u64, _now: Tick) -> bool {
        word == 0
    }
}

impl GiveBack for Total {
    fn undo(&self, word: u64, _now: Tick, granted: &Granted) -> (u64, u64) {
        assert_eq!(granted.mark() % self.whole(), 0, "a mark of another quota");
        (word - granted.n() * self.whole(), granted.n())
    }

    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        let n = n.min(self.limit - self.available(word, now));
        (word - n * self.whole(), n)
    }
}

impl Requota for Total {
    fn quota(&self) -> Quota {
        Quota::per(self.limit, Duration::from_secs(1))
    }

    fn with_quota(&self, quota: Quota) -> Result<Self, ConfigError> {
        match quota.permits() {
            0 => Err(ConfigError::ZeroPermits),
            limit => Ok(Self::of(limit)),
        }
    }

    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        let there = self.available(word, now).min(next.limit);
        (next.limit - there) * next.whole()
    }
}

impl Settings for Total {
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
