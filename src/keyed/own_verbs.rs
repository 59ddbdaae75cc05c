//! The methods that give single keys algorithms of their own.

use super::Keyed;
use super::key::Key;
use crate::algorithm::{ChangeQuota, Settings};
use crate::clock::Clock;
use crate::limiter_error::LimiterError;
use crate::quota::Quota;
use crate::store::view::View;

impl<A, C, S> Keyed<A, C, S> {
    /// Returns how many keys have algorithms of their own, including keys that are not in the
    /// table.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(5), 1000)?.with_overrides(10)?;
    /// limiter.key("alice").set_quota(Quota::per_hour(100))?;
    /// assert_eq!((limiter.overrides(), limiter.max_overrides()), (1, 10));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn overrides(&self) -> usize {
        self.core.plans.overrides_in_use()
    }

    /// Returns how many keys can have algorithms of their own: the number given to
    /// [`with_overrides`](Self::with_overrides), or 0.
    #[must_use]
    pub fn max_overrides(&self) -> usize {
        self.core.plans.overrides().map_or(0, |all| all.max())
    }
}

impl<A: ChangeQuota + Settings + Clone, C: Clock> Key<'_, A, C> {
    /// Gives this key an algorithm of its own. It decides on the key whichever plan is requested,
    /// until it is [removed](Self::unset_algorithm) or replaced.
    ///
    /// A key that is in the table keeps its permits, up to what the new algorithm can hold, or its
    /// debt ([`ChangeQuota::carry_over`]). A ban still ends at the same tick. Earlier grants can't
    /// be undone. A key that is not in the table starts with the whole burst of its own algorithm.
    /// The key keeps its algorithm when it leaves the table, even if it is evicted or
    /// [removed](Self::remove), and starts afresh when it returns.
    ///
    /// The table must be created [with overrides](super::Keyed::with_overrides). Another key whose
    /// hash agrees in 60 bits gets the same algorithm. A decision on a key with its own algorithm
    /// takes about seven times the instructions of one on another known key.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(5), 1000)?.with_overrides(10)?;
    /// let alice = limiter.key("alice");
    /// alice.try_acquire_n(2)?;
    /// alice.set_algorithm(TokenBucket::new(Quota::per_hour(100))?)?;
    /// assert_eq!(alice.available(), 3); // of 100
    /// alice.remove();
    /// assert_eq!(alice.available(), 100);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimiterError::NoOverrides`] if the table was created without overrides.
    /// [`LimiterError::OverridesInUse`] if [`max_overrides`](super::Keyed::max_overrides) other
    /// keys already have algorithms of their own. Nothing has changed then.
    pub fn set_algorithm(&self, algorithm: A) -> Result<(), LimiterError> {
        self.at(self.now()).set_algorithm(algorithm)
    }

    /// Gives this key a quota of its own. Its algorithm is that of its plan, with this quota: see
    /// [`set_algorithm`](Self::set_algorithm).
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
    /// [`LimiterError`] as for [`set_algorithm`](Self::set_algorithm), and if the quota can't be
    /// represented or the plan does not exist: then nothing has changed.
    pub fn set_quota(&self, quota: Quota) -> Result<(), LimiterError> {
        self.at(self.now()).set_quota(quota)
    }

    /// Removes this key's own algorithm, and returns whether it had one. The key continues in the
    /// plan of this view, and keeps its permits.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(5), 1000)?.with_overrides(10)?;
    /// let alice = limiter.key("alice");
    /// alice.set_quota(Quota::per_hour(100))?;
    /// alice.try_acquire_n(98)?;
    /// assert!(alice.unset_algorithm());
    /// assert_eq!(alice.available(), 2); // of 5
    /// assert!(!alice.unset_algorithm());
    /// # Ok(())
    /// # }
    /// ```
    pub fn unset_algorithm(&self) -> bool {
        self.at(self.now()).unset_algorithm()
    }
}

impl<A: ChangeQuota + Settings + Clone, C> Key<'_, A, C> {
    /// Returns this key's own algorithm, or `None` if it uses its plan.
    ///
    /// ```
    /// use tollgate::algorithm::ChangeQuota;
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(5), 1000)?.with_overrides(10)?;
    /// limiter.key("alice").set_quota(Quota::per_hour(100))?;
    /// let own = limiter.key("alice").own_algorithm().ok_or("none of its own")?;
    /// assert_eq!(own.quota(), Quota::per_hour(100));
    /// assert!(limiter.key("bob").own_algorithm().is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn own_algorithm(&self) -> Option<A> {
        self.core.own(&self.probe_seq)
    }
}

impl<A: ChangeQuota + Settings + Clone, C> View<Key<'_, A, C>> {
    /// Gives the key an algorithm of its own at this tick: see [`Key::set_algorithm`].
    ///
    /// # Errors
    ///
    /// As for [`Key::set_algorithm`].
    pub fn set_algorithm(&self, algorithm: A) -> Result<(), LimiterError> {
        let Key {
            core, probe_seq, ..
        } = &self.store;
        core.set_own(probe_seq, algorithm, self.now)
    }

    /// Gives the key a quota of its own at this tick: see [`Key::set_quota`].
    ///
    /// # Errors
    ///
    /// As for [`Key::set_quota`].
    pub fn set_quota(&self, quota: Quota) -> Result<(), LimiterError> {
        let algorithm = self.store.core.algorithm(self.store.plan.into())?;
        self.set_algorithm(algorithm.with_quota(quota)?)
    }

    /// Removes the key's own algorithm at this tick: see [`Key::unset_algorithm`].
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
