//! Why a limit can't be decided by a server.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::limit::bounds::{MAX_BURST, MAX_N, MAX_SPAN};
use crate::limit::fallback_error::FallbackError;

/// The reason why a limit can't be decided by a server. Each variant is about one field.
///
/// ```
/// use tollgate::Quota;
/// use tollgate_redis::{Limit, LimitError};
///
/// let error = Limit::token_bucket(Quota::per_second(10).initial(3)).unwrap_err();
/// assert_eq!(error, LimitError::Initial { initial: 3, burst: 10 });
/// assert_eq!(error.field(), "initial");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitError {
    /// The number of permits is 0.
    ZeroPermits,
    /// The period is 0.
    ZeroPeriod,
    /// The period is longer than 50 years.
    PeriodTooLong {
        /// The requested period.
        period: Duration,
    },
    /// The period of a window or log, or the long one of a bucket, is not a whole number of
    /// microseconds.
    PeriodNotWhole {
        /// The requested period.
        period: Duration,
    },
    /// The rate has too many permits, as a reduced fraction of permits and microseconds.
    RateTooFine {
        /// The requested number of permits.
        n: u64,
        /// The requested period.
        period: Duration,
    },
    /// A window has too many permits.
    TooManyPermits {
        /// The requested number of permits.
        n: u64,
        /// The largest number.
        max: u64,
    },
    /// A sliding log has too many permits: the server stores each.
    TooManyLogged {
        /// The requested number of permits.
        n: u64,
        /// The largest number.
        max: u64,
    },
    /// The burst is 0, or would take more than 50 years to refill.
    Burst {
        /// The requested burst.
        burst: u64,
        /// The largest burst that fits at this rate.
        max: u64,
    },
    /// A window or log has a burst of its own.
    BurstOfWindow {
        /// The requested burst.
        burst: u64,
        /// The permits of the window.
        n: u64,
    },
    /// The initial permits are not the burst: a key that does not exist is full.
    Initial {
        /// The requested number of initial permits.
        initial: u64,
        /// The burst.
        burst: u64,
    },
    /// A limit on concurrency has no slots, or too many.
    Slots {
        /// The requested number of slots.
        limit: u64,
        /// The largest number.
        max: u64,
    },
    /// The lease of a slot is shorter than a millisecond, or longer than 50 years.
    Lease {
        /// The requested lease.
        lease: Duration,
    },
    /// What decides while the server does not answer.
    Fallback(FallbackError),
}

impl LimitError {
    /// Returns the name of the field that is wrong.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_redis::Limit;
    ///
    /// assert_eq!(Limit::token_bucket(Quota::per_second(0)).unwrap_err().field(), "n");
    /// ```
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::ZeroPermits
            | Self::RateTooFine { .. }
            | Self::TooManyPermits { .. }
            | Self::TooManyLogged { .. } => "n",
            Self::ZeroPeriod | Self::PeriodTooLong { .. } | Self::PeriodNotWhole { .. } => "period",
            Self::Burst { .. } | Self::BurstOfWindow { .. } => "burst",
            Self::Initial { .. } => "initial",
            Self::Slots { .. } => "limit",
            Self::Lease { .. } => "lease",
            Self::Fallback(error) => error.field(),
        }
    }
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field();
        match self {
            Self::ZeroPermits => write!(f, "{field} is 0, but must be at least 1 permit"),
            Self::ZeroPeriod => write!(f, "{field} is 0, but must be at least 1ns"),
            Self::PeriodTooLong { period } => {
                write!(f, "{field} is {period:?}, but must be at most {MAX_SPAN:?}")
            }
            Self::PeriodNotWhole { period } => write!(
                f,
                "{field} is {period:?}, but must be a whole number of microseconds"
            ),
            Self::RateTooFine { n, period } => write!(
                f,
                "{field} is {n} every {period:?}, but as a reduced fraction of permits and \
                 microseconds it must be at most {MAX_N}: choose a number that shares more \
                 divisors with the period"
            ),
            Self::TooManyPermits { n, max } => {
                write!(f, "{field} is {n}, but must be at most {max}")
            }
            Self::TooManyLogged { n, max } => write!(
                f,
                "{field} is {n}, but must be at most {max}, because the server stores each permit \
                 of a log: a sliding window or a bucket can have more"
            ),
            Self::Burst { burst, max } => {
                write!(f, "{field} is {burst}, but must be from 1 to {max}")?;
                match *max < MAX_BURST {
                    true => f.write_str(": at this rate, more take over 50 years to refill"),
                    false => Ok(()),
                }
            }
            Self::BurstOfWindow { burst, n } => write!(
                f,
                "{field} is {burst}, but must be n, which is {n}, or be left out: a window has no \
                 burst of its own"
            ),
            Self::Initial { initial, burst } => write!(
                f,
                "{field} is {initial}, but must be the burst, which is {burst}, or be left out: \
                 a key that does not exist is full"
            ),
            Self::Slots { limit, max } => {
                write!(f, "{field} is {limit}, but must be from 1 to {max}")?;
                match limit > max {
                    true => f.write_str(
                        ", because the server stores each slot: split it over several names, or \
                         limit the rate by a bucket",
                    ),
                    false => Ok(()),
                }
            }
            Self::Lease { lease } => write!(
                f,
                "{field} is {lease:?}, but must be from 1ms to {MAX_SPAN:?}"
            ),
            Self::Fallback(error) => error.fmt(f),
        }
    }
}

impl Error for LimitError {}
