//! Another quota for all keys that have no algorithm of their own.
//!
//! A thread that sets the quota publishes the new algorithm, and then walks through the map and
//! moves each entry of another one (see [`moving`](super::moving)). An entry may come into the map
//! behind its back, with the algorithm from before: a thread looked that up, and then stopped for a
//! while. So the thread that first decides on an entry reads the algorithm again, after the entry
//! was inserted. There is a fence between the insertion and this look, and one between the
//! publication and the walk: so at least one of the two finds the other.

use core::hash::{BuildHasher, Hash};
use std::sync::{Arc, PoisonError};

use crossbeam_utils::CachePadded;

use super::KeyedMap;
use super::entries::Guard;
use super::entry::EntryState;
use super::latest::SharedAlgorithm;
use super::moving::carried_to;
use super::stored::KeyTicket;
use crate::adjustable::Keep;
use crate::algorithm::ChangeQuota;
use crate::clock::{Clock, Tick};
use crate::quota::{ConfigError, Quota};
use crate::sync::{Ordering, fence, inject_fault};

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq + Clone,
    A: ChangeQuota,
    S: BuildHasher,
{
    /// [`set_quota`](Self::set_quota) at this tick.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the quota can't be represented: then nothing has changed.
    pub fn set_quota_at(&self, quota: Quota, keep: Keep, now: Tick) -> Result<(), ConfigError> {
        let locked = self.setting.lock();
        // A change that panicked, in code of the algorithm's or a key's, may have left some keys
        // behind. The next one brings them along, whatever its quota is.
        let is_whole = locked.is_ok();
        let one_at_a_time = locked.unwrap_or_else(PoisonError::into_inner);
        let latest = self.latest.get();
        if is_whole && keep != Keep::Fresh && latest.quota() == quota {
            return Ok(());
        }
        let next = Arc::new(CachePadded::new(latest.with_quota(quota)?));
        if inject_fault!(WalksFirst) {
            self.bring_all_to(&next, keep, now);
        }
        self.publish(Arc::clone(&next));
        if !inject_fault!(WalksFirst) {
            self.bring_all_to(&next, keep, now);
        }
        drop(one_at_a_time);
        Ok(())
    }

    /// Has new keys begin with this algorithm. A thread that changes a key's algorithm does so
    /// before, or finds this one.
    fn publish(&self, next: SharedAlgorithm<A>) {
        let one_at_a_time = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        self.latest.set(next);
        drop(one_at_a_time);
    }

    /// Brings each key to this algorithm that has none of its own.
    fn bring_all_to(&self, next: &SharedAlgorithm<A>, keep: Keep, now: Tick) {
        // ORDERING: SeqCst, with the fence of `MapEntry::begin`. A thread that is about to decide
        // on an entry passes that one after the entry was inserted: so either it reads the
        // algorithm that has been published, or the entry is found here.
        // Model: keyed_map::a_quota_is_set_for_all_keys
        fence(Ordering::SeqCst); // before the walk
        let guard = self.entries.guard();
        for found in self.entries.all(&guard) {
            self.bring_to(next, found.ticket(), keep, now, &guard);
        }
    }

    /// Brings a key to this algorithm. It is looked up again: other threads may have changed its
    /// entry, and the map may have grown, since the walk came to it.
    fn bring_to(
        &self,
        next: &SharedAlgorithm<A>,
        ticket: KeyTicket,
        keep: Keep,
        now: Tick,
        guard: &Guard<'_>,
    ) {
        while let Some(found) = self.entries.get(&ticket, guard) {
            let entry = found.entry();
            if !entry.is_behind(next) {
                return;
            }
            let one_at_a_time = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
            match entry.state() {
                // Nothing was decided: the key begins with the algorithm that is published.
                EntryState::Pending => {
                    if entry.retire_pending() {
                        drop(self.take_out(&found, guard));
                    }
                }
                EntryState::Live(live) => {
                    let at = now.max(live.since);
                    let successor = carried_to(next, false, keep, (entry, &live, at));
                    let key = || found.key().clone();
                    let _ = self.try_move(&found, key, &live, now, successor, guard);
                }
                EntryState::Retired => drop(self.take_out(&found, guard)),
                EntryState::Moved => self.finish_move(&found, found.key().clone(), guard),
            }
            drop(one_at_a_time);
        }
    }
}

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq + Clone,
    A: ChangeQuota,
    C: Clock,
    S: BuildHasher,
{
    /// Changes the quota of all keys that have no [algorithm of their own](Self::set_algorithm),
    /// and goes on with what is there as `keep` says.
    ///
    /// For each key a change does what it does to an [`Adjustable`](crate::Adjustable) limiter.
    /// It visits all keys, one after the other. Decisions go on meanwhile, and wait for nothing: on
    /// a key that has not been visited yet they use the old quota. Once this has returned, each
    /// decision that begins uses the new quota. Grants from before can't be undone then.
    ///
    /// While this runs, the map takes up to twice its memory. Other callers that change quotas wait
    /// for this one.
    ///
    /// With [`Keep::AsIs`] and a larger burst, all keys in the map are in use until that has
    /// filled, also those that were idle; with [`Keep::Scaled`] they stay idle, and can leave.
    ///
    /// ```
    /// use tollgate::adjustable::Keep;
    /// use tollgate::{KeyedMap, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let map: KeyedMap<String, _> = KeyedMap::token_bucket(Quota::per_hour(100), 1000)?;
    /// map.try_acquire_n("alice", 60)?;
    /// map.set_quota(Quota::per_hour(1000), Keep::AsIs)?;
    /// assert_eq!(map.key("alice").available(), 40);
    /// assert_eq!(map.key("bob").available(), 1000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the quota can't be represented: then nothing has changed.
    pub fn set_quota(&self, quota: Quota, keep: Keep) -> Result<(), ConfigError> {
        self.set_quota_at(quota, keep, self.clock.now())
    }
}

impl<K, A: ChangeQuota, C, S> KeyedMap<K, A, C, S> {
    /// The quota of all keys that have no algorithm of their own.
    ///
    /// ```
    /// use tollgate::adjustable::Keep;
    /// use tollgate::{KeyedMap, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let map: KeyedMap<u64, _> = KeyedMap::token_bucket(Quota::per_hour(100), 1000)?;
    /// map.set_quota(Quota::per_hour(7), Keep::Scaled)?;
    /// assert_eq!(map.quota(), Quota::per_hour(7));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.latest.get().quota()
    }
}
