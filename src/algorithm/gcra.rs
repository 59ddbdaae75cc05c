use core::time::Duration;

use super::Level;
use super::delegate::{its_pace, requota_by_pace, reserves_on, runs_on};
use super::pace::Pace;
use super::settings::{NO_QUOTA, settings};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::{Quota, QuotaError};

/// The generic cell rate algorithm (GCRA): a token bucket expressed in time.
///
/// Use it to limit by an interval and a tolerance ([`from_interval`](Self::from_interval)), and a
/// [`TokenBucket`](crate::TokenBucket) to limit by a rate and a burst.
///
/// Permits are due one emission interval apart, and a caller may be early by the tolerance. A GCRA
/// from a quota makes exactly the same decisions as the [`TokenBucket`](crate::TokenBucket), with
/// the same bound. A GCRA from two durations, which need not be multiples of each other, grants
/// `1 + floor(tolerance / interval)` permits at once, and in every interval `[a, b]` at most
/// `1 + (tolerance + (b - a)) / interval`.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Gcra, Limiter, ManualClock};
///
/// # fn main() -> Result<(), tollgate::error::QuotaError> {
/// let clock = ManualClock::new();
/// let spaced = Gcra::from_interval(Duration::from_millis(10), Duration::from_millis(25))?;
/// let limiter = Limiter::with_clock(spaced, clock.clone());
/// assert_eq!(limiter.available(), 3); // 1 + floor(25 / 10)
/// assert!(limiter.try_acquire_n(3).is_ok());
/// clock.advance(Duration::from_millis(5)); // 5 ms of the tolerance are left
/// assert!(limiter.try_acquire().is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Gcra {
    pace: Pace,
    quota: Quota,
}

impl Gcra {
    /// Creates a GCRA from a quota. The interval is `period / n`, and the tolerance is `burst - 1`
    /// intervals.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] names the field of the quota that can't be represented, and what is allowed.
    pub const fn new(quota: Quota) -> Result<Self, QuotaError> {
        match Pace::from_quota(quota) {
            Ok(pace) => Ok(Self { pace, quota }),
            Err(error) => Err(error),
        }
    }

    /// Creates a GCRA from an emission interval and a tolerance, in whole nanoseconds.
    ///
    /// Its [`quota`](crate::algorithm::ChangeQuota::quota) is one permit per interval, and the
    /// burst is the number of permits that it grants at once. If the tolerance is not a multiple of
    /// the interval, this quota is only an approximation, but the limiter still decides by the two
    /// durations.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the interval is zero or above 365 days, or the tolerance does not fit.
    pub const fn from_interval(
        interval: Duration,
        tolerance: Duration,
    ) -> Result<Self, QuotaError> {
        match Pace::from_interval(interval, tolerance) {
            Ok(pace) => Ok(Self {
                pace,
                quota: Quota::per(1, interval).burst(pace.burst()),
            }),
            Err(error) => Err(error),
        }
    }

    /// Returns the tolerance if it is not a multiple of the interval, and so can't be expressed by
    /// the quota.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Gcra;
    ///
    /// # fn main() -> Result<(), tollgate::error::QuotaError> {
    /// let tolerance = Duration::from_millis(25);
    /// let uneven = Gcra::from_interval(Duration::from_millis(10), tolerance)?;
    /// assert_eq!(uneven.uneven_tolerance(), Some(tolerance));
    /// let even = Gcra::from_interval(Duration::from_millis(5), tolerance)?;
    /// assert_eq!(even.uneven_tolerance(), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn uneven_tolerance(&self) -> Option<Duration> {
        let tolerance = self.pace.tolerance();
        if tolerance.is_multiple_of(self.pace.permit()) {
            None
        } else {
            // Such a tolerance comes from `from_interval`, whose unit is the nanosecond.
            Some(Duration::from_nanos(tolerance))
        }
    }

    pub(super) const fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Returns the same algorithm at another pace.
    pub(super) const fn at_pace(&self, pace: Pace) -> Self {
        Self { pace, ..*self }
    }
}

runs_on!(Gcra, its_pace);
requota_by_pace!(Gcra);
settings!(Gcra, 7, "gcra"; pace; quota = NO_QUOTA);
reserves_on!(Gcra, its_pace);
