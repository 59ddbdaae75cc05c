use core::error::Error;
use core::fmt;
use core::time::Duration;

use super::{MAX_BURST, MAX_INTERVAL_NS, MAX_PER_NS};

/// Why an algorithm could not be made. Each variant names a field, what it was, and what is
/// allowed.
///
/// ```
/// use tollgate::{ConfigError, Quota, TokenBucket};
///
/// let error = TokenBucket::new(Quota::per_second(10).initial(30)).unwrap_err();
/// assert_eq!(error, ConfigError::InitialAboveBurst { initial: 30, burst: 10 });
/// assert_eq!(error.field(), "initial");
/// assert_eq!(error.to_string(), "initial is 30, but must be at most the burst, which is 10");
/// ```
///
/// `Debug` says the same as `Display`, for a `main` that returns it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConfigError {
    /// No permits at all.
    ZeroPermits,
    /// A period of nothing.
    ZeroPeriod,
    /// A period that 64 bits of nanoseconds don't hold.
    PeriodTooLong {
        /// What was asked for.
        period: Duration,
    },
    /// More than 10 permits a nanosecond.
    RateTooHigh {
        /// The permits that were asked for.
        n: u64,
        /// The period that was asked for.
        period: Duration,
    },
    /// Less than one permit in 365 days.
    RateTooLow {
        /// The permits that were asked for.
        n: u64,
        /// The period that was asked for.
        period: Duration,
    },
    /// A burst of nothing: nothing could ever be granted.
    ZeroBurst,
    /// A burst that the word does not hold at this rate, for 50 years and with a burst of debt.
    BurstTooLarge {
        /// What was asked for.
        burst: u64,
        /// The largest that fits at this rate.
        max: u64,
    },
    /// A start with more than the bucket can hold.
    InitialAboveBurst {
        /// What was asked for.
        initial: u64,
        /// What the bucket holds.
        burst: u64,
    },
    /// An emission interval of nothing.
    ZeroInterval,
    /// An emission interval above 365 days.
    IntervalTooLong {
        /// What was asked for.
        interval: Duration,
    },
    /// A tolerance that the word does not hold at this interval, for 50 years and with a burst of
    /// debt.
    ToleranceTooLong {
        /// What was asked for.
        tolerance: Duration,
        /// The longest that fits at this interval.
        max: Duration,
    },
    /// A rate whose interval is no whole number of nanoseconds, beside a tolerance that is.
    IntervalNotWhole {
        /// The permits that were asked for.
        n: u64,
        /// The period that was asked for.
        period: Duration,
    },
    /// A burst for a window: it has none beside its `n` permits.
    BurstInWindow {
        /// What was asked for.
        burst: u64,
        /// The window's permits.
        n: u64,
    },
    /// A start with other permits than a window has: each begins with `n`.
    InitialInWindow {
        /// What was asked for.
        initial: u64,
        /// The window's permits.
        n: u64,
    },
    /// A window longer than 50 years.
    WindowTooLong {
        /// What was asked for.
        period: Duration,
        /// The longest.
        max: Duration,
    },
    /// More permits in a window than the word can count, and tell the windows of 50 years.
    LimitTooLarge {
        /// What was asked for.
        n: u64,
        /// The most that fit a window of this length.
        max: u64,
        /// The window that was asked for.
        period: Duration,
        /// The shortest window that as many permits fit, if there is one.
        min_period: Option<Duration>,
    },
    /// No shards at all.
    ZeroShards,
    /// More shards than the quota can be split in.
    TooManyShards {
        /// What was asked for.
        shards: usize,
        /// The most that this quota can be split in.
        max: usize,
    },
    /// Nothing to lend.
    ZeroLeases,
    /// So much to lend that nothing would be left.
    LeasesTooLarge {
        /// What was asked for.
        total: u64,
        /// The most that can be lent.
        max: u64,
    },
    /// No slots at all.
    ZeroSlots,
    /// More slots than there can be.
    TooManySlots {
        /// What was asked for.
        slots: usize,
        /// The most that there can be.
        max: usize,
    },
    /// A window that so many slots can't share equally, in whole nanoseconds.
    SlotsUneven {
        /// What was asked for.
        slots: usize,
        /// The window.
        period: Duration,
    },
    /// A log of more permits than it can keep.
    LogTooLarge {
        /// What was asked for.
        n: u64,
        /// The most that can be kept.
        max: u64,
    },
    /// Room for no key at all.
    ZeroCapacity,
    /// Room for more keys than there can be, or than there is memory for.
    CapacityTooLarge {
        /// What was asked for.
        capacity: usize,
        /// The most that there can be.
        max: usize,
    },
    /// No plan at all.
    ZeroPlans,
    /// More plans than a key can tell apart.
    TooManyPlans {
        /// What was asked for.
        plans: usize,
        /// The most that there can be.
        max: usize,
    },
    /// A plan that the table does not have.
    NoSuchPlan {
        /// What was asked for.
        plan: usize,
        /// How many there are.
        plans: usize,
    },
    /// The name of a plan is empty or too long.
    PlanNameLength {
        /// The plan, by its place in the list.
        plan: usize,
        /// How many bytes its name has.
        length: usize,
        /// The most that it can have.
        max: usize,
    },
    /// Two plans have the same name.
    SamePlanName {
        /// The later plan, by its place in the list.
        plan: usize,
        /// The plan before it that has this name.
        other: usize,
    },
    /// No overrides at all.
    ZeroOverrides,
    /// More overrides than a table can have, or than there is memory for.
    TooManyOverrides {
        /// What was asked for.
        overrides: usize,
        /// The most that a table can have.
        max: usize,
    },
    /// A key can't have an algorithm of its own: the table was made without overrides.
    NoOverrides,
    /// As many keys as can have an algorithm of their own have one.
    OverridesInUse {
        /// How many can: what the table was made with.
        max: usize,
    },
    /// The number of outcomes differs from the number of keys.
    OutcomesLength {
        /// How many keys there are.
        keys: usize,
        /// How many outcomes there is room for.
        outcomes: usize,
    },
    /// A concurrency limit of 0.
    ZeroConcurrency,
    /// More at once than the word can count.
    ConcurrencyTooLarge {
        /// What was asked for.
        limit: u64,
        /// The most that can be counted.
        max: u64,
    },
}

impl ConfigError {
    /// The field that is wrong.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::ZeroPermits
            | Self::RateTooHigh { .. }
            | Self::RateTooLow { .. }
            | Self::LimitTooLarge { .. }
            | Self::LogTooLarge { .. } => "n",
            Self::ZeroPeriod | Self::PeriodTooLong { .. } | Self::WindowTooLong { .. } => "period",
            Self::ZeroBurst | Self::BurstTooLarge { .. } | Self::BurstInWindow { .. } => "burst",
            Self::InitialAboveBurst { .. } | Self::InitialInWindow { .. } => "initial",
            Self::ZeroInterval | Self::IntervalTooLong { .. } | Self::IntervalNotWhole { .. } => {
                "interval"
            }
            Self::ToleranceTooLong { .. } => "tolerance",
            Self::ZeroShards | Self::TooManyShards { .. } => "shards",
            Self::ZeroLeases | Self::LeasesTooLarge { .. } => "total",
            Self::ZeroSlots | Self::TooManySlots { .. } | Self::SlotsUneven { .. } => "slots",
            Self::ZeroCapacity | Self::CapacityTooLarge { .. } => "capacity",
            Self::ZeroPlans | Self::TooManyPlans { .. } => "plans",
            Self::NoSuchPlan { .. } => "plan",
            Self::PlanNameLength { .. } | Self::SamePlanName { .. } => "name",
            Self::ZeroOverrides
            | Self::TooManyOverrides { .. }
            | Self::NoOverrides
            | Self::OverridesInUse { .. } => "overrides",
            Self::OutcomesLength { .. } => "outcomes",
            Self::ZeroConcurrency | Self::ConcurrencyTooLarge { .. } => "limit",
        }
    }

    /// The field and what is allowed, for [`const_unwrap!`](crate::const_unwrap). It has no numbers
    /// of this error, because numbers can't be formatted at compile time.
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
            Self::BurstInWindow { .. } => "burst must be left out: a window has no other than n",
            Self::InitialInWindow { .. } => "initial must be left out: a window begins with n",
            Self::WindowTooLong { .. } => "period must be at most 50 years for a window",
            Self::LimitTooLarge { .. } => "n is larger than fits in a window of this period",
            // No constructor that is `const` returns the others.
            _ => self.field(),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field();
        let days = MAX_INTERVAL_NS / 86_400_000_000_000;
        match self {
            Self::ZeroPermits | Self::ZeroLeases => {
                write!(f, "{field} is 0, but must be at least 1 permit")
            }
            Self::ZeroShards
            | Self::ZeroSlots
            | Self::ZeroConcurrency
            | Self::ZeroCapacity
            | Self::ZeroPlans
            | Self::ZeroOverrides => {
                write!(f, "{field} is 0, but must be at least 1")
            }
            Self::TooManyShards { shards, max } => write!(
                f,
                "{field} is {shards}, but must be from 1 to {max} for this quota"
            ),
            Self::LeasesTooLarge { total, max: 0 } => {
                write!(f, "{field} is {total}, but this limit has nothing to lend")
            }
            Self::LeasesTooLarge { total, max } => write!(
                f,
                "{field} is {total}, but must be from 1 to {max}: a permit must be left"
            ),
            Self::TooManySlots { slots, max } => {
                write!(f, "{field} is {slots}, but must be from 1 to {max}")
            }
            Self::CapacityTooLarge { capacity, max } => write!(
                f,
                "{field} is {capacity}, but must be from 1 to {max}, and there must be memory for it"
            ),
            Self::TooManyPlans { plans, max } => {
                write!(f, "{field} are {plans}, but must be from 1 to {max}")
            }
            Self::NoSuchPlan { plan, plans } => {
                write!(f, "{field} is {plan}, but must be below {plans}")
            }
            Self::PlanNameLength { plan, length, max } => write!(
                f,
                "{field} of plan {plan} has {length} bytes, but must have from 1 to {max}"
            ),
            Self::SamePlanName { plan, other } => write!(
                f,
                "{field} of plan {plan} is that of plan {other}, but each plan must have its own"
            ),
            Self::TooManyOverrides { overrides, max } => write!(
                f,
                "{field} are {overrides}, but must be from 1 to {max}, and there must be memory for them"
            ),
            Self::NoOverrides => write!(
                f,
                "{field} are 0: for keys with algorithms of their own, make the table with_overrides"
            ),
            Self::OverridesInUse { max } => write!(
                f,
                "{field} are all in use: at most {max} keys of this table can have algorithms of their own"
            ),
            Self::OutcomesLength { keys, outcomes } => {
                write!(
                    f,
                    "{field} has room for {outcomes}, but must have for {keys}, one for each key"
                )
            }
            Self::ConcurrencyTooLarge { limit, max } => {
                write!(f, "{field} is {limit}, but must be from 1 to {max}")
            }
            Self::SlotsUneven { slots, period } => write!(
                f,
                "{field} is {slots}, but must divide {period:?} in whole nanoseconds"
            ),
            Self::LogTooLarge { n, max } => write!(
                f,
                "{field} is {n}, but a log keeps each permit, and must be from 1 to {max}"
            ),
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
                "{field} is {period:?} / {n}, but must be whole nanoseconds beside a tolerance"
            ),
            Self::BurstInWindow { burst, n } => write!(
                f,
                "{field} is {burst}, but a window of {n} permits has no other burst: leave it out"
            ),
            Self::InitialInWindow { initial, n } => write!(
                f,
                "{field} is {initial}, but a window begins with its {n} permits: leave it out"
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
                    Some(least) => write!(f, ", or the window at least {least:?} long"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for ConfigError {}
