use core::error::Error;
use core::fmt;
use core::time::Duration;

use super::{MAX_BURST, MAX_INTERVAL_NS, MAX_PER_NS};

/// The reason why an algorithm can't be made from a quota. Each variant is about one field. It
/// holds the field's value and the allowed range, unless these are always the same.
///
/// ```
/// use tollgate::error::QuotaError;
/// use tollgate::{Quota, TokenBucket};
///
/// let error = TokenBucket::new(Quota::per_second(10).initial(30)).unwrap_err();
/// assert_eq!(error, QuotaError::InitialAboveBurst { initial: 30, burst: 10 });
/// assert_eq!(error.field(), "initial");
/// assert_eq!(error.to_string(), "initial is 30, but must be at most the burst, which is 10");
/// ```
///
/// `?` converts it to a [`LimiterError`](crate::error::LimiterError) and a
/// [`ComposeError`](crate::error::ComposeError). `Debug` shows the variant and its fields, also
/// where `main` returns this error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QuotaError {
    /// The number of permits is 0.
    ZeroPermits,
    /// The period is 0.
    ZeroPeriod,
    /// The period does not fit 64 bits of nanoseconds.
    PeriodTooLong {
        /// The requested period.
        period: Duration,
    },
    /// The rate is above 10 permits per nanosecond.
    RateTooHigh {
        /// The requested number of permits.
        n: u64,
        /// The requested period.
        period: Duration,
    },
    /// The rate is below one permit in 365 days.
    RateTooLow {
        /// The requested number of permits.
        n: u64,
        /// The requested period.
        period: Duration,
    },
    /// The burst is 0, so nothing could ever be granted.
    ZeroBurst,
    /// The burst is too large for this rate: the word must also have room for 50 years and for a
    /// burst of debt.
    BurstTooLarge {
        /// The requested burst.
        burst: u64,
        /// The largest burst that fits at this rate.
        max: u64,
    },
    /// The initial permits are more than the burst.
    InitialAboveBurst {
        /// The requested number of initial permits.
        initial: u64,
        /// The burst.
        burst: u64,
    },
    /// The emission interval is 0.
    ZeroInterval,
    /// The emission interval is above 365 days.
    IntervalTooLong {
        /// The requested interval.
        interval: Duration,
    },
    /// The tolerance is too long for this interval: the word must also have room for 50 years and
    /// for a burst of debt.
    ToleranceTooLong {
        /// The requested tolerance.
        tolerance: Duration,
        /// The longest tolerance that fits at this interval.
        max: Duration,
    },
    /// The time between permits is not a whole number of nanoseconds, although a tolerance is
    /// given.
    IntervalNotWhole {
        /// The requested number of permits.
        n: u64,
        /// The requested period.
        period: Duration,
    },
    /// A burst other than `n` is given for a window, which has no separate burst.
    BurstInWindow {
        /// The requested burst.
        burst: u64,
        /// The permits per window.
        n: u64,
    },
    /// Initial permits other than `n` are given for a window, which always begins with `n`.
    InitialInWindow {
        /// The requested number of initial permits.
        initial: u64,
        /// The permits per window.
        n: u64,
    },
    /// The window is longer than 50 years.
    WindowTooLong {
        /// The requested window.
        period: Duration,
        /// The longest window.
        max: Duration,
    },
    /// The word has too few bits for this many permits per window and for the numbers of all
    /// windows in 50 years.
    LimitTooLarge {
        /// The requested number of permits.
        n: u64,
        /// The most permits that fit a window of this length.
        max: u64,
        /// The requested window.
        period: Duration,
        /// The shortest window that this many permits fit, if there is one.
        min_period: Option<Duration>,
    },
}

impl QuotaError {
    /// Returns the name of the field that is wrong.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::ZeroPermits
            | Self::RateTooHigh { .. }
            | Self::RateTooLow { .. }
            | Self::LimitTooLarge { .. } => "n",
            Self::ZeroPeriod | Self::PeriodTooLong { .. } | Self::WindowTooLong { .. } => "period",
            Self::ZeroBurst | Self::BurstTooLarge { .. } | Self::BurstInWindow { .. } => "burst",
            Self::InitialAboveBurst { .. } | Self::InitialInWindow { .. } => "initial",
            Self::ZeroInterval | Self::IntervalTooLong { .. } | Self::IntervalNotWhole { .. } => {
                "interval"
            }
            Self::ToleranceTooLong { .. } => "tolerance",
        }
    }

    /// Returns the field and what is allowed, for [`const_unwrap!`](crate::const_unwrap). It leaves
    /// out this error's numbers, because numbers can't be formatted at compile time.
    #[doc(hidden)]
    pub const fn const_message(&self) -> &'static str {
        match self {
            Self::ZeroPermits => "n must be at least 1 permit",
            Self::ZeroPeriod => "period must be at least 1ns",
            Self::PeriodTooLong { .. } => "period must be at most 18446744073.709551615s",
            Self::RateTooHigh { .. } => "n must be at most 10 every 1ns",
            Self::RateTooLow { .. } => "n must be at least 1 every 365 days",
            Self::ZeroBurst => "burst must be from 1 to 1099511627776",
            Self::BurstTooLarge { .. } => "burst is larger than fits at this rate",
            Self::InitialAboveBurst { .. } => "initial must be at most the burst",
            Self::ZeroInterval => "interval must be at least 1ns",
            Self::IntervalTooLong { .. } => "interval must be at most 365 days",
            Self::ToleranceTooLong { .. } => "tolerance is longer than fits at this interval",
            Self::IntervalNotWhole { .. } => "interval must be whole nanoseconds",
            Self::BurstInWindow { .. } => "burst must be left out: a window has no separate burst",
            Self::InitialInWindow { .. } => {
                "initial must be left out: a window always begins with n"
            }
            Self::WindowTooLong { .. } => "period must be at most 50 years for a window",
            Self::LimitTooLarge { .. } => "n is larger than fits in a window of this period",
        }
    }
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field();
        let days = MAX_INTERVAL_NS / 86_400_000_000_000;
        match self {
            Self::ZeroPermits => write!(f, "{field} is 0, but must be at least 1 permit"),
            Self::ZeroPeriod | Self::ZeroInterval => {
                write!(f, "{field} is 0, but must be at least 1ns")
            }
            Self::PeriodTooLong { period } => write!(
                f,
                "{field} is {period:?}, but must be at most {:?}",
                Duration::from_nanos(u64::MAX)
            ),
            Self::RateTooHigh { n, period } => write!(
                f,
                "{field} is {n} every {period:?}, but must be at most {MAX_PER_NS} every 1ns"
            ),
            Self::RateTooLow { n, period } => write!(
                f,
                "{field} is {n} every {period:?}, but must be at least 1 every {days} days"
            ),
            Self::ZeroBurst => write!(f, "{field} is 0, but must be from 1 to {MAX_BURST}"),
            Self::BurstTooLarge { burst, max } => write!(
                f,
                "{field} is {burst}, but must be from 1 to {max} at this rate"
            ),
            Self::InitialAboveBurst { initial, burst } => write!(
                f,
                "{field} is {initial}, but must be at most the burst, which is {burst}"
            ),
            Self::IntervalTooLong { interval } => write!(
                f,
                "{field} is {interval:?}, but must be at most {days} days"
            ),
            Self::ToleranceTooLong { tolerance, max } => write!(
                f,
                "{field} is {tolerance:?}, but must be at most {max:?} at this interval"
            ),
            Self::IntervalNotWhole { n, period } => write!(
                f,
                "{field} is {period:?} / {n}, but with a tolerance it must be whole nanoseconds"
            ),
            Self::BurstInWindow { burst, n } => write!(
                f,
                "{field} is {burst}, but a window of {n} permits has no separate burst: leave it out"
            ),
            Self::InitialInWindow { initial, n } => write!(
                f,
                "{field} is {initial}, but a window always begins with its {n} permits: leave it out"
            ),
            Self::WindowTooLong { period, max } => write!(
                f,
                "{field} is {period:?}, but a window must be at most {max:?} long"
            ),
            Self::LimitTooLarge {
                n,
                max,
                period,
                min_period,
            } => {
                write!(f, "{field} is {n}, but must be ")?;
                match max {
                    0 => f.write_str("in a longer window")?,
                    max => write!(f, "at most {max} in a window of {period:?}")?,
                }
                match min_period {
                    Some(least) => write!(f, ", or the window must be at least {least:?} long"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Error for QuotaError {}
