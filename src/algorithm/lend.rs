//! Limits that leave room for what is lent.

use core::time::Duration;

use super::split::each;
use super::{
    AnyAlgorithm, ChangeQuota, FixedWindow, Forecast, Gcra, GiveBack, Intervals, LeakyBucket,
    SlidingWindow, TokenBucket,
};
use crate::quota::ConfigError;

/// An algorithm that can set a part of its burst aside for permits that are held but not yet used,
/// as `Leases` needs it.
pub trait Lend: GiveBack + Forecast + Sized {
    /// The most that can be lent: as a rule all but one permit of what is had at once; 0 if nothing
    /// can.
    fn most_lent(&self) -> u64;

    /// The same, with as many permits fewer at once.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if that can't be represented.
    fn lending(&self, total: u64) -> Result<Self, ConfigError>;
}

/// Of one that is made from a quota with a burst.
fn with_less_burst<A: ChangeQuota>(algorithm: &A, total: u64) -> Result<A, ConfigError> {
    let quota = algorithm.quota();
    let burst = quota.burst_size().saturating_sub(total);
    let initial = quota.initial_permits().min(burst);
    algorithm.with_quota(quota.burst(burst).initial(initial))
}

impl Lend for TokenBucket {
    fn most_lent(&self) -> u64 {
        self.pace().burst() - 1
    }

    fn lending(&self, total: u64) -> Result<Self, ConfigError> {
        with_less_burst(self, total)
    }
}

impl Lend for Gcra {
    fn most_lent(&self) -> u64 {
        self.pace().burst() - 1
    }

    fn lending(&self, total: u64) -> Result<Self, ConfigError> {
        match self.uneven_tolerance() {
            None => with_less_burst(self, total),
            Some(tolerance) => {
                let interval = self.quota().period();
                let lent = interval.as_nanos().saturating_mul(total.into());
                let left = tolerance.as_nanos().saturating_sub(lent);
                let left = Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX));
                Self::from_interval(interval, left)
            }
        }
    }
}

/// A meter. A queue has nothing to lend: what it grants is to be used at a certain time.
impl Lend for LeakyBucket {
    fn most_lent(&self) -> u64 {
        match self.free_permits() {
            None => self.pace().burst() - 1,
            Some(_) => 0,
        }
    }

    fn lending(&self, total: u64) -> Result<Self, ConfigError> {
        with_less_burst(self, total)
    }
}

/// What is lent is missing in each window.
impl Lend for FixedWindow {
    fn most_lent(&self) -> u64 {
        self.limit() - self.least()
    }

    fn lending(&self, total: u64) -> Result<Self, ConfigError> {
        self.of_limit(self.limit().saturating_sub(total))
    }
}

/// What is lent is missing in each window.
impl Lend for SlidingWindow {
    fn most_lent(&self) -> u64 {
        self.limit() - self.least()
    }

    fn lending(&self, total: u64) -> Result<Self, ConfigError> {
        self.of_limit(self.limit().saturating_sub(total))
    }
}

impl Lend for Intervals {
    fn most_lent(&self) -> u64 {
        self.quota().burst_size() - 1
    }

    fn lending(&self, total: u64) -> Result<Self, ConfigError> {
        with_less_burst(self, total)
    }
}

impl Lend for AnyAlgorithm {
    fn most_lent(&self) -> u64 {
        each!(self, algorithm => algorithm.most_lent())
    }

    fn lending(&self, total: u64) -> Result<Self, ConfigError> {
        each!(self, algorithm => algorithm.lending(total).map(Self::from))
    }
}
