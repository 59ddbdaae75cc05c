//! The verbs that give a key an algorithm of its own.

use core::hash::Hash;

use super::key::Key;
use super::{KeyHasher, Keyed};
use crate::algorithm::{ChangeQuota, Settings};
use crate::clock::{Clock, Tick};
use crate::quota::{ConfigError, Quota};
use crate::store::view::View;

impl<A: ChangeQuota + Settings + Clone, C: Clock, S: KeyHasher> Keyed<A, C, S> {
    /// Gives a key an algorithm of its own. By whatever plan the key is asked for, that algorithm
    /// decides, until it is [taken away](Self::unset_algorithm) or replaced by another one.
    ///
    /// A key that is in the table goes on with the permits that there are
    /// ([`ChangeQuota::carry_over`]): what the new algorithm can't hold is lost, and debt stays. A
    /// ban ends when it would have ended. Grants from before can't be undone. A key that is not in
    /// the table comes as a fresh one, with the whole burst of its own algorithm. So it does when it
    /// has left as idle, was evicted or [removed](Self::remove): it keeps its algorithm.
    ///
    /// The table must be made [with overrides](Self::with_overrides). A key is known by its hash
    /// here, as in the table: a key whose hash agrees in 60 bits has the same algorithm. A decision
    /// on a key with its own algorithm takes about as long as one on a banned key.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(5), 1000)?.with_overrides(10)?;
    /// limiter.try_acquire_n("alice", 2)?;
    /// limiter.set_algorithm("alice", TokenBucket::new(Quota::per_hour(100))?)?;
    /// assert_eq!(limiter.key("alice").available(), 3); // of 100
    /// limiter.remove("alice");
    /// assert_eq!(limiter.key("alice").available(), 100);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConfigError::NoOverrides`] if the table was made without overrides,
    /// [`ConfigError::OverridesInUse`] if as many other keys as can have one have an algorithm of
    /// their own: then nothing has changed.
    pub fn set_algorithm<Q: Hash + ?Sized>(
        &self,
        key: &Q,
        algorithm: A,
    ) -> Result<(), ConfigError> {
        self.key(key).set_algorithm(algorithm)
    }

    /// Gives a key a quota of its own: [`set_algorithm`](Self::set_algorithm) of the first plan's
    /// algorithm with this quota. `plan(i).key(key).set_quota(quota)` takes another plan's.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::gcra(Quota::per_hour(5), 1000)?.with_overrides(10)?;
    /// limiter.set_quota_of("alice", Quota::per_hour(100).burst(20))?;
    /// assert!(limiter.try_acquire_n("alice", 20).is_ok());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConfigError`] as for [`set_algorithm`](Self::set_algorithm), and if the quota can't be
    /// represented: then nothing has changed.
    pub fn set_quota_of<Q: Hash + ?Sized>(&self, key: &Q, quota: Quota) -> Result<(), ConfigError> {
        self.key(key).set_quota(quota)
    }

    /// Takes a key's own algorithm away, and says whether it had one. The key goes on in the first
    /// plan with the permits that there are; `plan(i).key(key).unset_algorithm()` returns it to
    /// another plan.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(5), 1000)?.with_overrides(10)?;
    /// limiter.set_quota_of("alice", Quota::per_hour(100))?;
    /// limiter.try_acquire_n("alice", 98)?;
    /// assert!(limiter.unset_algorithm("alice"));
    /// assert_eq!(limiter.key("alice").available(), 2); // of 5
    /// assert!(!limiter.unset_algorithm("alice"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn unset_algorithm<Q: Hash + ?Sized>(&self, key: &Q) -> bool {
        self.key(key).unset_algorithm()
    }
}

impl<A: ChangeQuota + Settings + Clone, C, S: KeyHasher> Keyed<A, C, S> {
    /// [`set_algorithm`](Self::set_algorithm) at this tick.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn set_algorithm_at<Q: Hash + ?Sized>(
        &self,
        key: &Q,
        algorithm: A,
        now: Tick,
    ) -> Result<(), ConfigError> {
        self.key(key).at(now).set_algorithm(algorithm)
    }

    /// [`set_quota_of`](Self::set_quota_of) at this tick.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn set_quota_of_at<Q: Hash + ?Sized>(
        &self,
        key: &Q,
        quota: Quota,
        now: Tick,
    ) -> Result<(), ConfigError> {
        self.key(key).at(now).set_quota(quota)
    }

    /// [`unset_algorithm`](Self::unset_algorithm) at this tick.
    pub fn unset_algorithm_at<Q: Hash + ?Sized>(&self, key: &Q, now: Tick) -> bool {
        self.key(key).at(now).unset_algorithm()
    }

    /// A key's own algorithm; `None` if the key goes by its plan.
    ///
    /// ```
    /// use tollgate::algorithm::ChangeQuota;
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(5), 1000)?.with_overrides(10)?;
    /// limiter.set_quota_of("alice", Quota::per_hour(100))?;
    /// let own = limiter.own_algorithm("alice").ok_or("none of its own")?;
    /// assert_eq!(own.quota(), Quota::per_hour(100));
    /// assert!(limiter.own_algorithm("bob").is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn own_algorithm<Q: Hash + ?Sized>(&self, key: &Q) -> Option<A> {
        self.key(key).own_algorithm()
    }
}

impl<A, C, S> Keyed<A, C, S> {
    /// How many keys have an algorithm of their own, whether they are in the table or not.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(5), 1000)?.with_overrides(10)?;
    /// limiter.set_quota_of("alice", Quota::per_hour(100))?;
    /// assert_eq!((limiter.overrides(), limiter.max_overrides()), (1, 10));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn overrides(&self) -> usize {
        self.core.plans.overrides_in_use()
    }

    /// How many keys can have an algorithm of their own: what the table was made
    /// [with](Self::with_overrides), or 0.
    #[must_use]
    pub fn max_overrides(&self) -> usize {
        self.core.plans.overrides().map_or(0, |all| all.max())
    }
}

impl<A: ChangeQuota + Settings + Clone, C: Clock> Key<'_, A, C> {
    /// [`Keyed::set_algorithm`](super::Keyed::set_algorithm) of this key.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn set_algorithm(&self, algorithm: A) -> Result<(), ConfigError> {
        self.at(self.now()).set_algorithm(algorithm)
    }

    /// Gives this key a quota of its own: [`set_algorithm`](Self::set_algorithm) of its plan's
    /// algorithm with this quota.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(5), 1000)?.with_overrides(10)?;
    /// let alice = limiter.key("alice");
    /// alice.set_quota(Quota::per_hour(100))?;
    /// assert_eq!(alice.available(), 100);
    /// assert!(alice.unset_algorithm());
    /// assert_eq!(alice.available(), 5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConfigError`] as for [`set_algorithm`](Self::set_algorithm), and if the quota can't be
    /// represented, or there is no such plan: then nothing has changed.
    pub fn set_quota(&self, quota: Quota) -> Result<(), ConfigError> {
        self.at(self.now()).set_quota(quota)
    }

    /// Takes this key's own algorithm away, and says whether it had one. The key goes on in the plan
    /// that this view is of, with the permits that there are.
    pub fn unset_algorithm(&self) -> bool {
        self.at(self.now()).unset_algorithm()
    }
}

impl<A: ChangeQuota + Settings + Clone, C> Key<'_, A, C> {
    /// This key's own algorithm; `None` if it goes by its plan.
    #[must_use]
    pub fn own_algorithm(&self) -> Option<A> {
        self.core.own(&self.probe_seq)
    }
}

impl<A: ChangeQuota + Settings + Clone, C> View<Key<'_, A, C>> {
    /// [`Key::set_algorithm`] at this tick.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn set_algorithm(&self, algorithm: A) -> Result<(), ConfigError> {
        let Key {
            core, probe_seq, ..
        } = &self.store;
        core.set_own(probe_seq, algorithm, self.now)
    }

    /// [`Key::set_quota`] at this tick.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn set_quota(&self, quota: Quota) -> Result<(), ConfigError> {
        let algorithm = self.store.core.algorithm(self.store.plan.into())?;
        self.set_algorithm(algorithm.with_quota(quota)?)
    }

    /// [`Key::unset_algorithm`] at this tick.
    pub fn unset_algorithm(&self) -> bool {
        let Key {
            core,
            probe_seq,
            plan,
            ..
        } = &self.store;
        core.unset_own(probe_seq, *plan, self.now)
    }
}
