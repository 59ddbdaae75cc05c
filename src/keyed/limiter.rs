use core::fmt;
use std::string::String;

use super::admit::Keys;
use super::find::Table;
use super::hasher::{KeyHasher, SeededHasher};
use super::overflow::Overflow;
use super::plans::Plans;
use crate::adjustable::Keep;
use crate::algorithm::{Algorithm, ChangeQuota, Settings};
use crate::clock::SystemClock;
use crate::limiter_error::LimiterError;

/// A limit for each key, such as a user, an address or a token, in one table of fixed size.
///
/// A bounded number of keys can have overrides: [`with_overrides`](Self::with_overrides). The table
/// stores hashes of the keys, so it can't list the keys; `examples/own_map.rs` can.
///
/// ```
/// use tollgate::{Keyed, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Keyed::token_bucket(Quota::per_hour(100), 1_000_000)?;
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
/// and nothing afterwards. It does not store keys, only 60 bits of their hashes, which have a
/// random seed. So it has no key type: each call takes any key that implements `Hash`.
///
/// A key enters the table when it first takes a permit. You need not remove it. Once it is *idle*,
/// which means that it decides like a fresh key because its bucket is full or its window is over,
/// another key can take its slot. A new key can use up to 16 of the slots. If all of these belong
/// to keys that are not idle, [`Overflow`] says what happens. `docs/KEYS.md` explains how all this
/// works and what it costs.
///
/// # Guarantees
///
/// **The bound.** Each key keeps its algorithm's bound over every interval of
/// [`Granted::at`](crate::Granted::at), as if it had a limiter of its own. Each eviction, removal
/// or reset of a key allows one more burst. An idle key that loses its slot and returns gains
/// nothing: even if the caller's tick is older, it counts no earlier than the tick at which it
/// became idle.
///
/// **Many threads.** No decision waits for another thread, not even for one that is preempted in
/// the middle of a decision. This requires a processor with an atomic exchange of 128 bits
/// ([`Keyed::is_lock_free`]).
///
/// **Few collisions.** Two keys whose hashes agree in 60 bits share a limit. Among ten million keys
/// the probability that two collide is 1 in 20 000.
pub struct Keyed<A, C = SystemClock, S = SeededHasher> {
    pub(super) keys: Keys<A>,
    pub(super) clock: C,
    pub(super) hasher: S,
}

impl<A: Algorithm> Keyed<A> {
    /// Creates a table for `capacity` keys, on the system's clock.
    ///
    /// For `capacity`, choose the number of keys that will be in use, that is, not idle, at the
    /// same time. In a table with that many, about one new key in a thousand finds no room. The
    /// capacity is not an upper bound: keys are inserted while they find a slot, up to
    /// [`slots`](Self::slots). The smallest table has 2048 slots, which is room for about 1300
    /// keys, so a test of [`Overflow`] needs many more keys than that.
    ///
    /// # Errors
    ///
    /// [`LimiterError`] if the capacity is 0, or there is not enough memory.
    pub fn new(algorithm: A, capacity: usize) -> Result<Self, LimiterError> {
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
    /// [`LimiterError`] if the capacity is 0, or there is not enough memory.
    pub fn with_clock(algorithm: A, capacity: usize, clock: C) -> Result<Self, LimiterError> {
        Self::of(Plans::one(algorithm), capacity, clock)
    }

    fn of(plans: Plans<A>, capacity: usize, clock: C) -> Result<Self, LimiterError> {
        Ok(Self {
            keys: Keys::new(Table::with_capacity(capacity)?, plans),
            clock,
            hasher: SeededHasher::random(),
        })
    }
}

impl<A: ChangeQuota, C> Keyed<A, C> {
    /// Creates a table with one to eight plans. A plan is an algorithm, identified by its position
    /// in this list. The table itself uses plan 0, and a key [any](super::Key::with_plan). If the
    /// list comes from a configuration, give the plans names:
    /// [`with_named_plans`](Self::with_named_plans).
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
    /// assert_eq!(limiter.key("bob").with_plan(1).available(), 1000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimiterError`] if there are no plans or more than eight, the capacity is 0, or there is
    /// not enough memory.
    pub fn with_plans(
        plans: impl IntoIterator<Item = A>,
        capacity: usize,
        clock: C,
    ) -> Result<Self, LimiterError> {
        Self::of(Plans::several(plans)?, capacity, clock)
    }

    /// Creates a table whose plans have names of 1 to 64 bytes. [`plan_named`](Self::plan_named)
    /// finds a plan by its name, and so does [`restore`](Self::restore). So the order of the plans
    /// may change between two processes.
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
    /// assert_eq!(limiter.key("alice").with_plan(paid).available(), 1000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimiterError`] as for [`with_plans`](Self::with_plans), and if a name is empty, too long,
    /// or used twice.
    pub fn with_named_plans(
        plans: impl IntoIterator<Item = (impl Into<String>, A)>,
        capacity: usize,
        clock: C,
    ) -> Result<Self, LimiterError> {
        Self::of(Plans::named(plans)?, capacity, clock)
    }
}

impl<A: ChangeQuota, C, S> Keyed<A, C, S> {
    /// Returns the same table with another effect of a move to another plan, to an override or back
    /// on the permits of a key. It is [`Keep::AsIs`] unless set here.
    ///
    /// With [`Keep::Used`] a key gets the difference when it moves to a larger plan. A key that
    /// alternates between plans gets at most the larger burst and what the rates refill. In the
    /// other ways it can get the burst of each plan, and with [`Keep::Fresh`] at each move. No move
    /// ends a ban.
    ///
    /// ```
    /// use tollgate::{Keep, Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let free = TokenBucket::new(Quota::per_day(100))?;
    /// let paid = TokenBucket::new(Quota::per_day(1000))?;
    /// let limiter = Keyed::with_plans([free, paid], 1000, ManualClock::new())?;
    /// let limiter = limiter.with_moves(Keep::Used);
    /// let alice = limiter.key("alice");
    /// alice.try_acquire_n(60)?;
    /// assert_eq!(alice.with_plan(1).available(), 940);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_moves(mut self, keep: Keep) -> Self {
        self.keys.plans_mut().set_moves(keep);
        self
    }
}

impl<A: ChangeQuota + Settings + Clone, C, S> Keyed<A, C, S> {
    /// Returns the same table, empty, with room for up to `n` overrides: algorithms or quotas of
    /// single keys ([`set_override`](super::Key::set_override)).
    ///
    /// All memory for overrides is allocated here, 600 to 1400 bytes each. A table with overrides
    /// has at most seven plans. Overrides do not slow down decisions on known keys that have none.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(10), 1000)?.with_overrides(100)?;
    /// limiter.key("alice").set_quota(Quota::per_hour(1000))?;
    /// assert_eq!(limiter.key("alice").available(), 1000);
    /// assert_eq!(limiter.key("bob").available(), 10);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimiterError`] if `n` is 0 or above 1 048 576, there is not enough memory, or the table
    /// has eight plans.
    pub fn with_overrides(self, n: usize) -> Result<Self, LimiterError> {
        let keys = self.keys.with_overrides(n)?;
        Ok(Self { keys, ..self })
    }
}

impl<A, C, S> Keyed<A, C, S> {
    /// Returns the same table, empty, with another hasher.
    ///
    /// To restore a [snapshot](Self::snapshot) in another process, use a hasher with a
    /// [seed](KeyHasher::seed), such as [`SeededHasher`], or one that gives the same hashes in each
    /// process. `RandomState` does neither.
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
            keys: self.keys.emptied(),
            clock: self.clock,
            hasher,
        }
    }

    /// Returns the same table with this behavior when there is no room for a key.
    ///
    /// ```
    /// use tollgate::keyed::Overflow;
    /// use tollgate::{Keyed, Quota};
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
        self.keys.set_overflow(overflow);
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
        self.keys.overflow()
    }

    /// Returns the number of plans.
    pub fn plans(&self) -> usize {
        self.keys.plans().count()
    }

    /// Returns whether this processor has an atomic exchange of 128 bits. If it has none, each
    /// change holds a lock for a few instructions, and a thread that is preempted there blocks the
    /// others.
    #[must_use]
    pub fn is_lock_free() -> bool {
        crate::sync::AtomicU128::is_lock_free()
    }
}

impl<A: fmt::Debug, C: fmt::Debug, S> fmt::Debug for Keyed<A, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed")
            .field("plans", self.keys.plans())
            .field("tracked", &self.keys.tracked())
            .field("overflow", &self.overflow())
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
