use super::hasher::KeyHasher;
use super::hasher::SeededHasher;
use ::core::fmt;
use ::core::num::NonZeroU64;
use std::string::String;

use super::core::Core;
use super::plans::Plans;
use super::probe_seq::LEAST_PAIRS;
use super::table::Table;
use crate::algorithm::Algorithm;
use crate::algorithm::ChangeQuota;
use crate::algorithm::Settings;
use crate::clock::SystemClock;
use crate::overflow::Overflow;
use crate::quota::ConfigError;
use crate::sync::{IS_MODEL, SLOTS};

/// A limit for each key, such as a user, an address or a token, in one table of fixed size.
///
/// A bounded number of keys can have algorithms of their own:
/// [`with_overrides`](Self::with_overrides). `KeyedMap` (feature `map`) stores the keys, can list
/// them, and gives any of them its own algorithm; it needs more memory and time for each key.
///
/// ```
/// use tollgate::{Keyed, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Keyed::token_bucket(Quota::per_minute(100), 1_000_000)?;
/// limiter.try_acquire("alice")?;
/// limiter.try_acquire(&String::from("alice"))?;
/// limiter.try_acquire(&(7_u32, "bob"))?;
/// assert_eq!(limiter.key("alice").available(), 98);
/// assert_eq!(limiter.len(), 2);
/// # Ok(())
/// # }
/// ```
///
/// The size is fixed: the table allocates 24 bytes for each key of its capacity when it is created,
/// and nothing afterwards. It does not store keys but knows each by 60 bits of its hash, which has
/// a random seed. So it has no key type: each call takes any key that can be hashed. A key enters
/// the table with the first permit that it takes, and need not be removed: once it is idle, another
/// key can take its slot. If a new key finds neither an unused slot nor that of an idle key in
/// reach, [`Overflow`] says what happens. `docs/KEYS.md` explains how all this works and what it
/// costs.
///
/// # Guarantees
///
/// **The bound.** Each key keeps to its algorithm's bound over every interval, measured at the
/// ticks at which its grants are counted, like a limiter of its own. Each time that a key is
/// evicted, removed or reset, it may have one more burst. Expiry allows none: a key that left while
/// idle and returns is counted no earlier than the tick at which it became idle, even if the
/// caller's tick is older.
///
/// **Many threads.** No decision waits for another thread, wherever that thread stops, if the
/// processor exchanges two words in one step ([`Keyed::is_lock_free`]).
///
/// **Few collisions.** Two keys whose hashes agree in 60 bits share a limit. Among ten million keys
/// the probability that two collide is 1 in 20 000.
pub struct Keyed<A, C = SystemClock, S = SeededHasher> {
    pub(super) core: Core<A>,
    pub(super) clock: C,
    pub(super) hasher: S,
}

/// Slots for every 100 keys of the capacity.
const SLOTS_IN_100_KEYS: u128 = 149;

impl<A: Algorithm> Keyed<A> {
    /// Creates a table for `capacity` keys, on the system's clock.
    ///
    /// A table has room for `capacity` keys that are all in use, except about one in ten thousand.
    /// The capacity is not an upper bound: keys are inserted while they find a slot, up to
    /// [`slots`](Self::slots). The smallest table has 2048 slots, which is room for about 1300
    /// keys, so a test of [`Overflow`] needs many more keys than that.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the capacity is 0, or there is not enough memory.
    pub fn new(algorithm: A, capacity: usize) -> Result<Self, ConfigError> {
        Self::with_clock(algorithm, capacity, SystemClock)
    }
}

impl<A: Algorithm, C> Keyed<A, C> {
    /// Creates a table for `capacity` keys, on a clock of your own.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::new(Quota::per_second(1))?;
    /// let limiter = Keyed::with_clock(bucket, 1000, clock.clone())?;
    /// assert!(limiter.try_acquire("alice").is_ok());
    /// assert!(limiter.try_acquire("alice").is_err());
    /// clock.advance(Duration::from_secs(1));
    /// assert!(limiter.try_acquire("alice").is_ok());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the capacity is 0, or there is not enough memory.
    pub fn with_clock(algorithm: A, capacity: usize, clock: C) -> Result<Self, ConfigError> {
        Self::of(Plans::one(algorithm), capacity, clock)
    }

    fn of(plans: Plans<A>, capacity: usize, clock: C) -> Result<Self, ConfigError> {
        let table = table_for(capacity)?;
        Ok(Self {
            core: Core::new(table, plans),
            clock,
            hasher: SeededHasher::random(),
        })
    }
}

impl<A: ChangeQuota, C> Keyed<A, C> {
    /// Creates a table with one to eight plans. A plan is an algorithm, known by its place in this
    /// list: see [`plan`](Self::plan). If the list comes from a configuration, give the plans
    /// names: [`with_named_plans`](Self::with_named_plans).
    ///
    /// ```
    /// use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let plans = [10, 1000].map(|n| TokenBucket::new(Quota::per_hour(n)));
    /// let [free, paid] = plans;
    /// let limiter = Keyed::with_plans([free?, paid?], 1000, ManualClock::new())?;
    /// limiter.try_acquire_n("alice", 9)?;
    /// assert_eq!(limiter.key("alice").available(), 1);
    /// assert_eq!(limiter.plan(1).key("bob").available(), 1000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if there are no plans or more than eight, the capacity is 0, or there is not
    /// enough memory.
    pub fn with_plans(
        plans: impl IntoIterator<Item = A>,
        capacity: usize,
        clock: C,
    ) -> Result<Self, ConfigError> {
        Self::of(Plans::several(plans)?, capacity, clock)
    }

    /// Creates a table whose plans have names of 1 to 64 bytes. [`plan_named`](Self::plan_named)
    /// finds a plan by its name. A [snapshot](Self::snapshot) does so too, so the order of the
    /// plans may change between two processes.
    ///
    /// ```
    /// use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let free = TokenBucket::new(Quota::per_hour(10))?;
    /// let paid = TokenBucket::new(Quota::per_hour(1000))?;
    /// let plans = [("free", free), ("paid", paid)];
    /// let limiter = Keyed::with_named_plans(plans, 1000, ManualClock::new())?;
    /// let paid = limiter.plan_named("paid").ok_or("no such plan")?;
    /// assert_eq!(paid.key("alice").available(), 1000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConfigError`] as for [`with_plans`](Self::with_plans), and if a name is empty, too long,
    /// or used twice.
    pub fn with_named_plans(
        plans: impl IntoIterator<Item = (impl Into<String>, A)>,
        capacity: usize,
        clock: C,
    ) -> Result<Self, ConfigError> {
        Self::of(Plans::named(plans)?, capacity, clock)
    }
}

impl<A: ChangeQuota + Settings + Clone, C, S> Keyed<A, C, S> {
    /// Returns the same table, empty, with room for up to `n` overrides: algorithms or quotas of
    /// single keys ([`set_algorithm`](Self::set_algorithm)).
    ///
    /// All memory for overrides is allocated here, 600 to 1400 bytes each. A table with overrides
    /// has at most seven plans. Decisions on known keys without an override take as long as before.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(10), 1000)?.with_overrides(100)?;
    /// limiter.set_quota_of("alice", Quota::per_hour(1000))?;
    /// assert_eq!(limiter.key("alice").available(), 1000);
    /// assert_eq!(limiter.key("bob").available(), 10);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if `n` is 0 or above 1 048 576, there is not enough memory, or the table has
    /// eight plans.
    pub fn with_overrides(self, n: usize) -> Result<Self, ConfigError> {
        let core = self.core.emptied();
        let core = Core {
            plans: core.plans.with_overrides(n)?,
            ..core
        };
        Ok(Self { core, ..self })
    }
}

/// Creates an empty table for `capacity` keys.
fn table_for(capacity: usize) -> Result<Table, ConfigError> {
    let max = max_capacity();
    match capacity {
        0 => Err(ConfigError::ZeroCapacity),
        n if n > max => Err(ConfigError::CapacityTooLarge { capacity, max }),
        n => {
            let slots = n as u128 * SLOTS_IN_100_KEYS / 100;
            let pairs = (slots.div_ceil(2 * SLOTS as u128) as u64).max(LEAST_PAIRS);
            // Under a model checker, as small as possible.
            let pairs = if IS_MODEL {
                n.div_ceil(2) as u64
            } else {
                pairs
            };
            let pairs = NonZeroU64::new(pairs).unwrap_or(NonZeroU64::MIN);
            Table::new(pairs).ok_or(ConfigError::CapacityTooLarge { capacity, max })
        }
    }
}

/// The most keys whose slots can be addressed.
const fn max_capacity() -> usize {
    usize::MAX >> 6
}

impl<A, C, S> Keyed<A, C, S> {
    /// Returns the same table, empty, with another hasher.
    ///
    /// If the hasher has no [seed](KeyHasher::seed), as `RandomState`, a [snapshot](Self::snapshot)
    /// can't be restored in another process. Use [`SeededHasher`], or a hasher that is the same in
    /// each process.
    ///
    /// ```
    /// use std::hash::RandomState;
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_second(10), 1000)?;
    /// let limiter = limiter.with_hasher(RandomState::new());
    /// limiter.try_acquire("alice")?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_hasher<T: KeyHasher>(self, hasher: T) -> Keyed<A, C, T> {
        Keyed {
            core: self.core.emptied(),
            clock: self.clock,
            hasher,
        }
    }

    /// Returns the same table with this behavior when there is no room for a key.
    ///
    /// ```
    /// use tollgate::{Keyed, Overflow, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(10), 1)?.with_overflow(Overflow::Deny);
    /// let granted = (0..10_000).filter(|key| limiter.try_acquire(key).is_ok()).count();
    /// assert_eq!(limiter.stats().no_room, 10_000 - granted as u64);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_overflow(mut self, overflow: Overflow) -> Self {
        self.core.overflow = overflow;
        self
    }

    /// Returns the clock.
    #[inline]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Returns the hasher.
    pub const fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Returns what happens when there is no room for a key.
    pub const fn overflow(&self) -> Overflow {
        self.core.overflow
    }

    /// Returns the number of plans.
    pub fn plans(&self) -> usize {
        self.core.plans.count()
    }

    /// Returns whether this processor exchanges two words in one step. If it does not, each change
    /// holds a lock for a few instructions, and a thread that is preempted there blocks the others.
    #[must_use]
    pub fn is_lock_free() -> bool {
        crate::sync::AtomicU128::is_lock_free()
    }
}

impl<A: fmt::Debug, C: fmt::Debug, S> fmt::Debug for Keyed<A, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed")
            .field("plans", &self.core.plans)
            .field("tracked", &self.core.events.tracked())
            .field("overflow", &self.core.overflow)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
