//! The methods of a table: decisions, bans, statistics and quota changes.

use core::hash::Hash;
use std::string::String;

use super::stats::Event;
use super::stats::KeyedStats;
use super::{Key, KeyHasher, Keyed, KeyedPlan};
use crate::adjustable::Keep;
use crate::algorithm::Algorithm;
use crate::algorithm::ChangeQuota;
use crate::algorithm::Settings;
use crate::clock::{Clock, Tick};
use crate::limiter_error::LimiterError;
use crate::outcome::{Denied, Granted};
use crate::quota::{Quota, QuotaError};

impl<A, C, S> Keyed<A, C, S> {
    /// Returns a view of the table under one of its plans: the one at this position in the list
    /// that the table was created with. The methods of the table itself use plan 0.
    ///
    /// ```
    /// use tollgate::{Denied, FixedWindow, Keyed, ManualClock, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let free = FixedWindow::new(Quota::per_day(10))?;
    /// let paid = FixedWindow::new(Quota::per_day(1000))?;
    /// let limiter = Keyed::with_plans([free, paid], 1000, ManualClock::new())?;
    /// limiter.plan(1).try_acquire_n("alice", 990)?;
    /// // A key that spent 990 of 1000 has 10 left: as many as the free plan gives.
    /// assert_eq!(limiter.plan(0).key("alice").available(), 10);
    /// assert!(matches!(limiter.plan(2).try_acquire("alice"), Err(Denied::NoSuchPlan { .. })));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn plan(&self, plan: usize) -> KeyedPlan<'_, A, C, S> {
        KeyedPlan {
            limiter: self,
            plan,
        }
    }

    /// Returns a view of the table under the plan with this name, or `None` if there is none: see
    /// [`with_named_plans`](Self::with_named_plans). Look the plan up once and keep the view, which
    /// is `Copy`.
    ///
    /// ```
    /// use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let plans = [("free", TokenBucket::new(Quota::per_hour(10))?)];
    /// let limiter = Keyed::with_named_plans(plans, 1000, ManualClock::new())?;
    /// let free = limiter.plan_named("free").ok_or("no such plan")?;
    /// free.try_acquire("alice")?;
    /// assert!(limiter.plan_named("paid").is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn plan_named(&self, name: &str) -> Option<KeyedPlan<'_, A, C, S>> {
        Some(self.plan(self.core.plans.position(name)?))
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

impl<A, C, S: KeyHasher> Keyed<A, C, S> {
    /// Returns a view of one key, with all methods of a limiter.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota, Tick};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_second(5), 1000)?;
    /// let now = Tick::from_nanos(7);
    /// let granted = limiter.key("alice").at(now).try_acquire_n(2)?;
    /// assert_eq!(limiter.key("alice").at(now).undo(granted), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn key<Q: Hash + ?Sized>(&self, key: &Q) -> Key<'_, A, C> {
        self.plan(0).key(key)
    }
}

impl<A: Algorithm, C, S: KeyHasher> Keyed<A, C, S> {
    /// Takes one permit of each key at this tick: see
    /// [`try_acquire_batch`](Self::try_acquire_batch).
    ///
    /// # Errors
    ///
    /// [`LimiterError::OutcomesLength`] if `keys` and `outcomes` differ in length: then nothing is
    /// decided.
    pub fn try_acquire_batch_at<Q: Hash>(
        &self,
        keys: &[Q],
        outcomes: &mut [Result<Granted, Denied>],
        now: Tick,
    ) -> Result<(), LimiterError> {
        self.plan(0).try_acquire_batch_at(keys, outcomes, now)
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
        self.plan(0).try_acquire(key)
    }

    /// Takes `n` permits of this key, or none.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permits are not granted: then nothing is taken.
    #[inline(always)]
    pub fn try_acquire_n<Q: Hash + ?Sized>(&self, key: &Q, n: u64) -> Result<Granted, Denied> {
        self.plan(0).try_acquire_n(key, n)
    }

    /// Takes one permit of each of these keys, in their order, all at one tick. If the table is
    /// larger than the processor's caches, this is twice as fast as single calls: it fetches the
    /// slots of the next keys while it decides on the first ones.
    ///
    /// ```
    /// use tollgate::{Denied, Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(1), 1000)?;
    /// let keys = ["alice", "bob", "alice"];
    /// let mut outcomes = [const { Err(Denied::busy(1)) }; 3];
    /// limiter.try_acquire_batch(&keys, &mut outcomes)?;
    /// assert_eq!(outcomes.map(|outcome| outcome.is_ok()), [true, true, false]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimiterError::OutcomesLength`] if `keys` and `outcomes` differ in length: then nothing is
    /// decided.
    pub fn try_acquire_batch<Q: Hash>(
        &self,
        keys: &[Q],
        outcomes: &mut [Result<Granted, Denied>],
    ) -> Result<(), LimiterError> {
        self.plan(0).try_acquire_batch(keys, outcomes)
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
    /// Counts the keys at this tick: see [`stats`](Self::stats).
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
            decisions: None,
        }
    }
}

impl<A: ChangeQuota + Settings + Clone, C: Clock, S> Keyed<A, C, S> {
    /// Changes the quota of all keys at once. In a table with several plans, it changes that of
    /// plan 0. A key with an [algorithm of its own](Key::set_algorithm) keeps that. `keep` says
    /// what happens to the permits that a key has. The call visits one of 30 parts of the table.
    /// Any other key is converted when it is next used, with the same result as if it were
    /// converted now.
    ///
    /// Each key changes as an [`Adjustable`](crate::Adjustable) limiter does. After the first
    /// change, decisions cost a few nanoseconds more. A decision that is made during the change may
    /// still use the old quota.
    ///
    /// With [`Keep::AsIs`] and a larger burst, no key in the table is idle until the larger burst
    /// has filled, so new keys find no idle slots. With [`Keep::Scaled`], idle keys stay idle.
    ///
    /// ```
    /// use tollgate::Keep;
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(100), 1000)?;
    /// limiter.try_acquire_n("alice", 60)?;
    /// limiter.set_quota(Quota::per_hour(1000), Keep::AsIs)?;
    /// assert_eq!(limiter.key("alice").available(), 40);
    /// assert_eq!(limiter.key("bob").available(), 1000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the quota can't be represented: then nothing has changed.
    pub fn set_quota(&self, quota: Quota, keep: Keep) -> Result<(), QuotaError> {
        self.set_quota_at(quota, keep, self.clock.now())
    }
}

impl<A: ChangeQuota + Settings + Clone, C, S> Keyed<A, C, S> {
    /// Changes the quota of all keys at this tick: see [`set_quota`](Self::set_quota).
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the quota can't be represented: then nothing has changed.
    pub fn set_quota_at(&self, quota: Quota, keep: Keep, now: Tick) -> Result<(), QuotaError> {
        // Plan 0 always exists.
        self.core.set_quota(0, quota, keep, now).map(|_| ())
    }

    /// Returns the current quota. In a table with several plans, this is that of plan 0.
    ///
    /// ```
    /// use tollgate::Keep;
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(100), 1000)?;
    /// limiter.set_quota(Quota::per_hour(7), Keep::Scaled)?;
    /// assert_eq!(limiter.quota(), Quota::per_hour(7));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.core.quota_of_the_first()
    }
}
