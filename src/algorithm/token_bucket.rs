use super::Level;
use super::delegate::{its_pace, requota_by_pace, reserves_on, runs_on};
use super::pace::Pace;
use super::settings::{NO_QUOTA, settings};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::{Quota, QuotaError};

/// A token bucket: it fills with permits at a steady rate, up to a burst, and callers take them.
///
/// [`Gcra`](crate::Gcra) makes exactly the same decisions. Use it where the limit is an interval
/// with a tolerance, and a token bucket where the limit is a rate with a burst.
///
/// **Bound.** In every interval `[a, b]` at most `burst + rate * (b - a)` permits are granted, less
/// those that were given back. At rates that are not exact, `b - a` counts as one unit longer (see
/// below), and as another unit longer for each change of quota or clock. This holds for any number
/// of threads. The ticks are those at which the permits were counted
/// ([`Granted::at`](crate::Granted::at)). A reset allows one more burst. A charge may exceed the
/// bound and put the bucket into debt.
///
/// **Exactness.** A fresh bucket grants its whole burst at one tick, in any split, and says exactly
/// how many permits are left. After the bucket runs dry, permit `k` is due `k * period / n` later:
///
/// - It is due at exactly the first nanosecond at or after that time, if the time between permits
///   is a whole number of nanoseconds. The same holds if the fraction `n / period`, reduced and
///   with the period in nanoseconds, has a numerator of at most 11, unless the burst is too large
///   for the word.
/// - At all other rates the bucket counts time in units of at most a quarter of a nanosecond. A
///   permit is less than one unit early, and at most one nanosecond late. This error does not grow,
///   even over 50 years.
///
/// **Range.** The rate may be from one permit in 365 days to 10 permits per nanosecond. The burst
/// may be up to 2^40, if the word can hold it at that rate. [`new`](Self::new) refuses all other
/// quotas.
///
/// ```
/// use tollgate::error::QuotaError;
/// use tollgate::{Limiter, Quota, TokenBucket};
///
/// let bucket = TokenBucket::new(Quota::per_second(100).burst(20))?;
/// let limiter = Limiter::new(bucket);
/// assert_eq!(limiter.available(), 20);
///
/// assert_eq!(
///     TokenBucket::new(Quota::per_second(100).burst(0)),
///     Err(QuotaError::ZeroBurst)
/// );
/// # Ok::<(), QuotaError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct TokenBucket {
    pace: Pace,
    quota: Quota,
}

impl TokenBucket {
    /// Creates a bucket that fills at the quota's rate up to its burst.
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

    pub(super) const fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Returns how many units of the bucket make a permit if a permit may be less than one unit
    /// early, or `None` if the rate is exact.
    ///
    /// ```
    /// use tollgate::{Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), tollgate::error::QuotaError> {
    /// assert!(TokenBucket::new(Quota::per_second(13))?.inexact_unit().is_some());
    /// assert_eq!(TokenBucket::new(Quota::per_second(10))?.inexact_unit(), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn inexact_unit(&self) -> Option<core::num::NonZeroU64> {
        self.pace.inexact_unit()
    }

    /// Returns the same bucket at another pace.
    pub(super) const fn at_pace(&self, pace: Pace) -> Self {
        Self { pace, ..*self }
    }
}

// The methods of `Algorithm` call those of its pace.
runs_on!(TokenBucket, its_pace);
requota_by_pace!(TokenBucket);
settings!(TokenBucket, 7, "token-bucket"; pace; quota = NO_QUOTA);
reserves_on!(TokenBucket, its_pace);
