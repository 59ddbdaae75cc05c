//! Tables whose decisions are counted.

use core::borrow::Borrow;
use core::hash::Hash;

use super::{Key, KeyHasher, Keyed, KeyedPlan};
use crate::algorithm::Algorithm;
use crate::clock::{Clock, Tick};
use crate::counted::{Counted, Counters};
use crate::limiter_error::LimiterError;
use crate::outcome::{Denied, Granted};

use super::stats::KeyedStats;

impl<A, C, H, S: Borrow<Counters>> Counted<Keyed<A, C, H>, S> {
    /// Returns a counted view under the plan with this name: see [`Keyed::plan_named`].
    ///
    /// ```
    /// use tollgate::{Counted, Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let plans = [("free", TokenBucket::new(Quota::per_hour(10))?)];
    /// let table = Counted::new(Keyed::with_named_plans(plans, 1000, ManualClock::new())?);
    /// let free = table.plan_named("free").ok_or("no such plan")?;
    /// free.key("alice").try_acquire()?;
    /// assert_eq!(table.stats().decisions.unwrap_or_default().granted, 1);
    /// assert!(table.plan_named("paid").is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn plan_named(&self, name: &str) -> Option<Counted<KeyedPlan<'_, A, C, H>, &Counters>> {
        Some(self.part(self.limiter().plan_named(name)?))
    }

    /// Returns a counted view under this plan: see [`Keyed::plan`].
    #[inline]
    pub fn plan(&self, plan: usize) -> Counted<KeyedPlan<'_, A, C, H>, &Counters> {
        self.part(self.limiter().plan(plan))
    }
}

impl<A, C, H: KeyHasher, S: Borrow<Counters>> Counted<Keyed<A, C, H>, S> {
    /// Returns a counted view of one key: see [`Keyed::key`].
    ///
    /// ```
    /// use tollgate::{Counted, Keyed, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Counted::new(Keyed::new(TokenBucket::new(Quota::per_hour(5))?, 1000)?);
    /// let granted = limiter.key("alice").try_acquire_n(3)?;
    /// limiter.key("alice").undo(granted);
    /// let decisions = limiter.stats().decisions.unwrap_or_default();
    /// assert_eq!((decisions.granted, decisions.returned), (1, 3));
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn key<Q: Hash + ?Sized>(&self, key: &Q) -> Counted<Key<'_, A, C>, &Counters> {
        self.part(self.limiter().key(key))
    }
}

impl<A: Algorithm, C, H: KeyHasher, S: Borrow<Counters>> Counted<Keyed<A, C, H>, S> {
    /// Takes one permit of each key at this tick: [`Keyed::try_acquire_batch_at`], counted.
    ///
    /// # Errors
    ///
    /// As for [`Keyed::try_acquire_batch_at`].
    pub fn try_acquire_batch_at<Q: Hash>(
        &self,
        keys: &[Q],
        outcomes: &mut [Result<Granted, Denied>],
        now: Tick,
    ) -> Result<(), LimiterError> {
        self.plan(0).try_acquire_batch_at(keys, outcomes, now)
    }
}

impl<A: Algorithm, C: Clock, H: KeyHasher, S: Borrow<Counters>> Counted<Keyed<A, C, H>, S> {
    /// Takes one permit of this key: [`Keyed::try_acquire`], counted.
    ///
    /// # Errors
    ///
    /// As for [`Keyed::try_acquire`].
    #[inline(always)]
    pub fn try_acquire<Q: Hash + ?Sized>(&self, key: &Q) -> Result<Granted, Denied> {
        self.try_acquire_n(key, 1)
    }

    /// Takes `n` permits of this key: [`Keyed::try_acquire_n`], counted.
    ///
    /// # Errors
    ///
    /// As for [`Keyed::try_acquire_n`].
    #[inline(always)]
    pub fn try_acquire_n<Q: Hash + ?Sized>(&self, key: &Q, n: u64) -> Result<Granted, Denied> {
        let outcome = self.limiter().try_acquire_n(key, n);
        self.counters().outcome(&outcome);
        outcome
    }

    /// Takes one permit of each key: [`Keyed::try_acquire_batch`], counted.
    ///
    /// # Errors
    ///
    /// As for [`Keyed::try_acquire_batch`].
    pub fn try_acquire_batch<Q: Hash>(
        &self,
        keys: &[Q],
        outcomes: &mut [Result<Granted, Denied>],
    ) -> Result<(), LimiterError> {
        self.plan(0).try_acquire_batch(keys, outcomes)
    }

    /// Counts the keys, and the decisions on all of them: see [`Keyed::stats`]. It visits the whole
    /// table.
    ///
    /// ```
    /// use tollgate::{Counted, Keyed, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Counted::new(Keyed::new(TokenBucket::new(Quota::per_hour(1))?, 1000)?);
    /// for key in ["alice", "bob", "alice"] {
    ///     let _ = limiter.try_acquire(key);
    /// }
    /// let stats = limiter.stats();
    /// let decisions = stats.decisions.unwrap_or_default();
    /// assert_eq!((stats.tracked, decisions.granted, decisions.denied), (2, 2, 1));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn stats(&self) -> KeyedStats {
        self.stats_at(self.limiter().clock().now())
    }
}

impl<A: Algorithm, C, H, S: Borrow<Counters>> Counted<Keyed<A, C, H>, S> {
    /// Counts keys and decisions at this tick: see [`stats`](Self::stats).
    #[must_use]
    pub fn stats_at(&self, now: Tick) -> KeyedStats {
        KeyedStats {
            decisions: Some(self.counts()),
            ..self.limiter().stats_at(now)
        }
    }
}

impl<'a, A, C, H: KeyHasher> Counted<KeyedPlan<'a, A, C, H>, &'a Counters> {
    /// Returns a counted view of one key: see [`KeyedPlan::key`].
    #[inline(always)]
    pub fn key<Q: Hash + ?Sized>(&self, key: &Q) -> Counted<Key<'a, A, C>, &'a Counters> {
        Counted {
            limiter: self.limiter.key(key),
            counters: self.counters,
        }
    }
}

impl<A: Algorithm, C, H: KeyHasher> Counted<KeyedPlan<'_, A, C, H>, &Counters> {
    /// Takes one permit of each key at this tick: [`KeyedPlan::try_acquire_batch_at`], counted.
    ///
    /// # Errors
    ///
    /// As for [`KeyedPlan::try_acquire_batch_at`].
    pub fn try_acquire_batch_at<Q: Hash>(
        &self,
        keys: &[Q],
        outcomes: &mut [Result<Granted, Denied>],
        now: Tick,
    ) -> Result<(), LimiterError> {
        self.limiter.try_acquire_batch_at(keys, outcomes, now)?;
        let counters = self.counters();
        outcomes
            .iter()
            .for_each(|outcome| counters.outcome(outcome));
        Ok(())
    }
}

impl<A: Algorithm, C: Clock, H: KeyHasher> Counted<KeyedPlan<'_, A, C, H>, &Counters> {
    /// Takes one permit of each key: [`KeyedPlan::try_acquire_batch`], counted.
    ///
    /// # Errors
    ///
    /// As for [`KeyedPlan::try_acquire_batch`].
    pub fn try_acquire_batch<Q: Hash>(
        &self,
        keys: &[Q],
        outcomes: &mut [Result<Granted, Denied>],
    ) -> Result<(), LimiterError> {
        let now = self.limiter.limiter.clock.now();
        self.try_acquire_batch_at(keys, outcomes, now)
    }
}
