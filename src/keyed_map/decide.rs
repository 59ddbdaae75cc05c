//! Finds a key, inserts it if it is not in the map, and decides on it.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use super::KeyedMap;
use super::entries::{FoundEntry, Guard};
use super::entry::{EntryState, MapEntry, first_word};
use super::latest::SharedAlgorithm;
use super::room::{Forgotten, Room};
use super::stored::{HashedKey, KeyTicket, Stored};
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::outcome::Denied;
use crate::overflow::Overflow;
use crate::store::op::{Current, Op, OpResult, Refusal};
use crate::sync::{Ordering, fence, inject_fault};

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq,
    A: Algorithm,
    S: BuildHasher,
{
    pub(super) fn hashed_key<'q, Q: Hash + ?Sized>(&self, key: &'q Q) -> HashedKey<'q, Q> {
        let hash = self.hasher.hash_one(key);
        HashedKey { hash, key }
    }

    /// Runs an operation on the key's word at this tick.
    #[inline]
    pub(super) fn apply<Q, O>(&self, key: &Q, now: Tick, mut op: O) -> OpResult<A, O>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        O: Op<A>,
    {
        let hashed_key = self.hashed_key(key);
        let guard = self.entries.guard();
        let mut round = 0;
        loop {
            let Some(found) = self.entries.get(&hashed_key, &guard) else {
                match self.decide_on_absent(&hashed_key, round, now, &mut op, &guard) {
                    Some(outcome) => return outcome,
                    None => {
                        round = round.saturating_add(1);
                        continue;
                    }
                }
            };
            let done = (found.entry()).decide(&self.latest, now, &self.horizon, &mut op);
            match done {
                Some((outcome, at)) => return said(outcome, at, now),
                None => self.get_past(&hashed_key, &found, &guard),
            }
        }
    }

    /// Answers an operation on a key that is not in the map, if nothing has to be stored or there
    /// is no room. Otherwise inserts the key and returns `None`, and the caller looks again.
    #[cold]
    #[inline(never)]
    fn decide_on_absent<Q, O>(
        &self,
        hashed_key: &HashedKey<'_, Q>,
        round: u32,
        now: Tick,
        op: &mut O,
        guard: &Guard<'_>,
    ) -> Option<OpResult<A, O>>
    where
        K: Borrow<Q>,
        Q: Eq + ToOwned<Owned = K> + ?Sized,
        O: Op<A>,
    {
        let latest = self.latest.get();
        let algorithm = &**latest;
        let at = now.max(self.horizon.tick());
        let word = first_word(algorithm, at);
        let outcome = op.run(algorithm, Current::new(word, at).with_source(0));
        let keep = match &outcome {
            // A key that starts with less than its burst begins to refill with its first request.
            Ok((next, _)) if op.is_unchanged(word, *next) => O::GRANTS && word != 0,
            Ok((next, _)) => (word, *next) != (0, 0),
            Err(_) => word != 0,
        };
        if keep {
            match self.room(hashed_key, round, now, guard) {
                Some(room) => {
                    self.insert(hashed_key, latest, now, room, guard);
                    return None;
                }
                // Another thread has inserted the key, perhaps in the last room.
                None if self.entries.get(hashed_key, guard).is_some() => return None,
                None => {
                    self.counts.no_room();
                    let refusal = match self.overflow {
                        Overflow::Admit => None,
                        Overflow::Evict | Overflow::Deny => op.unavailable(Denied::no_room, now),
                    };
                    if refusal.is_some() {
                        return refusal;
                    }
                }
            }
        }
        Some(said(outcome.map(|(_, answer)| answer), at, now))
    }

    /// Inserts a key as pending, unless it is in the map. If the key's `clone` or `Eq` panics, only
    /// memory is lost. `algorithm` was the latest one when the caller looked; the first thread that
    /// decides on the key checks again.
    pub(super) fn insert<Q>(
        &self,
        hashed_key: &HashedKey<'_, Q>,
        algorithm: SharedAlgorithm<A>,
        now: Tick,
        room: Room<'_>,
        guard: &Guard<'_>,
    ) where
        K: Borrow<Q>,
        Q: Eq + ToOwned<Owned = K> + ?Sized,
    {
        let number = self.next_number();
        let ticket = KeyTicket {
            hash: hashed_key.hash,
            id: number,
        };
        let stored = Stored {
            key: hashed_key.key.to_owned(),
            ticket,
        };
        let entry = MapEntry::pending(number, algorithm);
        if inject_fault!(ReadsTheHorizonFirst) {
            let _ = entry.since(&self.latest, now, &self.horizon);
        }
        let _ = now;
        if self.entries.insert(stored, entry, guard) {
            room.keep();
            self.entries.push_ticket(ticket);
            self.entries.newest().add(ticket);
        }
    }

    pub(super) fn next_number(&self) -> u64 {
        // ORDERING: Relaxed. Numbers only have to differ, and publish nothing. They start at 1: 0
        // is the source of grants that are not recorded.
        let before = self.numbers.fetch_add(1, Ordering::Relaxed);
        before.wrapping_add(1)
    }

    /// Removes a retired entry, or replaces a moved one by its successor.
    #[cold]
    #[inline(never)]
    pub(super) fn get_past<Q>(
        &self,
        hashed_key: &HashedKey<'_, Q>,
        found: &FoundEntry<'_, K, A>,
        guard: &Guard<'_>,
    ) where
        Q: ToOwned<Owned = K> + ?Sized,
    {
        // ORDERING: Acquire. It publishes nothing, and pairs with the fences of
        // `MapEntry::move_away` and `retire`. A thread that found the entry moved then finds its
        // announced successor, or a later one. A thread that found it retired finds the room that
        // was returned before.
        // Models: keyed_map::an_algorithm_is_changed, a_late_decision_counts_with_later_ones
        fence(Ordering::Acquire); // after it was found retired or moved
        match found.entry().state() {
            // The entry is usable: another thread decided on it, and it has its first word again.
            EntryState::Pending | EntryState::Live(_) => {}
            EntryState::Moved if !inject_fault!(TakesOutMoving) => {
                self.finish_move(found, hashed_key.key.to_owned(), guard);
            }
            EntryState::Moved | EntryState::Retired => drop(self.take_out(found, guard)),
        }
    }

    /// Removes a retired entry. Returns its room if this call removed it.
    pub(super) fn take_out(
        &self,
        found: &FoundEntry<'_, K, A>,
        guard: &Guard<'_>,
    ) -> Option<Room<'_>> {
        let removed = self.entries.remove(found, guard);
        removed.then(|| Room::left(&self.tracked))
    }

    /// Retires a key, whatever its word, and removes it.
    pub(super) fn forget(&self, found: &FoundEntry<'_, K, A>, guard: &Guard<'_>) -> Forgotten<'_> {
        let entry = found.entry();
        loop {
            let retired = match entry.state() {
                EntryState::Retired => return Forgotten::Already,
                EntryState::Moved => {
                    return match self.take_out(found, guard) {
                        Some(room) => Forgotten::Now(Some(room)),
                        None => Forgotten::Already,
                    };
                }
                EntryState::Pending => entry.retire_pending(),
                EntryState::Live(live) => entry.retire(&live),
            };
            if retired {
                return Forgotten::Now(self.take_out(found, guard));
            }
        }
    }
}

/// Converts an outcome at tick `at` to the caller's tick.
#[inline(always)]
fn said<T, R: Refusal>(outcome: Result<T, R>, at: Tick, now: Tick) -> Result<T, R> {
    outcome.map_err(|refusal| match at > now {
        true => refusal.earlier(at.saturating_since(now)),
        false => refusal,
    })
}
