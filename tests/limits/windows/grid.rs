//! Windows side by side: where they begin, from the definition.

use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Windows {
    pub(crate) period: i128,
    /// Tick 0 is so long after a beginning, which may be many windows ago, or not yet.
    since: i128,
    /// How many windows can be told, from that of tick 0 on.
    told: i128,
}

impl Windows {
    /// Tick 0 is `origin` after the beginning of one of them, and all are `offset` later.
    pub(crate) fn new(period: u64, told: u128, origin: Duration, offset: Duration) -> Self {
        Self {
            period: period.into(),
            since: origin.as_nanos() as i128 - offset.as_nanos() as i128,
            told: told as i128,
        }
    }

    /// The number of the window that this moment is in.
    pub(crate) fn index(&self, time: u128) -> i128 {
        (time as i128 + self.since).div_euclid(self.period)
    }

    /// The number of the window that tick 0 is in.
    pub(crate) fn first(&self) -> i128 {
        self.index(0)
    }

    /// When a window begins; below 0 if before the clock did.
    pub(crate) fn start(&self, index: i128) -> i128 {
        index * self.period - self.since
    }

    /// The last tick of the last window that is told, or of the last one that begins before the end of
    /// time is near.
    pub(crate) fn horizon(&self) -> u64 {
        let last = self.start(self.first() + self.told) - 1;
        let most = i128::from(u64::MAX - 1) + self.start(self.first());
        u64::try_from(last.min(most)).expect("not before the clock")
    }

    /// The first tick of the next window.
    pub(crate) fn edge(&self, now: u64) -> u64 {
        u64::try_from(self.start(self.index(now.into()) + 1)).unwrap_or(u64::MAX)
    }
}
