use super::Level;
use super::delegate::{its_pace, requota_by_pace, reserve_by_pace, runs_on};
use super::pace::Pace;
use super::settings::{NO_QUOTA, settings};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::{ConfigError, Quota};

/// The token bucket: permits drop in at a steady rate, up to a burst, and are taken at will.
///
/// [`Gcra`](crate::Gcra) decides exactly alike; take it where the limit is an interval with a
/// tolerance, and a bucket where it is a rate with a burst.
///
/// **Bound.** In every interval `[a, b]` at most `burst + rate * (b - a)` permits are granted, net
/// of what was given back, for any number of threads, on the ticks at which they were counted
/// ([`Granted::at`](crate::Granted::at)). A reset allows one burst more; a charge may exceed it,
/// into debt.
///
/// **Exact.** After the bucket ran dry, permit `k` is due `k * period / n` later. It is never
/// early. It is exactly then if the interval is a whole number of nanoseconds, and wherever `n /
/// period`, reduced and in nanoseconds, has a numerator of at most 11 and the burst fits so.
/// Elsewhere it is at most one nanosecond late, after 50 years as in the first second: at one
/// standing tick the last permit of a burst that is taken in parts may then be had a nanosecond
/// later, and what is told of the bucket at that tick may be one permit short.
///
/// Any rate from one permit in 365 days to 10 a nanosecond, any burst up to 2^40 that the word can
/// hold at that rate: what does not fit is refused when the bucket is made.
///
/// ```
/// use tollgate::{ConfigError, Limiter, Quota, TokenBucket};
///
/// let bucket = TokenBucket::new(Quota::per_second(100).burst(20))?;
/// let limiter = Limiter::new(bucket);
/// assert_eq!(limiter.available(), 20);
///
/// assert_eq!(
///     TokenBucket::new(Quota::per_second(100).burst(0)),
///     Err(ConfigError::ZeroBurst)
/// );
/// # Ok::<(), ConfigError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct TokenBucket {
    pace: Pace,
    quota: Quota,
}

impl TokenBucket {
    /// A bucket that fills at the quota's rate up to its burst.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the field of the quota that can't be represented, and what is
    /// allowed.
    pub const fn new(quota: Quota) -> Result<Self, ConfigError> {
        match Pace::from_quota(quota) {
            Ok(pace) => Ok(Self { pace, quota }),
            Err(error) => Err(error),
        }
    }

    pub(super) const fn pace(&self) -> &Pace {
        &self.pace
    }

    /// The same at another pace.
    pub(super) const fn at_pace(&self, pace: Pace) -> Self {
        Self { pace, ..*self }
    }
}

runs_on!(TokenBucket, its_pace);
requota_by_pace!(TokenBucket);
settings!(TokenBucket, 8, "token-bucket"; pace; quota = NO_QUOTA);
reserve_by_pace!(TokenBucket);
