use core::error::Error;
use core::fmt;
use core::time::Duration;

use super::{MAX_BURST, MAX_INTERVAL_NS, MAX_PER_NS};

/// The reason why a limiter or an algorithm could not be made. Each variant is about one field. It
/// holds the field's value and the allowed range, unless these are always the same.
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
/// `Debug` shows the variant and its fields, also where `main` returns this error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConfigError {
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
    /// The number of shards is 0.
    ZeroShards,
    /// The quota can't be split into this many shards.
    TooManyShards {
        /// The requested number of shards.
        shards: usize,
        /// The most shards that this quota can be split into.
        max: usize,
    },
    /// The number of permits to lend is 0.
    ZeroLeases,
    /// The number of permits to lend leaves none for the limiter.
    LeasesTooLarge {
        /// The requested number of permits.
        total: u64,
        /// The most permits that can be lent.
        max: u64,
    },
    /// The number of slots is 0.
    ZeroSlots,
    /// The number of slots is too large.
    TooManySlots {
        /// The requested number of slots.
        slots: usize,
        /// The most slots that are possible.
        max: usize,
    },
    /// The window can't be divided into this many slots of equal length, in whole nanoseconds.
    SlotsUneven {
        /// The requested number of slots.
        slots: usize,
        /// The window.
        period: Duration,
    },
    /// The log can't keep this many permits.
    LogTooLarge {
        /// The requested number of permits.
        n: u64,
        /// The most permits that a log can keep.
        max: u64,
    },
    /// The capacity is 0 keys.
    ZeroCapacity,
    /// The capacity is more keys than are possible, or than there is memory for.
    CapacityTooLarge {
        /// The requested capacity.
        capacity: usize,
        /// The largest capacity that is possible.
        max: usize,
    },
    /// The list of plans is empty.
    ZeroPlans,
    /// There are more plans than a key can refer to.
    TooManyPlans {
        /// The requested number of plans.
        plans: usize,
        /// The most plans that are possible.
        max: usize,
    },
    /// The table has no plan with this number.
    NoSuchPlan {
        /// The requested plan.
        plan: usize,
        /// How many plans there are.
        plans: usize,
    },
    /// The name of a plan is empty or too long.
    PlanNameLength {
        /// The plan, by its position in the list.
        plan: usize,
        /// The length of the name, in bytes.
        length: usize,
        /// The longest name, in bytes.
        max: usize,
    },
    /// Two plans have the same name.
    SamePlanName {
        /// The later plan, by its position in the list.
        plan: usize,
        /// The earlier plan that has the same name.
        other: usize,
    },
    /// The number of overrides is 0.
    ZeroOverrides,
    /// There are more overrides than a table can have, or than there is memory for.
    TooManyOverrides {
        /// The requested number of overrides.
        overrides: usize,
        /// The most overrides that a table can have.
        max: usize,
    },
    /// A key can't have an algorithm of its own: the table was made without overrides.
    NoOverrides,
    /// All overrides are in use: no further key can have an algorithm of its own.
    OverridesInUse {
        /// The number of overrides that the table was made with.
        max: usize,
    },
    /// The number of outcomes differs from the number of keys.
    OutcomesLength {
        /// The number of keys.
        keys: usize,
        /// The length of the slice for the outcomes.
        outcomes: usize,
    },
    /// The concurrency limit is 0.
    ZeroConcurrency,
    /// The concurrency limit is more than the word can count.
    ConcurrencyTooLarge {
        /// The requested limit.
        limit: u64,
        /// The largest limit that can be counted.
        max: u64,
    },
    /// A composition has no members.
    ZeroMembers,
    /// A composition has too many members.
    TooManyMembers {
        /// The requested number of members.
        members: usize,
        /// The most members that are possible.
        max: usize,
    },
    /// Two members of a composition have different clocks.
    ClocksDiffer {
        /// The later member.
        member: usize,
        /// The earlier member, or the same one if it is made of limits on different clocks.
        other: usize,
    },
    /// A member of a composition is made of too many limits, each inside the other.
    NestedTooDeep {
        /// The member.
        member: usize,
        /// How deep it is nested.
        depth: u32,
        /// The deepest that is possible.
        max: u32,
    },
    /// No member of a composition has a clock.
    NoClock,
    /// Two members of a composition can't undo a grant.
    SecondWithoutUndo {
        /// The later member.
        member: usize,
        /// The earlier member.
        other: usize,
    },
}

impl ConfigError {
    /// Returns the name of the field that is wrong.
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
            Self::ZeroMembers | Self::TooManyMembers { .. } => "members",
            Self::ClocksDiffer { .. } | Self::NoClock => "clock",
            Self::SecondWithoutUndo { .. } | Self::NestedTooDeep { .. } => "member",
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
            // No `const` constructor returns the other errors.
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
            | Self::ZeroOverrides
            | Self::ZeroMembers => {
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
                "{field} is {total}, but must be from 1 to {max}: at least one permit must remain"
            ),
            Self::TooManySlots { slots, max } => {
                write!(f, "{field} is {slots}, but must be from 1 to {max}")
            }
            Self::CapacityTooLarge { capacity, max } => write!(
                f,
                "{field} is {capacity}, but must be from 1 to {max}, and there must be memory for it"
            ),
            Self::TooManyMembers { members, max } => {
                write!(f, "{field} are {members}, but must be from 1 to {max}")
            }
            Self::ClocksDiffer { member, other } if member == other => {
                write!(
                    f,
                    "{field} of member {member} must be a single clock, but its limits have several"
                )
            }
            Self::ClocksDiffer { member, other } => write!(
                f,
                "{field} of member {member} must be the same as that of member {other}"
            ),
            Self::NestedTooDeep { member, depth, max } => write!(
                f,
                "{field} {member} is nested {depth} deep, but must be at most {max}"
            ),
            Self::NoClock => write!(f, "{field} is missing: at least one member must have one"),
            Self::SecondWithoutUndo { member, other } => write!(
                f,
                "{field} {member} can't undo a grant, and neither can member {other}: at most one \
                 member may be like this"
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
                "{field} of plan {plan} is also that of plan {other}, but must be unique"
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
                    "{field} has room for {outcomes}, but must have room for {keys}, one for each key"
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
                "{field} is {n}, but must be from 1 to {max}: a log keeps every permit"
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

impl Error for ConfigError {}
