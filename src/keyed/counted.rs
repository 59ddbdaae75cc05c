//! Tables whose decisions are counted.

use core::borrow::Borrow;
use core::hash::Hash;

use super::hasher::KeyHasher;
use super::key::Key;
use super::limiter::Keyed;
use super::stats::KeyedStats;
use crate::algorithm::Algorithm;
use crate::clock::{Clock, Tick};
use crate::counted::{Counted, Counters};
use crate::limiter_error::LimiterError;
use crate::outcome::{Denied, Granted};

impl<A, C, H: KeyHasher, S: Borrow<Counters>> Counted<Keyed<A, C, H>, S> {
    /// Returns a counted view of one key, as [`Keyed::key`] does.
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
    pub fn key<Q: Hash + ?Sized>(&self, key: &Q) -> Counted<Key<&Keyed<A, C, H>>, &Counters> {
        self.part(self.limiter.key(key))
    }
}

impl<R, S> Counted<Key<R>, S> {
    /// Returns the same counted key under another plan of the table, as [`Key::with_plan`] does.
    ///
    /// ```
    /// use tollgate::{Counted, Keyed, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let plans = [10, 1000].map(|n| TokenBucket::new(Quota::per_hour(n)));
    /// let [free, paid] = plans;
    /// let table = Counted::new(Keyed::with_plans([free?, paid?], 1000, ManualClock::new())?);
    /// table.key("alice").with_plan(1).try_acquire_n(11)?;
    /// assert_eq!(table.stats().decisions.unwrap_or_default().granted, 1);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    #[must_use]
    pub fn with_plan(self, plan: usize) -> Self {
        let limiter = self.limiter.with_plan(plan);
        Self { limiter, ..self }
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
        self.try_acquire_batch_at(0, keys, outcomes, self.limiter.clock().now())
    }

    /// Counts the keys, as [`Keyed::stats`] does, and the decisions on all of them. It visits the
    /// whole table.
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

impl<A: Algorithm, C, H: KeyHasher, S: Borrow<Counters>> Counted<Keyed<A, C, H>, S> {
    /// Takes one permit of each key: [`Keyed::try_acquire_batch_at`], counted.
    ///
    /// # Errors
    ///
    /// As for [`Keyed::try_acquire_batch_at`].
    pub fn try_acquire_batch_at<Q: Hash>(
        &self,
        plan: usize,
        keys: &[Q],
        outcomes: &mut [Result<Granted, Denied>],
        now: Tick,
    ) -> Result<(), LimiterError> {
        let done = self.limiter.try_acquire_batch_at(plan, keys, outcomes, now);
        if done.is_ok() {
            let counters = self.counters();
            outcomes
                .iter()
                .for_each(|outcome| counters.outcome(outcome));
        }
        done
    }
}

impl<A: Algorithm, C, H, S: Borrow<Counters>> Counted<Keyed<A, C, H>, S> {
    /// Counts keys and decisions at this tick, as [`stats`](Self::stats) does.
    #[must_use]
    pub fn stats_at(&self, now: Tick) -> KeyedStats {
        KeyedStats {
            decisions: Some(self.counts()),
            ..self.limiter().stats_at(now)
        }
    }
}
