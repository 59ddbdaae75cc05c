//! The methods of a table: decisions, plans and statistics.

use core::hash::Hash;
use std::string::String;

use super::core::Request;
use super::hasher::KeyHasher;
use super::limiter::Keyed;
use super::stats::{Event, KeyedStats};
use crate::algorithm::Algorithm;
use crate::clock::{Clock, Tick};
use crate::outcome::{Denied, Granted};
use crate::store::operations::Acquire;

impl<A, C, S> Keyed<A, C, S> {
    /// Returns the position of the plan with this name, or `None` if no plan has it. Plans have
    /// their positions and names from [`with_named_plans`](Self::with_named_plans). Look a plan up
    /// once, and use keys [under it](super::Key::with_plan).
    ///
    /// ```
    /// use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let plans = [("free", TokenBucket::new(Quota::per_hour(10))?)];
    /// let limiter = Keyed::with_named_plans(plans, 1000, ManualClock::new())?;
    /// let free = limiter.plan_named("free").ok_or("no such plan")?;
    /// limiter.key("alice").with_plan(free).try_acquire()?;
    /// assert!(limiter.plan_named("paid").is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn plan_named(&self, name: &str) -> Option<usize> {
        self.core.plans.position(name)
    }

    /// Iterates over the names of the plans, in their order. The iterator is empty if the plans
    /// have no names.
    ///
    /// ```
    /// use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_hour(10))?;
    /// let plans = [("free", bucket), ("paid", bucket)];
    /// let limiter = Keyed::with_named_plans(plans, 1000, ManualClock::new())?;
    /// assert!(limiter.plan_names().eq(["free", "paid"]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn plan_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.core.plans.names().iter().map(String::as_str)
    }

    /// Returns how many keys are in the table, including idle ones.
    pub fn len(&self) -> usize {
        usize::try_from(self.core.events.tracked()).unwrap_or(usize::MAX)
    }

    /// Returns whether the table has no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of slots: about 1.5 for each key of the requested capacity, and at least
    /// 2048.
    pub fn slots(&self) -> usize {
        self.core.table.slots()
    }
}

impl<A: Algorithm, C: Clock, S: KeyHasher> Keyed<A, C, S> {
    /// Takes one permit of this key.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permit is not granted: then nothing is taken.
    #[inline(always)]
    pub fn try_acquire<Q: Hash + ?Sized>(&self, key: &Q) -> Result<Granted, Denied> {
        self.try_acquire_n(key, 1)
    }

    /// Takes `n` permits of this key, or none.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permits are not granted: then nothing is taken.
    #[inline(always)]
    pub fn try_acquire_n<Q: Hash + ?Sized>(&self, key: &Q, n: u64) -> Result<Granted, Denied> {
        // Prefetch before the clock is read, so that the two overlap.
        let probe_seq = self.core.fetch(self.hasher.hash_key(key));
        let request = Request {
            probe_seq,
            plan: 0,
            now: self.clock.now(),
        };
        self.core.apply(request, Acquire { n })
    }

    /// Counts the keys in the table and those that left. To find idle keys it visits the whole
    /// table; [`len`](Self::len) does not.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::new(Quota::per_second(1))?;
    /// let limiter = Keyed::with_clock(bucket, 1000, clock.clone())?;
    /// limiter.try_acquire("alice")?;
    /// clock.advance(Duration::from_secs(1));
    /// limiter.try_acquire("bob")?;
    /// let stats = limiter.stats();
    /// assert_eq!((stats.tracked, stats.idle, stats.evicted), (2, 1, 0));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn stats(&self) -> KeyedStats {
        self.stats_at(self.clock().now())
    }
}

impl<A: Algorithm, C, S> Keyed<A, C, S> {
    /// Counts the keys at this tick, as [`stats`](Self::stats) does.
    #[must_use]
    pub fn stats_at(&self, now: Tick) -> KeyedStats {
        let core = &self.core;
        let (mut tracked, mut idle) = (0, 0);
        for (_, held) in core.table.all().filter(|(_, held)| held.is_live()) {
            tracked += 1;
            idle += u64::from(core.plans.is_idle(held, core.plans.version(), now));
        }
        let of = |event| core.events.of(event);
        let protected = of(Event::EvictedProtected);
        KeyedStats {
            tracked,
            idle,
            inserted: of(Event::Inserted),
            expired: of(Event::Expired),
            evicted: protected.wrapping_add(of(Event::Evicted)),
            evicted_protected: protected,
            removed: of(Event::Removed),
            no_room: of(Event::NoRoom),
        }
    }
}
