//! Rates: quotas as exact integers that a script can add and compare.
//!
//! `n` permits every `period` microseconds, reduced, so one permit costs `period` units of 1/n
//! microsecond. Products are computed here, in 128 bits; the scripts only add and compare.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tollgate::Quota;

/// 50 years of microseconds: the longest span that the scripts accept.
pub(crate) const SPAN: u64 = 50 * 36_525 * 24 * 36 * 1_000_000;

/// The largest `n` of a reduced rate. Scripts multiply two such numbers in a double.
const MAX_N: u64 = 1 << 26;

/// The largest burst.
const MAX_BURST: u64 = (1 << 53) - 1;

/// A span or a moment: microseconds, and a part of one more in units of 1/n, below n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Ticks {
    pub(crate) whole: u64,
    pub(crate) part: u64,
}

/// A quota in exact units, for limits that a server decides.
///
/// ```
/// use tollgate::Quota;
/// use tollgate_redis::Rate;
///
/// # fn main() -> Result<(), tollgate_redis::RateError> {
/// let rate = Rate::new(Quota::per_second(100).burst(20))?;
/// assert_eq!(rate.burst(), 20);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    /// Permits every `period` microseconds.
    n: u64,
    /// Microseconds for `n` permits, or units of 1/n microsecond for one.
    period: u64,
    burst: u64,
    /// What a full burst costs.
    reach: Ticks,
}

impl Rate {
    /// Creates the rate of a quota.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    /// use tollgate_redis::Rate;
    ///
    /// assert!(Rate::new(Quota::per(7, Duration::from_nanos(3))).is_ok());
    /// let error = Rate::new(Quota::per_day(1).burst(20_000)).unwrap_err();
    /// assert!(error.to_string().starts_with("burst is 20000, but must be from 1 to 18262"));
    /// ```
    ///
    /// # Errors
    ///
    /// [`RateError`] if the scripts can't count the quota exactly for 50 years.
    pub fn new(quota: Quota) -> Result<Self, RateError> {
        let (n, period, burst) = (quota.permits(), quota.period(), quota.burst_size());
        if n == 0 {
            return Err(RateError::ZeroPermits);
        }
        if period.is_zero() {
            return Err(RateError::ZeroPeriod);
        }
        if period > MAX_SPAN {
            return Err(RateError::PeriodTooLong { period });
        }
        // Every 1000 nanoseconds are a microsecond, so n permits in `nanos` nanoseconds are 1000 n
        // in `nanos` microseconds.
        let (thousand, nanos) = (u128::from(n) * 1000, period.as_nanos());
        let divisor = gcd(thousand, nanos).max(1);
        let (exact_n, exact_period) = (thousand / divisor, nanos / divisor);
        if exact_n > u128::from(MAX_N) {
            return Err(RateError::RateTooFine { n, period });
        }
        // At least 1, because the period is at most this span.
        let max_burst = (u128::from(SPAN) * exact_n / exact_period).min(MAX_BURST.into());
        if burst == 0 || u128::from(burst) > max_burst {
            let max = to_u64(max_burst);
            return Err(RateError::Burst { burst, max });
        }
        let initial = quota.initial_permits();
        if initial != burst {
            return Err(RateError::Initial { initial, burst });
        }
        let mut rate = Self {
            n: to_u64(exact_n),
            period: to_u64(exact_period),
            burst,
            reach: Ticks::default(),
        };
        rate.reach = rate.ticks(rate.cost(burst));
        Ok(rate)
    }

    /// Returns the most permits that can be taken at once.
    ///
    /// ```
    /// # fn main() -> Result<(), tollgate_redis::RateError> {
    /// let rate = tollgate_redis::Rate::new("5/s burst 9".parse().unwrap())?;
    /// assert_eq!(rate.burst(), 9);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    pub(crate) const fn n(&self) -> u64 {
        self.n
    }

    pub(crate) const fn reach(&self) -> Ticks {
        self.reach
    }

    /// Returns what `permits` cost, in units of 1/n microsecond.
    pub(crate) fn cost(&self, permits: u64) -> u128 {
        u128::from(permits) * u128::from(self.period)
    }

    /// Returns how many whole permits the units are.
    pub(crate) fn permits(&self, units: u128) -> u64 {
        to_u64(units / u128::from(self.period.max(1)))
    }

    /// Returns the units as permits, rounded up.
    pub(crate) fn permits_up(&self, units: u128) -> u64 {
        to_u64(units.div_ceil(u128::from(self.period.max(1))))
    }

    /// Returns the units in a span.
    pub(crate) fn units(&self, ticks: Ticks) -> u128 {
        u128::from(ticks.whole) * u128::from(self.n) + u128::from(ticks.part)
    }

    /// Returns the span of the units.
    pub(crate) fn ticks(&self, units: u128) -> Ticks {
        let n = u128::from(self.n.max(1));
        Ticks {
            whole: to_u64(units / n),
            part: to_u64(units % n),
        }
    }

    /// Returns the units as microseconds, rounded up.
    pub(crate) fn micros_up(&self, units: u128) -> u64 {
        to_u64(units.div_ceil(u128::from(self.n.max(1))))
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            n, period, burst, ..
        } = self;
        write!(f, "Rate({n}/{period}us burst {burst})")
    }
}

const MAX_SPAN: Duration = Duration::from_micros(SPAN);

fn to_u64(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The reason why a quota can't be decided by a server. Each variant is about one field.
///
/// ```
/// use tollgate::Quota;
/// use tollgate_redis::{Rate, RateError};
///
/// let error = Rate::new(Quota::per_second(10).initial(3)).unwrap_err();
/// assert_eq!(error, RateError::Initial { initial: 3, burst: 10 });
/// assert_eq!(error.field(), "initial");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RateError {
    /// The number of permits is 0.
    ZeroPermits,
    /// The period is 0.
    ZeroPeriod,
    /// The period is longer than 50 years.
    PeriodTooLong {
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
    /// The burst is 0, or would take more than 50 years to refill.
    Burst {
        /// The requested burst.
        burst: u64,
        /// The largest burst that fits at this rate.
        max: u64,
    },
    /// The initial permits are not the burst: a key that does not exist is full.
    Initial {
        /// The requested number of initial permits.
        initial: u64,
        /// The burst.
        burst: u64,
    },
}

impl RateError {
    /// Returns the name of the field that is wrong.
    ///
    /// ```
    /// use tollgate::Quota;
    /// use tollgate_redis::Rate;
    ///
    /// assert_eq!(Rate::new(Quota::per_second(0)).unwrap_err().field(), "n");
    /// ```
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::ZeroPermits | Self::RateTooFine { .. } => "n",
            Self::ZeroPeriod | Self::PeriodTooLong { .. } => "period",
            Self::Burst { .. } => "burst",
            Self::Initial { .. } => "initial",
        }
    }
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field();
        match self {
            Self::ZeroPermits => write!(f, "{field} is 0, but must be at least 1 permit"),
            Self::ZeroPeriod => write!(f, "{field} is 0, but must be at least 1ns"),
            Self::PeriodTooLong { period } => {
                write!(f, "{field} is {period:?}, but must be at most {MAX_SPAN:?}")
            }
            Self::RateTooFine { n, period } => write!(
                f,
                "{field} is {n} every {period:?}, but as a reduced fraction of permits and \
                 microseconds it must be at most {MAX_N}: choose a number that shares more \
                 divisors with the period"
            ),
            Self::Burst { burst, max } => {
                write!(f, "{field} is {burst}, but must be from 1 to {max}")?;
                match *max < MAX_BURST {
                    true => f.write_str(": at this rate, more take over 50 years to refill"),
                    false => Ok(()),
                }
            }
            Self::Initial { initial, burst } => write!(
                f,
                "{field} is {initial}, but must be the burst, which is {burst}, or be left out: \
                 a key that does not exist is full"
            ),
        }
    }
}

impl Error for RateError {}
