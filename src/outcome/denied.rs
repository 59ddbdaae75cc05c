use core::error::Error;
use core::fmt;
use core::time::Duration;

use super::seconds::ceil_secs;

/// A denied request: the permits were not available, and nothing was taken.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Denied, Limiter, ManualClock, Quota, TokenBucket};
///
/// # fn main() -> Result<(), tollgate::error::QuotaError> {
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
// The tag has a byte of its own, so a caller that only checks for a denial does not compute the
// wait. Otherwise the compiler would store the tag in the niche of `Duration`.
#[repr(u8)]
pub enum Denied {
    /// The permits will be available later.
    #[non_exhaustive]
    Later {
        /// The number of permits requested.
        requested: u64,
        /// How long until the permits are available, if no other caller takes any.
        retry_after: Duration,
    },
    /// The key is banned, by `Key::ban`.
    #[non_exhaustive]
    Banned {
        /// The number of permits requested.
        requested: u64,
        /// How long until the ban is over and the permits are available, if no other caller takes
        /// any. `None` if the clock ends first.
        retry_after: Option<Duration>,
    },
    /// A concurrency limit is reached: other callers are inside, or wait ahead of this one. They
    /// may leave at any time.
    #[non_exhaustive]
    Busy {
        /// The number of permits requested.
        requested: u64,
    },
    /// The permits are not available, and the line of callers that wait for them is full: with this
    /// request, more permits would wait than the line holds. Waiting callers may be served, or give
    /// up, at any time.
    #[non_exhaustive]
    LineFull {
        /// The number of permits requested.
        requested: u64,
        /// The number of permits that callers wait for.
        waiting_permits: u64,
        /// The most permits that callers can wait for.
        max_waiting_permits: u64,
    },
    /// A table of keys has no room for another key: every slot that the key may use holds a key
    /// that is in use. A slot becomes free when its key is idle.
    #[non_exhaustive]
    NoRoom {
        /// The number of permits requested.
        requested: u64,
    },
    /// A table of keys does not have the requested plan.
    #[non_exhaustive]
    NoSuchPlan {
        /// The number of permits requested.
        requested: u64,
    },
    /// The request is for more permits than can ever be available at once. For a queue, it may also
    /// be for more permits than can leave the queue within the caller's maximum wait.
    #[non_exhaustive]
    Never {
        /// The number of permits requested.
        requested: u64,
        /// The most permits that can be requested, with the same maximum wait.
        limit: u64,
    },
    /// The limiter's word is ahead of the last tick of its clock, so waiting does not help. A
    /// caller passed a tick near the end of time, or charged a debt of decades: for example by a
    /// settlement for [`u64::MAX`] permits. A limiter whose debt is paid back within 50 years of
    /// the clock's start is never stuck. Debts never make windows and greedy intervals stuck.
    ///
    /// A reset helps, and so does a refund that leaves a debt which can be paid back. A new quota
    /// helps with `Keep::Fresh`. In the other ways it helps only if it can pay back the debt. A
    /// snapshot keeps the debt.
    #[non_exhaustive]
    Stuck {
        /// The number of permits requested.
        requested: u64,
    },
    /// A future waited with a timer that does not follow the limiter's clock: the timer slept for a
    /// minute or more while the clock hardly advanced. This happens with tokio's paused time and
    /// the system clock. With paused time, give the limiter a `TokioClock`.
    #[non_exhaustive]
    TimerMismatch {
        /// The number of permits requested.
        requested: u64,
    },
}

impl Denied {
    /// Creates a denial that ends after a wait. For algorithms of your own.
    #[inline]
    pub const fn later(requested: u64, retry_after: Duration) -> Self {
        Self::Later {
            requested,
            retry_after,
        }
    }

    /// Creates a denial because of a ban. For limiters of your own.
    #[inline]
    pub const fn banned(requested: u64, retry_after: Option<Duration>) -> Self {
        Self::Banned {
            requested,
            retry_after,
        }
    }

    /// Creates a denial that ends when other callers have left. For limiters of your own.
    #[inline]
    pub const fn busy(requested: u64) -> Self {
        Self::Busy { requested }
    }

    /// Creates a denial because the line of waiting callers is full. For limiters of your own.
    ///
    /// ```
    /// use tollgate::Denied;
    ///
    /// let denied = Denied::line_full(2, 9, 10);
    /// assert_eq!(denied.to_string(), "line is full: 9 permits wait, and 2 more would exceed 10");
    /// assert_eq!((denied.retry_after(), denied.is_permanent()), (None, false));
    /// ```
    #[inline]
    pub const fn line_full(requested: u64, waiting_permits: u64, max_waiting_permits: u64) -> Self {
        Self::LineFull {
            requested,
            waiting_permits,
            max_waiting_permits,
        }
    }

    /// Creates a denial because there is no room for the key. For limiters of your own.
    #[inline]
    pub const fn no_room(requested: u64) -> Self {
        Self::NoRoom { requested }
    }

    /// Creates a denial because the plan does not exist. For limiters of your own.
    #[inline]
    pub const fn no_such_plan(requested: u64) -> Self {
        Self::NoSuchPlan { requested }
    }

    /// Creates a permanent denial. For algorithms of your own.
    #[inline]
    pub const fn never(requested: u64, limit: u64) -> Self {
        Self::Never { requested, limit }
    }

    /// Creates a denial that lasts until the limiter is reset. For algorithms of your own.
    #[inline]
    pub const fn stuck(requested: u64) -> Self {
        Self::Stuck { requested }
    }

    /// Creates a denial because the timer does not follow the clock. For limiters of your own.
    #[inline]
    pub const fn timer_mismatch(requested: u64) -> Self {
        Self::TimerMismatch { requested }
    }

    /// Returns how long until the permits are available, if no other caller takes any. Returns
    /// `None` if waiting does not help, or if the wait is not known.
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Later { retry_after, .. } => Some(*retry_after),
            Self::Banned { retry_after, .. } => *retry_after,
            Self::Busy { .. }
            | Self::LineFull { .. }
            | Self::NoRoom { .. }
            | Self::NoSuchPlan { .. }
            | Self::Never { .. }
            | Self::Stuck { .. }
            | Self::TimerMismatch { .. } => None,
        }
    }

    /// Returns [`retry_after`](Self::retry_after) in whole seconds, rounded up, for the HTTP header
    /// `Retry-After`. It is at least 1 for any wait above zero, so a client that obeys it does not
    /// retry too early.
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

    /// Returns whether the same request stays denied, however long the caller waits.
    #[inline]
    pub const fn is_permanent(&self) -> bool {
        match self {
            Self::Later { .. }
            | Self::Busy { .. }
            | Self::LineFull { .. }
            | Self::NoRoom { .. } => false,
            Self::Banned { retry_after, .. } => retry_after.is_none(),
            Self::NoSuchPlan { .. }
            | Self::Never { .. }
            | Self::Stuck { .. }
            | Self::TimerMismatch { .. } => true,
        }
    }

    /// Returns the number of permits requested.
    #[inline]
    pub const fn requested(&self) -> u64 {
        match self {
            Self::Later { requested, .. }
            | Self::Banned { requested, .. }
            | Self::Busy { requested }
            | Self::LineFull { requested, .. }
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
            } => write!(
                f,
                "rate limit reached: {requested} available in {retry_after:?}"
            ),
            Self::Banned {
                retry_after: Some(wait),
                ..
            } => write!(f, "the key is banned: try again in {wait:?}"),
            Self::Banned { .. } => write!(f, "the key is banned for as long as the clock runs"),
            Self::Busy { requested } => {
                write!(
                    f,
                    "limit reached: {requested} available when others have left"
                )
            }
            Self::LineFull {
                requested,
                waiting_permits,
                max_waiting_permits,
            } => write!(
                f,
                "line is full: {waiting_permits} permits wait, and {requested} more would exceed \
                 {max_waiting_permits}"
            ),
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
                "the timer does not follow the rate limiter's clock: with paused time, use a TokioClock"
            ),
        }
    }
}

impl Error for Denied {}
