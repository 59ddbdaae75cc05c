//! Sets the quota of all keys without their own algorithm.
//!
//! A thread that sets the quota publishes the new algorithm, then walks through the map and moves
//! each entry that has an older one (see [`moving`](super::moving)). Behind the walk, a thread that
//! looked the algorithm up earlier, and was then preempted, may still insert an entry with the old
//! one. So the first thread that decides on an entry reads the algorithm again, after the
//! insertion. There is a fence between the insertion and this second look, and one between the
//! publication and the walk: so at least one of the two threads finds the other's work.

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
    /// Changes the quota of all keys at this tick: see [`set_quota`](Self::set_quota).
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the quota can't be represented; nothing changes then.
    pub fn set_quota_at(&self, quota: Quota, keep: Keep, now: Tick) -> Result<(), ConfigError> {
        let locked = self.setting.lock();
        // An earlier change may have panicked, in code of an algorithm or a key, and left some keys
        // with an older algorithm. This change includes them, even if its quota is the current one.
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

    /// Makes new keys start with this algorithm. It takes the lock, so that a thread that changes a
    /// key's algorithm has finished before or reads this one.
    fn publish(&self, next: SharedAlgorithm<A>) {
        let one_at_a_time = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        self.latest.set(next);
        drop(one_at_a_time);
    }

    /// Moves each key without its own algorithm to this one.
    fn bring_all_to(&self, next: &SharedAlgorithm<A>, keep: Keep, now: Tick) {
        // ORDERING: SeqCst. It publishes the new algorithm, and pairs with the fence of
        // `MapEntry::begin`, which a thread passes between the insertion of an entry and the first
        // decision on it. So either that thread reads the new algorithm, or this one finds the
        // entry.
        // Model: keyed_map_quota::a_quota_is_set_for_all_keys
        fence(Ordering::SeqCst); // before the walk
        let guard = self.entries.guard();
        for found in self.entries.all(&guard) {
            self.bring_to(next, found.ticket(), keep, now, &guard);
        }
    }

    /// Moves a key to this algorithm. It looks the key up again: since the walk reached it, other
    /// threads may have changed its entry, and the map may have grown.
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
                // Nothing was decided yet. The key will start with the published algorithm.
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
    /// Changes the quota of all keys without their [own algorithm](Self::set_algorithm); `keep`
    /// decides what happens to their available permits.
    ///
    /// Each key changes as an [`Adjustable`](crate::Adjustable) limiter does. The call visits all
    /// keys, one after the other. Decisions do not wait for it: a key that was not visited yet uses
    /// the old quota. Each decision that begins after the call has returned uses the new quota.
    /// Earlier grants can't be undone after that.
    ///
    /// While this runs, the map takes up to twice its memory. Other threads that change quotas wait
    /// for this one.
    ///
    /// With [`Keep::AsIs`] and a larger burst, no key in the map is idle until the larger burst has
    /// filled, not even keys that were idle before. With [`Keep::Scaled`], idle keys stay idle, and
    /// can leave.
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
    /// [`ConfigError`] if the quota can't be represented; nothing changes then.
    pub fn set_quota(&self, quota: Quota, keep: Keep) -> Result<(), ConfigError> {
        self.set_quota_at(quota, keep, self.clock.now())
    }
}

impl<K, A: ChangeQuota, C, S> KeyedMap<K, A, C, S> {
    /// Returns the quota of all keys without their own algorithm.
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
