use core::num::NonZeroU64;
use core::time::Duration;

use crate::clock::Tick;
use crate::quota::Quota;

/// Windows of equal length that follow each other on the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Windows {
    period: NonZeroU64,
    /// The time from the beginning of a window to tick 0: less than a period.
    lead: u64,
}

impl Windows {
    /// Makes windows with the period of a validated quota, which is not zero and fits in 64 bits.
    pub(super) const fn of(quota: Quota, lead: u64) -> Self {
        Self {
            period: period_of(quota),
            lead,
        }
    }

    /// Makes windows of this many nanoseconds, from tick 0 on. With a period of 1 they are the
    /// ticks.
    pub(super) const fn each(period: NonZeroU64) -> Self {
        Self { period, lead: 0 }
    }

    pub(super) const fn period(&self) -> u128 {
        self.period.get() as u128
    }

    /// Returns the index of the window that a tick lies in.
    pub(super) const fn index(&self, tick: Tick) -> u128 {
        (tick.as_nanos() as u128 + self.lead as u128) / self.period.get() as u128
    }

    /// Returns how many windows begin after `from` and not after `to`.
    pub(super) const fn edges(&self, from: Tick, to: Tick) -> u128 {
        self.index(to).saturating_sub(self.index(from))
    }

    pub(super) const fn later(self, offset: Duration) -> Self {
        let period = self.period.get() as u128;
        let lead = (self.lead as u128 + period - offset.as_nanos() % period) % period;
        Self {
            lead: lead as u64,
            ..self
        }
    }
}

pub(super) const fn period_of(quota: Quota) -> NonZeroU64 {
    match NonZeroU64::new(quota.period().as_nanos() as u64) {
        Some(period) => period,
        None => NonZeroU64::MIN,
    }
}
