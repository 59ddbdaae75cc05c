//! The leaky bucket in rational numbers: what is in it runs out steadily. Time is counted in as many
//! parts of a nanosecond as the reduced quota has permits, so that a permit takes a whole number of them.

use crate::support::model::{Answers, Fraction, Model};

#[derive(Debug, Clone)]
pub(crate) struct Leaky {
    /// Parts of a nanosecond.
    parts: i128,
    /// A permit, in parts.
    permit: i128,
    burst: u64,
    /// How many go without delay beyond the first; all, if `None`.
    free: Option<u64>,
    /// When the bucket is empty again, in parts.
    empty_at: i128,
}

impl Leaky {
    /// `n` permits every `period`, which have no common divisor and are exact.
    pub(crate) fn new(n: u64, period: u64, burst: u64, free: Option<u64>) -> Self {
        Self {
            parts: n.into(),
            permit: period.into(),
            burst,
            free,
            empty_at: 0,
        }
    }

    /// What is in it, in parts.
    fn inside(&self, time: u128) -> i128 {
        (self.empty_at - time as i128 * self.parts).max(0)
    }

    fn empty_at(&self, now: u64) -> i128 {
        self.empty_at.max(self.clock(now) as i128 * self.parts)
    }
}

impl Model for Leaky {
    type Mark = i128;

    fn limit(&self) -> u64 {
        self.burst
    }

    fn period(&self) -> u64 {
        (self.permit / self.parts).max(1) as u64
    }

    /// The last tick at which a burst and a burst of debt fit the word.
    fn horizon(&self) -> u64 {
        let room = i128::from(u64::MAX - 1) - 2 * i128::from(self.burst) * self.permit;
        (room / self.parts) as u64
    }

    fn weight(&self, time: u128) -> Fraction {
        Fraction {
            num: self.inside(time) as u128,
            den: self.permit as u128,
        }
    }

    fn counted_at(&self, now: u64) -> u64 {
        now
    }

    fn take(&mut self, now: u64, n: u64) {
        if n > 0 {
            self.empty_at = self.empty_at(now) + i128::from(n) * self.permit;
        }
    }

    fn room(&self, now: u64) -> u64 {
        let room = i128::from(u64::MAX - 1) - self.empty_at(now);
        u64::try_from(room / self.permit).expect("within the word")
    }

    fn mark(&self, _now: u64) -> i128 {
        self.empty_at
    }

    /// Not what has run out already. A part of a permit counts whole.
    fn undo(&mut self, now: u64, n: u64, mark: i128) -> Option<u64> {
        let ahead = (mark - self.clock(now) as i128 * self.parts).max(0);
        Some(self.give_back(now, (i128::from(n) * self.permit).min(ahead)))
    }

    fn refund(&mut self, now: u64, n: u64) -> u64 {
        self.give_back(now, i128::from(n) * self.permit)
    }

    fn is_idle(&self, now: u64) -> bool {
        self.inside(self.clock(now)) == 0
    }

    fn reset(&mut self) {
        self.empty_at = 0;
    }

    fn edge(&self, now: u64) -> u64 {
        let inside = self.inside(self.clock(now));
        now.saturating_add((inside / self.parts) as u64)
    }

    /// `max(0, level after - 1 - free) / rate`, rounded up: until what is ahead of the free ones has
    /// run out.
    fn delay(&self, now: u64) -> u64 {
        let Some(free) = self.free else { return 0 };
        let ahead = (1 + i128::from(free)).saturating_mul(self.permit);
        let due = self.empty_at.saturating_sub(ahead).max(0) as u128;
        let due = due.div_ceil(self.parts as u128) as u64;
        due.saturating_sub(now)
    }
}

impl Leaky {
    fn give_back(&mut self, now: u64, parts: i128) -> u64 {
        let back = parts.min(self.inside(self.clock(now)));
        self.empty_at -= back;
        (back as u128).div_ceil(self.permit as u128) as u64
    }
}
