//! How a key is evicted when there is no room for a new one and none is idle: `rank.rs` says which.

use core::hash::{BuildHasher, Hash};

use super::KeyedMap;
use super::entries::Guard;
use super::entry::EntryState;
use super::rank::Candidate;
use super::room::{ATTEMPTS, REACH, Room, SeenEntry};
use super::stored::AnyOfHash;
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::sync::inject_fault;

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq,
    A: Algorithm,
    S: BuildHasher,
{
    /// The room of the key that is to leave first, of those looked at and the newest ones.
    #[cold]
    pub(super) fn evict<'g>(
        &self,
        now: Tick,
        guard: &'g Guard<'_>,
        mut seen: SeenEntry<'g, K, A>,
    ) -> Option<Room<'_>> {
        for _ in 0..ATTEMPTS {
            self.consider_newest(now, guard, &mut seen);
            if let Some(candidate) = seen.candidate.take() {
                let left = self.evict_candidate(&candidate, now, guard);
                if left.is_some() {
                    return left;
                }
            }
            // Others were quicker, or have all tickets in their hands.
            for _ in 0..REACH {
                let left = self.step(now, guard, &mut seen);
                if let Some(room) = left.or_else(|| self.reserve()) {
                    return Some(room);
                }
            }
        }
        None
    }

    /// Looks at the keys that came last.
    fn consider_newest<'g>(&self, now: Tick, guard: &'g Guard<'_>, seen: &mut SeenEntry<'g, K, A>) {
        let newest = self.entries.newest();
        for hash in newest.iter() {
            let Some(found) = self.entries.get(&AnyOfHash(hash), guard) else {
                newest.remove(hash);
                continue;
            };
            match found.entry().state() {
                EntryState::Live(live) if !found.entry().has_its_own() => {
                    self.consider(found, &live, now, &mut seen.candidate);
                }
                _ => {}
            }
        }
    }

    /// Evicts a key, unless others have had it leave, or it has come to be one that leaves later.
    /// Its room, unless another thread took the entry out.
    fn evict_candidate(
        &self,
        candidate: &Candidate<'_, K, A>,
        now: Tick,
        guard: &Guard<'_>,
    ) -> Option<Room<'_>> {
        let found = &candidate.found;
        while let EntryState::Live(live) = found.entry().state() {
            let rank = self.rank(found, &live, now);
            if rank > candidate.rank && !inject_fault!(EvictsAsItWas) {
                return None;
            }
            if !self.retire_idle(found, &live, now) {
                if !found.entry().retire(&live) {
                    continue;
                }
                self.counts.evicted(rank.is_protected());
            }
            self.entries.newest().remove(found.ticket().hash);
            return self.take_out(found, guard);
        }
        None
    }
}
