//! The verbs of a table.

use core::hash::Hash;
use core::time::Duration;
use std::string::String;

use super::stats::Event;
use super::stats::KeyedStats;
use super::{Key, KeyHasher, Keyed, KeyedPlan};
use crate::adjustable::Keep;
use crate::algorithm::Algorithm;
use crate::algorithm::ChangeQuota;
use crate::algorithm::Settings;
use crate::clock::{Clock, Tick};
use crate::outcome::{Denied, Granted};
use crate::quota::{ConfigError, Quota};

impl<A, C, S> Keyed<A, C, S> {
    /// The table seen by one of its plans. A plan is named by its place in the list that the table
    /// was made with. The verbs of the table itself are those of plan 0.
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

    /// The table seen by the plan with this name; `None` if no plan has it, or the plans have no
    /// names: see [`with_named_plans`](Self::with_named_plans). Ask once, and keep the answer: it
    /// is copied.
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

    /// The names of the plans, in their order; none where they have no names.
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

    /// How many keys are in the table, idle ones too.
    pub fn len(&self) -> usize {
        usize::try_from(self.core.events.tracked()).unwrap_or(usize::MAX)
    }

    /// Whether no key is in the table.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many slots there are: about one and a half for each key of the capacity that was asked
    /// for, and 2048 at least.
    pub fn slots(&self) -> usize {
        self.core.table.slots()
    }
}

impl<A, C, S: KeyHasher> Keyed<A, C, S> {
    /// A key, for all that a limiter can do.
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
    /// Takes one permit of this key at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if it was not there.
    #[inline(always)]
    pub fn try_acquire_at<Q: Hash + ?Sized>(&self, key: &Q, now: Tick) -> Result<Granted, Denied> {
        self.plan(0).try_acquire_at(key, now)
    }

    /// Takes `n` permits of this key, or none, at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there.
    #[inline(always)]
    pub fn try_acquire_n_at<Q: Hash + ?Sized>(
        &self,
        key: &Q,
        n: u64,
        now: Tick,
    ) -> Result<Granted, Denied> {
        self.plan(0).try_acquire_n_at(key, n, now)
    }

    /// [`try_acquire_many`](Self::try_acquire_many) at this tick.
    ///
    /// # Errors
    ///
    /// [`ConfigError::OutcomesLength`] unless there are as many outcomes as keys: then nothing is
    /// decided.
    pub fn try_acquire_many_at<Q: Hash>(
        &self,
        keys: &[Q],
        outcomes: &mut [Result<Granted, Denied>],
        now: Tick,
    ) -> Result<(), ConfigError> {
        self.plan(0).try_acquire_many_at(keys, outcomes, now)
    }

    /// Takes the key out of the table, and says whether it was there. When it comes again it is
    /// fresh: this allows one burst more, and ends a ban.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(1), 1000)?;
    /// limiter.try_acquire("alice")?;
    /// assert!(limiter.remove("alice"));
    /// assert!(!limiter.remove("alice"));
    /// assert!(limiter.try_acquire("alice").is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn remove<Q: Hash + ?Sized>(&self, key: &Q) -> bool {
        self.key(key).remove()
    }
}

impl<A: Algorithm, C: Clock, S: KeyHasher> Keyed<A, C, S> {
    /// Takes one permit of this key.
    ///
    /// # Errors
    ///
    /// [`Denied`] if it was not there: then nothing was taken.
    #[inline(always)]
    pub fn try_acquire<Q: Hash + ?Sized>(&self, key: &Q) -> Result<Granted, Denied> {
        self.plan(0).try_acquire(key)
    }

    /// Takes `n` permits of this key, or none.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there: then nothing was taken.
    #[inline(always)]
    pub fn try_acquire_n<Q: Hash + ?Sized>(&self, key: &Q, n: u64) -> Result<Granted, Denied> {
        self.plan(0).try_acquire_n(key, n)
    }

    /// Takes one permit of each of these keys, at one tick, in their order. Where the table is
    /// larger than the processor's caches that is twice as quick as one by one: the next keys'
    /// places are fetched while the first ones are decided on.
    ///
    /// ```
    /// use tollgate::{Denied, Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(1), 1000)?;
    /// let keys = ["alice", "bob", "alice"];
    /// let mut outcomes = [const { Err(Denied::busy(1)) }; 3];
    /// limiter.try_acquire_many(&keys, &mut outcomes)?;
    /// assert_eq!(outcomes.map(|outcome| outcome.is_ok()), [true, true, false]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConfigError::OutcomesLength`] unless there are as many outcomes as keys: then nothing is
    /// decided.
    pub fn try_acquire_many<Q: Hash>(
        &self,
        keys: &[Q],
        outcomes: &mut [Result<Granted, Denied>],
    ) -> Result<(), ConfigError> {
        self.plan(0).try_acquire_many(keys, outcomes)
    }

    /// Grants this key nothing before this tick, whatever is given back meanwhile. Then it has no
    /// permits, and gets them again as after a burst. It ends sooner if the key is
    /// [removed](Self::remove) or [reset](Key::reset), or the quota changed by [`Keep::Fresh`]. A
    /// ban that would end in the past is none; a longer one takes the place of a shorter one, and
    /// not the other way round. Requests are denied with [`Denied::Banned`], also those that would
    /// wait; [`banned_until`](Self::banned_until) says when the ban is over.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::new(Quota::per_second(1).burst(5))?;
    /// let limiter = Keyed::with_clock(bucket, 1000, clock.clone())?;
    /// limiter.ban_for("mallory", Duration::from_secs(60))?;
    /// clock.advance(Duration::from_secs(60));
    /// assert!(limiter.try_acquire("mallory").is_err());
    /// clock.advance(Duration::from_secs(1));
    /// assert!(limiter.try_acquire("mallory").is_ok());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if there is no place where the ban could be kept; [`Denied::NoSuchPlan`].
    pub fn ban<Q: Hash + ?Sized>(&self, key: &Q, until: Tick) -> Result<(), Denied> {
        self.key(key).ban(until)
    }

    /// [`ban`](Self::ban) for this time from now.
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if there is no place where the ban could be kept; [`Denied::NoSuchPlan`].
    pub fn ban_for<Q: Hash + ?Sized>(&self, key: &Q, long: Duration) -> Result<(), Denied> {
        let now = self.clock().now();
        self.key(key).at(now).ban(now.saturating_add(long))
    }

    /// When the ban of this key is over, if it is banned: see [`Key::banned_until`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Keyed, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::new(TokenBucket::new(Quota::per_second(5))?, 1000)?;
    /// limiter.ban_for("mallory", Duration::from_secs(60))?;
    /// assert!(limiter.banned_until("mallory").is_some());
    /// assert!(limiter.banned_until("alice").is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn banned_until<Q: Hash + ?Sized>(&self, key: &Q) -> Option<Tick> {
        self.key(key).banned_until()
    }

    /// Counts the keys in the table and those that left. It visits the whole table to find idle
    /// keys; [`len`](Self::len) does not.
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
    /// [`stats`](Self::stats) at this tick.
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
    /// Changes the quota of all keys, at once, and goes on with what is there as `keep` says. It
    /// visits a small part of the table; each key is carried over when it is next asked for, as it
    /// would have been now.
    ///
    /// For each key a change does what it does to an [`Adjustable`](crate::Adjustable) limiter.
    /// Decisions cost some nanoseconds more after the first change. A decision made while the quota
    /// changes may still use the old one.
    ///
    /// With [`Keep::AsIs`] and a larger burst, all keys in the table are in use until that has
    /// filled, also those that were idle; with [`Keep::Scaled`] they stay idle, and their places
    /// are there for others.
    ///
    /// ```
    /// use tollgate::adjustable::Keep;
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
        self.plan(0).set_quota(quota, keep)
    }
}

impl<A: ChangeQuota + Settings + Clone, C, S> Keyed<A, C, S> {
    /// [`set_quota`](Self::set_quota) at this tick.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the quota can't be represented: then nothing has changed.
    pub fn set_quota_at(&self, quota: Quota, keep: Keep, now: Tick) -> Result<(), ConfigError> {
        self.plan(0).set_quota_at(quota, keep, now)
    }

    /// The quota that is in force.
    ///
    /// ```
    /// use tollgate::adjustable::Keep;
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
