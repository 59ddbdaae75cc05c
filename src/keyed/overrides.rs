//! Overrides: algorithms of single keys.

use super::key::Key;
use super::limiter::Keyed;
use crate::algorithm::{ChangeQuota, Settings};
use crate::limiter_error::LimiterError;
use crate::quota::Quota;
use crate::store::view::View;
use crate::traits::forms::clock_forms;

impl<A, C, S> Keyed<A, C, S> {
    /// Returns how many keys have overrides, including keys that are not in the table.
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
        self.keys.plans().overrides_in_use()
    }

    /// Returns how many keys can have overrides: the number given to
    /// [`with_overrides`](Self::with_overrides), or 0.
    #[must_use]
    pub fn max_overrides(&self) -> usize {
        self.keys.plans().max_overrides()
    }
}

clock_forms! { {[+ Settings + Clone] [S] Key<&Keyed<A, C, S>>} [ChangeQuota] {
    /// Gives this key an override: this algorithm decides on the key whichever plan is requested,
    /// until it is [removed](Self::remove_override) or replaced.
    ///
    /// A key that is in the table keeps its permits, up to what the new algorithm can hold, or its
    /// debt ([`ChangeQuota::carry_over`]), or what [`with_moves`](super::Keyed::with_moves) says. A
    /// ban still ends at the same tick. Earlier grants can't be undone. A key that is not in the
    /// table starts with the whole burst of its override. The key keeps its override when it leaves
    /// the table, even if it is evicted or [removed](Self::remove), and starts afresh when it
    /// returns.
    ///
    /// The table must be created [with overrides](super::Keyed::with_overrides). Another key whose
    /// hash agrees in 60 bits gets the same override. A decision on a key with an override takes
    /// about seven times the instructions of one on another known key.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(5), 1000)?.with_overrides(10)?;
    /// let alice = limiter.key("alice");
    /// alice.try_acquire_n(2)?;
    /// alice.set_override(TokenBucket::new(Quota::per_hour(100))?)?;
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
    /// keys already have overrides. Nothing has changed then.
    fn set_override / set_override_at(algorithm: A) -> Result<(), LimiterError>;
    /// [Overrides](Self::set_override) the quota of this key's plan: the override is the algorithm
    /// of the plan, with this quota.
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(5), 1000)?.with_overrides(10)?;
    /// let alice = limiter.key("alice");
    /// alice.set_quota(Quota::per_hour(100))?;
    /// assert_eq!(alice.available(), 100);
    /// assert!(alice.remove_override());
    /// assert_eq!(alice.available(), 5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimiterError`] as for [`set_override`](Self::set_override), and if the quota can't be
    /// represented or the plan does not exist: then nothing has changed.
    fn set_quota / set_quota_at(quota: Quota) -> Result<(), LimiterError>;
    /// Removes this key's override, and returns whether it had one. The key continues in the
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
    /// assert!(alice.remove_override());
    /// assert_eq!(alice.available(), 2); // of 5
    /// assert!(!alice.remove_override());
    /// # Ok(())
    /// # }
    /// ```
    fn remove_override / remove_override_at() -> bool;
}}

impl<A: ChangeQuota + Settings + Clone, C, S> Key<&Keyed<A, C, S>> {
    /// Returns this key's override, or `None` if it uses its plan.
    ///
    /// ```
    /// use tollgate::algorithm::ChangeQuota;
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(5), 1000)?.with_overrides(10)?;
    /// limiter.key("alice").set_quota(Quota::per_hour(100))?;
    /// let of_alice = limiter.key("alice").override_algorithm().ok_or("no override")?;
    /// assert_eq!(of_alice.quota(), Quota::per_hour(100));
    /// assert!(limiter.key("bob").override_algorithm().is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn override_algorithm(&self) -> Option<A> {
        self.table.keys.plans().override_of(self.probe_seq.hash())
    }
}

impl<A: ChangeQuota + Settings + Clone, C, S> View<Key<&Keyed<A, C, S>>> {
    /// Gives the key an override, as [`Key::set_override`] does.
    ///
    /// # Errors
    ///
    /// As for [`Key::set_override`].
    pub fn set_override(&self, algorithm: A) -> Result<(), LimiterError> {
        let Key {
            table, probe_seq, ..
        } = &self.store;
        table.keys.set_override(probe_seq, algorithm, self.now)
    }

    /// Overrides the quota of the key, as [`Key::set_quota`] does.
    ///
    /// # Errors
    ///
    /// As for [`Key::set_quota`].
    pub fn set_quota(&self, quota: Quota) -> Result<(), LimiterError> {
        let Key { table, plan, .. } = self.store;
        let algorithm = table.keys.plans().algorithm(plan.into())?;
        self.set_override(algorithm.with_quota(quota)?)
    }

    /// Removes the key's override, as [`Key::remove_override`] does.
    pub fn remove_override(&self) -> bool {
        let Key {
            table,
            probe_seq,
            plan,
        } = &self.store;
        table.keys.remove_override(probe_seq, *plan, self.now)
    }
}
