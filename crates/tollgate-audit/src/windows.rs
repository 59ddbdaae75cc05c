use core::num::NonZeroU64;
use core::time::Duration;

use tollgate::{Quota, Tick};

/// Windows of equal length that follow each other on the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Windows {
    period: NonZeroU64,
    /// The time from the beginning of a window to tick 0: less than a period.
    lead: u64,
}

impl Windows {
    /// Makes windows with the period of a validated quota, which is not zero and fits in 64 bits.
    pub(crate) const fn of(quota: Quota, lead: Duration) -> Self {
        let period = period_of(quota);
        Self {
            period,
            lead: (lead.as_nanos() % period.get() as u128) as u64,
        }
    }

    /// Makes windows of this many nanoseconds, from tick 0 on. With a period of 1 they are the
    /// ticks.
    pub(crate) const fn each(period: NonZeroU64) -> Self {
        Self { period, lead: 0 }
    }

    pub(crate) const fn period(&self) -> u128 {
        self.period.get() as u128
    }

    /// Returns the index of the window that a tick lies in.
    pub(crate) const fn index(&self, tick: Tick) -> u128 {
        (tick.as_nanos() as u128 + self.lead as u128) / self.period.get() as u128
    }

    /// Returns how many windows begin after `from` and not after `to`.
    pub(crate) const fn edges(&self, from: Tick, to: Tick) -> u128 {
        self.index(to).saturating_sub(self.index(from))
    }

    pub(crate) const fn later(self, offset: Duration) -> Self {
        let period = self.period.get() as u128;
        let lead = (self.lead as u128 + period - offset.as_nanos() % period) % period;
        Self {
            lead: lead as u64,
            ..self
        }
    }
}

pub(crate) const fn period_of(quota: Quota) -> NonZeroU64 {
    match NonZeroU64::new(quota.period().as_nanos() as u64) {
        Some(period) => period,
        None => NonZeroU64::MIN,
    }
}
