use core::error::Error;
use core::fmt;
use core::time::Duration;

use super::seconds::ceil_secs;

/// Permits were not there, and nothing was taken.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Denied, Limiter, ManualClock, Quota, TokenBucket};
///
/// # fn main() -> Result<(), tollgate::ConfigError> {
/// let limiter = Limiter::with_clock(TokenBucket::new(Quota::per_second(10))?, ManualClock::new());
/// let never = limiter.try_acquire_n(11).unwrap_err();
/// assert!(never.is_permanent());
/// assert!(limiter.try_acquire_n(10).is_ok());
/// match limiter.try_acquire() {
///     Err(Denied::Later { retry_after, .. }) => assert_eq!(retry_after, Duration::from_millis(100)),
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
#[non_exhaustive]
// With a tag of its own a caller that only asks whether it was denied does not compute when to come
// again. In its place the compiler would use a part of that time.
#[repr(u8)]
pub enum Denied {
    /// There will be enough later.
    #[non_exhaustive]
    Later {
        /// How many were asked for.
        requested: u64,
        /// How long until there are as many, if nobody else takes any.
        retry_after: Duration,
    },
    /// The key is banned, by `Keyed::ban`.
    #[non_exhaustive]
    Banned {
        /// How many were asked for.
        requested: u64,
        /// How long until the ban is over and there are as many, if nobody else takes any; `None`
        /// if the clock ends before.
        retry_after: Option<Duration>,
    },
    /// Others are inside, or wait before the caller: there will be enough when they have left, and
    /// nobody knows when that is. A limit on how much runs at once answers so.
    #[non_exhaustive]
    Busy {
        /// How many were asked for.
        requested: u64,
    },
    /// A table or map of keys has no room for another key: keys that are in use hold all places
    /// that it looked at. There will be room when one of them has been left alone for long enough.
    #[non_exhaustive]
    NoRoom {
        /// How many were asked for.
        requested: u64,
    },
    /// A table of keys was asked by a plan that it does not have.
    #[non_exhaustive]
    NoSuchPlan {
        /// How many were asked for.
        requested: u64,
    },
    /// More was asked for than there can ever be at once; or, of a queue, than ever leave within
    /// the time that the caller can wait.
    #[non_exhaustive]
    Never {
        /// How many were asked for.
        requested: u64,
        /// The most that can be asked for, with that wait.
        limit: u64,
    },
    /// The limiter's word stands so far in the future that its clock will not get there: somebody
    /// brought a tick from the end of time, or charged decades of debt. Waiting does not help; a
    /// reset does, or giving as much back where there is something to give back.
    #[non_exhaustive]
    Stuck {
        /// How many were asked for.
        requested: u64,
    },
    /// A future waited with a timer that does not follow the limiter's clock: the timer slept for a
    /// minute or more, and the clock hardly moved. This happens with tokio's paused time and the
    /// system's clock: give the limiter a `TokioClock` there.
    #[non_exhaustive]
    TimerMismatch {
        /// How many were asked for.
        requested: u64,
    },
}

impl Denied {
    /// A denial that ends after a wait. For algorithms of your own.
    #[inline]
    pub const fn later(requested: u64, retry_after: Duration) -> Self {
        Self::Later {
            requested,
            retry_after,
        }
    }

    /// A denial because of a ban. For limiters of your own.
    #[inline]
    pub const fn banned(requested: u64, retry_after: Option<Duration>) -> Self {
        Self::Banned {
            requested,
            retry_after,
        }
    }

    /// A denial that ends when others have left. For limiters of your own.
    #[inline]
    pub const fn busy(requested: u64) -> Self {
        Self::Busy { requested }
    }

    /// A denial for want of room. For limiters of your own.
    #[inline]
    pub const fn no_room(requested: u64) -> Self {
        Self::NoRoom { requested }
    }

    /// A denial for want of a plan. For limiters of your own.
    #[inline]
    pub const fn no_such_plan(requested: u64) -> Self {
        Self::NoSuchPlan { requested }
    }

    /// A denial for good. For algorithms of your own.
    #[inline]
    pub const fn never(requested: u64, limit: u64) -> Self {
        Self::Never { requested, limit }
    }

    /// A denial until somebody resets the limiter. For algorithms of your own.
    #[inline]
    pub const fn stuck(requested: u64) -> Self {
        Self::Stuck { requested }
    }

    /// A denial because the timer does not follow the clock. For limiters of your own.
    #[inline]
    pub const fn timer_mismatch(requested: u64) -> Self {
        Self::TimerMismatch { requested }
    }

    /// How long until there will be enough, if nobody else takes any; `None` if waiting does not
    /// help, or if nobody knows how long.
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Later { retry_after, .. } => Some(*retry_after),
            Self::Banned { retry_after, .. } => *retry_after,
            Self::Busy { .. }
            | Self::NoRoom { .. }
            | Self::NoSuchPlan { .. }
            | Self::Never { .. }
            | Self::Stuck { .. }
            | Self::TimerMismatch { .. } => None,
        }
    }

    /// The same in whole seconds, rounded up, as the HTTP header `Retry-After` has it: at least 1
    /// for any wait above zero, so that a client that obeys does not come too early.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Denied;
    ///
    /// assert_eq!(Denied::later(1, Duration::from_millis(20)).retry_after_secs(), Some(1));
    /// assert_eq!(Denied::later(1, Duration::from_millis(1900)).retry_after_secs(), Some(2));
    /// assert_eq!(Denied::never(5, 3).retry_after_secs(), None);
    /// ```
    #[inline]
    pub const fn retry_after_secs(&self) -> Option<u64> {
        match self.retry_after() {
            Some(wait) => Some(ceil_secs(wait)),
            None => None,
        }
    }

    /// Whether the same request can never be granted, however long one waits.
    #[inline]
    pub const fn is_permanent(&self) -> bool {
        match self {
            Self::Later { .. } | Self::Busy { .. } | Self::NoRoom { .. } => false,
            Self::Banned { retry_after, .. } => retry_after.is_none(),
            Self::NoSuchPlan { .. }
            | Self::Never { .. }
            | Self::Stuck { .. }
            | Self::TimerMismatch { .. } => true,
        }
    }

    /// How many permits were asked for.
    #[inline]
    pub const fn requested(&self) -> u64 {
        match self {
            Self::Later { requested, .. }
            | Self::Banned { requested, .. }
            | Self::Busy { requested }
            | Self::NoRoom { requested }
            | Self::NoSuchPlan { requested }
            | Self::Never { requested, .. }
            | Self::Stuck { requested }
            | Self::TimerMismatch { requested } => *requested,
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Later {
                requested,
                retry_after,
            } => write!(f, "rate limit reached: {requested} more in {retry_after:?}"),
            Self::Banned {
                retry_after: Some(wait),
                ..
            } => write!(f, "the key is banned: try again in {wait:?}"),
            Self::Banned { .. } => write!(f, "the key is banned for as long as the clock runs"),
            Self::Busy { requested } => {
                write!(f, "limit reached: {requested} more when others have left")
            }
            Self::NoRoom { .. } => {
                write!(
                    f,
                    "the table of rate limits has no room for another key now"
                )
            }
            Self::NoSuchPlan { .. } => {
                write!(f, "the table of rate limits has no such plan")
            }
            Self::Never { requested, limit } => write!(
                f,
                "rate limit can never grant {requested} at once: the most is {limit}"
            ),
            Self::Stuck { requested } => write!(
                f,
                "rate limit is set beyond the end of its clock and can't grant {requested} until it is reset"
            ),
            Self::TimerMismatch { .. } => write!(
                f,
                "the timer does not follow the rate limiter's clock: in paused time use a TokioClock"
            ),
        }
    }
}

impl Error for Denied {}
