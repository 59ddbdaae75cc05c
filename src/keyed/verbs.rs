//! The methods of a table: decisions, plans, statistics and quota changes.

use core::hash::Hash;
use std::string::String;

use super::core::Request;
use super::hasher::KeyHasher;
use super::limiter::Keyed;
use super::stats::{Event, KeyedStats};
use crate::adjustable::Keep;
use crate::algorithm::Algorithm;
use crate::algorithm::ChangeQuota;
use crate::algorithm::Settings;
use crate::clock::{Clock, Tick};
use crate::outcome::{Denied, Granted};
use crate::quota::{ConfigError, Quota};
use crate::store::operations::Acquire;

impl<A, C, S> Keyed<A, C, S> {
    /// Returns the position of the plan with this name in the list that the table was created with
    /// ([`with_named_plans`](Self::with_named_plans)), or `None` if no plan has it. Look it up once.
    /// A [key under this plan](super::Key::with_plan) takes the position.
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
            decisions: None,
        }
    }
}

impl<A: ChangeQuota + Settings + Clone, C: Clock, S> Keyed<A, C, S> {
    /// Changes the quota of all keys at once. In a table with several plans, it changes that of
    /// plan 0. A key with an [algorithm of its own](super::Key::set_algorithm) keeps that. `keep` says
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
    /// [`ConfigError`] if the quota can't be represented: then nothing has changed.
    pub fn set_quota(&self, quota: Quota, keep: Keep) -> Result<(), ConfigError> {
        self.set_plan_quota(0, quota, keep)
    }

    /// Changes the quota of one plan, as [`set_quota`](Self::set_quota) does. The plan is given by
    /// its [position](Self::plan_named).
    ///
    /// ```
    /// use tollgate::{FixedWindow, Keep, Keyed, ManualClock, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let plans = [FixedWindow::new(Quota::per_day(10))?, FixedWindow::new(Quota::per_day(1000))?];
    /// let limiter = Keyed::with_plans(plans, 1000, ManualClock::new())?;
    /// limiter.set_plan_quota(1, Quota::per_day(2000), Keep::AsIs)?;
    /// assert_eq!(limiter.plan_quota(1)?, Quota::per_day(2000));
    /// assert_eq!(limiter.quota(), Quota::per_day(10));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the quota can't be represented, or the plan does not exist: then nothing
    /// has changed.
    pub fn set_plan_quota(&self, plan: usize, quota: Quota, keep: Keep) -> Result<(), ConfigError> {
        self.set_plan_quota_at(plan, quota, keep, self.clock.now())
    }
}

impl<A: ChangeQuota + Settings + Clone, C, S> Keyed<A, C, S> {
    /// Changes the quota of one plan at this tick, as [`set_plan_quota`](Self::set_plan_quota) does.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the quota can't be represented, or the plan does not exist: then nothing
    /// has changed.
    pub fn set_plan_quota_at(
        &self,
        plan: usize,
        quota: Quota,
        keep: Keep,
        now: Tick,
    ) -> Result<(), ConfigError> {
        self.core.set_quota(plan, quota, keep, now)
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
        // Plan 0 always exists.
        let first = self.plan_quota(0);
        first.unwrap_or_else(|_| self.core.plans.first().quota())
    }

    /// Returns the current quota of one plan, given by its [position](Self::plan_named).
    ///
    /// # Errors
    ///
    /// [`ConfigError::NoSuchPlan`] if the plan does not exist.
    pub fn plan_quota(&self, plan: usize) -> Result<Quota, ConfigError> {
        Ok(self.core.algorithm(plan)?.quota())
    }
}
