//! How a key gets and loses an algorithm of its own, an [override](super::overrides).
//!
//! A thread that sets an override first stores it, then passes a fence. Then it moves the key's
//! slot to the override, by an exchange, and releases claims for the key. A thread that claims a
//! slot passes a fence after its claim, and looks for an override after that. So either this thread
//! finds the override, or the first one finds the claim and releases it.

use super::core::Core;
use super::key::Key;
use super::limiter::Keyed;
use super::overrides::OVERRIDE;
use super::plans::AlgorithmId;
use super::probe_seq::ProbeSeq;
use super::slot::SlotState;
use super::stats::Event;
use super::table::SlotIndex;
use crate::algorithm::{ChangeQuota, Settings};
use crate::clock::Tick;
use crate::limiter_error::LimiterError;
use crate::quota::Quota;
use crate::store::view::View;
use crate::sync::{Ordering, fence};
use crate::traits::forms::clock_forms;

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

clock_forms! { {[+ Settings + Clone] [S] Key<&Keyed<A, C, S>>} [ChangeQuota] {
    /// Gives this key an algorithm of its own. It decides on the key whichever plan is requested,
    /// until it is [removed](Self::remove_override) or replaced.
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
    /// keys already have algorithms of their own. Nothing has changed then.
    fn set_override / set_override_at(algorithm: A) -> Result<(), LimiterError>;
    /// Gives this key a quota of its own. This [sets](Self::set_override) the
    /// algorithm of its plan, with this quota.
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
    /// assert!(alice.remove_override());
    /// assert_eq!(alice.available(), 2); // of 5
    /// assert!(!alice.remove_override());
    /// # Ok(())
    /// # }
    /// ```
    fn remove_override / remove_override_at() -> bool;
}}

impl<A: ChangeQuota + Settings + Clone, C, S> Key<&Keyed<A, C, S>> {
    /// Returns this key's own algorithm, or `None` if it uses its plan.
    ///
    /// ```
    /// use tollgate::algorithm::ChangeQuota;
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(5), 1000)?.with_overrides(10)?;
    /// limiter.key("alice").set_quota(Quota::per_hour(100))?;
    /// let own = limiter.key("alice").override_algorithm().ok_or("none of its own")?;
    /// assert_eq!(own.quota(), Quota::per_hour(100));
    /// assert!(limiter.key("bob").override_algorithm().is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn override_algorithm(&self) -> Option<A> {
        let overrides = self.table.core.plans.overrides()?;
        overrides.change(|owners| owners.get(&self.probe_seq.hash()).cloned())
    }
}

impl<A: ChangeQuota + Settings + Clone, C, S> View<Key<&Keyed<A, C, S>>> {
    /// Gives the key an algorithm of its own, as [`Key::set_override`] does.
    ///
    /// # Errors
    ///
    /// As for [`Key::set_override`].
    pub fn set_override(&self, algorithm: A) -> Result<(), LimiterError> {
        let Key {
            table, probe_seq, ..
        } = &self.store;
        table.core.set_override_of(probe_seq, algorithm, self.now)
    }

    /// Gives the key a quota of its own, as [`Key::set_quota`] does.
    ///
    /// # Errors
    ///
    /// As for [`Key::set_quota`].
    pub fn set_quota(&self, quota: Quota) -> Result<(), LimiterError> {
        let Key { table, plan, .. } = self.store;
        let algorithm = table.core.algorithm(plan.into())?;
        self.set_override(algorithm.with_quota(quota)?)
    }

    /// Removes the key's own algorithm, as [`Key::remove_override`] does.
    pub fn remove_override(&self) -> bool {
        let Key {
            table,
            probe_seq,
            plan,
        } = &self.store;
        let core = &table.core;
        let Some(overrides) = core.plans.overrides() else {
            return false;
        };
        let hash = probe_seq.hash();
        overrides.change(|owners| {
            if owners.remove(&hash).is_none() {
                return false;
            }
            overrides.leave(hash);
            let plan = core.plans.get(*plan).map_or(0, |_| *plan);
            // No quota changes while the lock is held.
            let version = core.plans.version();
            core.move_to(AlgorithmId::new(plan, version), probe_seq, self.now);
            overrides.vacate_but(hash, None);
            true
        })
    }
}

impl<A: ChangeQuota + Settings + Clone> Core<A> {
    /// Gives a key an algorithm of its own.
    pub(super) fn set_override_of(
        &self,
        probe_seq: &ProbeSeq,
        algorithm: A,
        now: Tick,
    ) -> Result<(), LimiterError> {
        let overrides = self.plans.overrides().ok_or(LimiterError::NoOverrides)?;
        let (hash, max) = (probe_seq.hash(), overrides.max());
        overrides.change(|owners| {
            let in_use = LimiterError::OverridesInUse { max };
            if owners.len() >= max && !owners.contains_key(&hash) {
                return Err(in_use);
            }
            let version = overrides.put(hash, &algorithm).ok_or(in_use)?;
            owners.insert(hash, algorithm);
            self.move_to(AlgorithmId::new(OVERRIDE, version), probe_seq, now);
            overrides.vacate_but(hash, Some(version));
            Ok(())
        })
    }

    /// Moves the key's slot to this algorithm, and releases claims for the key. The caller holds
    /// the lock of the overrides.
    fn move_to(&self, to: AlgorithmId, probe_seq: &ProbeSeq, now: Tick) {
        // ORDERING: SeqCst. It pairs with the fence of `confirm_unique`. If a thread claims a slot
        // that is found free here, its fence comes later, so it sees the override that was put or
        // marked before. If its fence came earlier, its claim is found here and released.
        // Model: keyed_overrides::a_key_inserted_meanwhile_has_the_new_algorithm
        fence(Ordering::SeqCst);
        for (bucket, second) in probe_seq.all_buckets() {
            for (at, held) in self.table.slots_of(bucket) {
                self.move_slot(to, probe_seq, (SlotIndex { second, ..at }, held), now);
            }
        }
    }

    fn move_slot(
        &self,
        to: AlgorithmId,
        probe_seq: &ProbeSeq,
        (at, mut held): (SlotIndex, SlotState),
        now: Tick,
    ) {
        while held.is_of(probe_seq.tag(), at.second) {
            let done = if held.is_live() {
                match self.plans.moved(held, probe_seq.hash(), to, now) {
                    Some(next) => self.table.migrate(at, held, next),
                    // Unreachable: a slot's algorithm stays until the slot has been moved.
                    None => {
                        let done = self.table.release(at, held);
                        done.map(|()| self.events.count(Event::Removed))
                    }
                }
            } else {
                self.table.release(at, held)
            };
            match done {
                Ok(()) => return,
                Err(seen) => held = seen,
            }
        }
    }
}
