//! [`LimiterError`]: why a limiter or a table can't be made or changed.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::quota::QuotaError;

/// The reason why a limiter or a table of keys can't be made or changed. Each variant except
/// [`Quota`](Self::Quota) is about one field. It holds the field's value and the allowed range,
/// unless these are always the same.
///
/// ```
/// use tollgate::error::{LimiterError, QuotaError};
/// use tollgate::{Leases, Quota};
///
/// let error = Leases::token_bucket(Quota::per_second(100).burst(20), 20).unwrap_err();
/// assert_eq!(error, LimiterError::LeasesTooLarge { total: 20, max: 19 });
/// assert_eq!(error.field(), "total");
///
/// let error = Leases::token_bucket(Quota::per_second(0), 20).unwrap_err();
/// assert_eq!(error, LimiterError::Quota(QuotaError::ZeroPermits));
/// assert_eq!(error.to_string(), "n is 0, but must be at least 1 permit");
/// ```
///
/// `?` converts it to a [`ComposeError`](crate::error::ComposeError). `Debug` shows the variant and
/// its fields, also where `main` returns this error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimiterError {
    /// The quota can't be represented. The inner error says why.
    Quota(QuotaError),
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
    /// A key can't have an override: the table was made without any.
    NoOverrides,
    /// All overrides are in use: no further key can have one.
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
}

impl LimiterError {
    /// Returns the name of the field that is wrong.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Quota(error) => error.field(),
            Self::ZeroShards | Self::TooManyShards { .. } => "shards",
            Self::ZeroLeases | Self::LeasesTooLarge { .. } => "total",
            Self::ZeroSlots | Self::TooManySlots { .. } | Self::SlotsUneven { .. } => "slots",
            Self::LogTooLarge { .. } => "n",
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

    /// Returns the field and what is allowed, for [`const_unwrap!`](crate::const_unwrap).
    #[doc(hidden)]
    pub const fn const_message(&self) -> &'static str {
        match self {
            Self::Quota(error) => error.const_message(),
            // No `const` constructor of this crate returns the other errors.
            _ => self.field(),
        }
    }
}

impl fmt::Display for LimiterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field();
        match self {
            Self::Quota(error) => fmt::Display::fmt(error, f),
            Self::ZeroLeases => write!(f, "{field} is 0, but must be at least 1 permit"),
            Self::ZeroShards
            | Self::ZeroSlots
            | Self::ZeroConcurrency
            | Self::ZeroCapacity
            | Self::ZeroPlans
            | Self::ZeroOverrides => write!(f, "{field} is 0, but must be at least 1"),
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
                "{field} are 0: to override a key's quota, make the table with_overrides"
            ),
            Self::OverridesInUse { max } => write!(
                f,
                "{field} are all in use: at most {max} keys of this table can have one"
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
        }
    }
}

// `source` is `None` for a wrapped error too: its text is already that of this error.
impl Error for LimiterError {}

impl From<QuotaError> for LimiterError {
    fn from(error: QuotaError) -> Self {
        Self::Quota(error)
    }
}
