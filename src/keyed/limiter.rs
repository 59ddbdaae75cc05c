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
/// [`with_overrides`](Self::with_overrides). `KeyedMap` (feature `map`) keeps the keys, so that they
/// can be listed, and any of them can have its own; it takes more memory and time for a key.
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
/// It has a fixed size: all memory is allocated when it is made, 24 bytes a key, and nothing for
/// keys afterwards. A key is known by 60 bits of its hash, which is seeded anew for each table. The
/// key itself is not kept, so the table has no key type: each call takes any key that has a hash. A
/// key enters the table with the first permit taken, and need not be removed: once it is idle,
/// another key can take its place. Only where neither an unused place nor that of an idle key is in
/// reach, [`Overflow`] says what happens. How all this works, and what it costs, is in
/// `docs/KEYS.md`.
///
/// # What is promised
///
/// **The bound.** Each key is held to the bound of its algorithm, over every interval, on the ticks
/// at which its grants are counted, as by a limiter of its own. A key allows one burst more for
/// each time that it is evicted, removed or reset. A key that left as idle changes nothing: when it
/// comes again, it is counted no earlier than the tick at which it became idle, also if the
/// caller's own tick is older.
///
/// **Many threads.** No decision waits for another thread, wherever that thread stops, if the
/// exchange of two words is lock-free ([`Keyed::is_lock_free`]).
///
/// **Few collisions.** Two keys whose hashes agree in 60 bits share a limit: among ten million keys
/// there are such two with a chance of one in 20 000.
pub struct Keyed<A, C = SystemClock, S = SeededHasher> {
    pub(super) core: Core<A>,
    pub(super) clock: C,
    pub(super) hasher: S,
}

/// How many hundredths of a slot there are for each key.
const SLOTS_IN_100_KEYS: u128 = 149;

impl<A: Algorithm> Keyed<A> {
    /// A table for `capacity` keys, on the system's clock.
    ///
    /// The table has room for as many, all in use, with an exception in about ten thousand. This is
    /// no bound: as many keys come in as find a place, up to [`slots`](Self::slots). No table has
    /// fewer than 2048 slots, with room for about 1300 keys: to see an [`Overflow`], a test must
    /// bring many more keys than that.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the capacity is 0, or there is not as much memory.
    pub fn new(algorithm: A, capacity: usize) -> Result<Self, ConfigError> {
        Self::with_clock(algorithm, capacity, SystemClock)
    }
}

impl<A: Algorithm, C> Keyed<A, C> {
    /// A table for `capacity` keys, on a clock of your own.
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
    /// [`ConfigError`] if the capacity is 0, or there is not as much memory.
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
    /// A table in which each key has one of up to eight plans. A plan is known by its place in this
    /// list: see [`plan`](Self::plan). Where the list comes from a configuration, give the plans
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
    /// [`ConfigError`] if there are no plans or too many, the capacity is 0, or there is not as
    /// much memory.
    pub fn with_plans(
        plans: impl IntoIterator<Item = A>,
        capacity: usize,
        clock: C,
    ) -> Result<Self, ConfigError> {
        Self::of(Plans::several(plans)?, capacity, clock)
    }

    /// The same with a name for each plan, of 1 to 64 bytes. [`plan_named`](Self::plan_named) finds
    /// a plan by its name, and so does a [snapshot](Self::snapshot): the order of the plans may
    /// change between two processes.
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
    /// or that of another plan.
    pub fn with_named_plans(
        plans: impl IntoIterator<Item = (impl Into<String>, A)>,
        capacity: usize,
        clock: C,
    ) -> Result<Self, ConfigError> {
        Self::of(Plans::named(plans)?, capacity, clock)
    }
}

impl<A: ChangeQuota + Settings + Clone, C, S> Keyed<A, C, S> {
    /// The same empty table, in which up to `n` keys can have an algorithm of their own, or a quota
    /// of their own: see [`set_algorithm`](Self::set_algorithm).
    ///
    /// Each takes 400 to 1000 bytes, which are allocated here. A table with overrides has at most seven
    /// plans. A decision on a known key without an override takes as long as before.
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
    /// [`ConfigError`] if `n` is 0 or above 1 048 576, there is not as much memory, or the table has
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

/// An empty table for `capacity` keys.
fn table_for(capacity: usize) -> Result<Table, ConfigError> {
    let max = max_capacity();
    match capacity {
        0 => Err(ConfigError::ZeroCapacity),
        n if n > max => Err(ConfigError::CapacityTooLarge { capacity, max }),
        n => {
            let slots = n as u128 * SLOTS_IN_100_KEYS / 100;
            let pairs = (slots.div_ceil(2 * SLOTS as u128) as u64).max(LEAST_PAIRS);
            // As small as it can be, where all orders are visited.
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

/// As many keys as their slots have addresses.
const fn max_capacity() -> usize {
    usize::MAX >> 6
}

impl<A, C, S> Keyed<A, C, S> {
    /// The same empty table, with another hasher.
    ///
    /// A [snapshot](Self::snapshot) of a table whose hasher has no [seed](KeyHasher::seed), as
    /// `RandomState` has none, can't be restored in another process: for that take
    /// [`SeededHasher`], or a hasher that is the same in each.
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

    /// The same table, which does this when there is no room for a key.
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

    /// The clock.
    #[inline]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// The hasher.
    pub const fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Says what happens when there is no room for a key.
    pub const fn overflow(&self) -> Overflow {
        self.core.overflow
    }

    /// How many plans there are.
    pub fn plans(&self) -> usize {
        self.core.plans.count()
    }

    /// Whether this processor exchanges two words in one step. Where it does not, a lock is held
    /// for a few instructions, and a thread that is preempted there blocks the others.
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
