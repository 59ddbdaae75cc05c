//! Algorithms that leave room for lent permits.

use core::time::Duration;

use super::any::any_of;
use super::{
    AnyAlgorithm, ChangeQuota, FixedWindow, Forecast, Gcra, GiveBack, Intervals, LeakyBucket,
    SlidingWindow, TokenBucket,
};
use crate::quota::QuotaError;

/// An algorithm that can set aside part of its burst for permits that are lent but not yet used.
/// `Leases` requires it.
pub trait Lend: GiveBack + Forecast + Sized {
    /// Returns the most permits that can be lent: usually one less than the algorithm grants at
    /// once, and 0 if it can lend none.
    fn most_lent(&self) -> u64;

    /// Returns the same algorithm, granting `total` fewer permits at once.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the result can't be represented.
    fn lending(&self, total: u64) -> Result<Self, QuotaError>;
}

/// Reduces the burst of an algorithm that is made from a quota.
fn with_less_burst<A: ChangeQuota>(algorithm: &A, total: u64) -> Result<A, QuotaError> {
    let quota = algorithm.quota();
    let burst = quota.burst_size().saturating_sub(total);
    let initial = quota.initial_permits().min(burst);
    algorithm.with_quota(quota.burst(burst).initial(initial))
}

impl Lend for TokenBucket {
    fn most_lent(&self) -> u64 {
        self.pace().burst() - 1
    }

    fn lending(&self, total: u64) -> Result<Self, QuotaError> {
        with_less_burst(self, total)
    }
}

impl Lend for Gcra {
    fn most_lent(&self) -> u64 {
        self.pace().burst() - 1
    }

    fn lending(&self, total: u64) -> Result<Self, QuotaError> {
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

/// Only a meter can lend. A queue grants each permit for a certain tick, so a permit can't be kept
/// for later.
impl Lend for LeakyBucket {
    fn most_lent(&self) -> u64 {
        match self.free_permits() {
            None => self.pace().burst() - 1,
            Some(_) => 0,
        }
    }

    fn lending(&self, total: u64) -> Result<Self, QuotaError> {
        with_less_burst(self, total)
    }
}

/// Subtracts the lent permits from the limit of each window.
macro_rules! lend_by_limit {
    ($($window:ty),*) => {$(
        impl Lend for $window {
            fn most_lent(&self) -> u64 {
                self.limit() - self.least()
            }

            fn lending(&self, total: u64) -> Result<Self, QuotaError> {
                self.of_limit(self.limit().saturating_sub(total))
            }
        }
    )*};
}
lend_by_limit!(FixedWindow, SlidingWindow);

impl Lend for Intervals {
    fn most_lent(&self) -> u64 {
        self.quota().burst_size() - 1
    }

    fn lending(&self, total: u64) -> Result<Self, QuotaError> {
        with_less_burst(self, total)
    }
}

impl Lend for AnyAlgorithm {
    fn most_lent(&self) -> u64 {
        any_of!(self, algorithm => algorithm.most_lent())
    }

    fn lending(&self, total: u64) -> Result<Self, QuotaError> {
        any_of!(self, algorithm => algorithm.lending(total).map(Self::from))
    }
}
