//! Evicts a key when there is no room for a new one and none is idle, in the order of `rank.rs`.

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
    /// Evicts the lowest-ranked key of those seen and the newest ones, and returns its room.
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
            // Other threads were faster, or hold all tickets.
            for _ in 0..REACH {
                let left = self.step(now, guard, &mut seen);
                if let Some(room) = left.or_else(|| self.reserve()) {
                    return Some(room);
                }
            }
        }
        None
    }

    /// Considers the newest keys.
    fn consider_newest<'g>(&self, now: Tick, guard: &'g Guard<'_>, seen: &mut SeenEntry<'g, K, A>) {
        let newest = self.entries.newest();
        for hash in newest.iter() {
            let Some(found) = self.entries.get(&AnyOfHash(hash), guard) else {
                newest.remove(hash);
                continue;
            };
            match found.entry().state() {
                EntryState::Live(live) if !found.entry().has_its_own() => {
                    self.consider(found, &live, now, seen.own, &mut seen.candidate);
                }
                _ => {}
            }
        }
    }

    /// Evicts a key, unless another thread made it leave or its rank has risen. Returns its room,
    /// unless another thread removed the entry.
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
