//! Limits the number of keys, and makes room for new ones: idle keys leave in small steps.

use core::hash::{BuildHasher, Hash};
use core::mem;

use super::KeyedMap;
use super::entries::{FoundEntry, Guard};
use super::entry::{EntryState, Live, MapEntry};
use super::horizon::idle_since;
use super::rank::Candidate;
use super::stored::{KeyTicket, MatchesKey};
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::overflow::Overflow;
use crate::sync::{AtomicU64, Ordering, inject_fault};

/// How far a thread searches for room for a new key. Models need less.
#[cfg(not(all(tollgate_loom, feature = "loom")))]
mod far {
    /// How many keys are checked for each new one. So as long as keys become idle, more can leave
    /// than are inserted.
    pub(super) const STEPS: usize = 4;

    /// How many keys are checked at most, if there is no room.
    pub(in crate::keyed_map) const REACH: usize = 16;

    /// How often an eviction is tried, while other threads are faster.
    pub(in crate::keyed_map) const ATTEMPTS: usize = 16;

    /// In how many rounds an operation makes room by removing other keys. After these it takes only
    /// free room: a key that was just inserted is idle, so two threads that each insert a key could
    /// otherwise remove each other's key forever.
    pub(super) const ROUNDS: u32 = 16;
}
#[cfg(all(tollgate_loom, feature = "loom"))]
mod far {
    pub(super) const STEPS: usize = 1;
    pub(in crate::keyed_map) const REACH: usize = 2;
    pub(in crate::keyed_map) const ATTEMPTS: usize = 2;
    pub(super) const ROUNDS: u32 = 1;
}
pub(super) use far::{ATTEMPTS, REACH};
use far::{ROUNDS, STEPS};

/// The queue may hold as many tickets of removed keys as the map has keys, plus this many, so that
/// a small map does not clear up all the time.
const SPARE_TICKETS: usize = 64;

/// Room for one key: of an entry that is in the map, or that will be. Dropping it returns the room.
#[must_use]
pub(super) struct Room<'m>(&'m AtomicU64);

impl<'m> Room<'m> {
    /// Returns the room of an entry that was removed.
    pub(super) fn left(tracked: &'m AtomicU64) -> Self {
        Self(tracked)
    }

    /// Reserves free room.
    fn reserve(tracked: &'m AtomicU64, capacity: u64) -> Option<Self> {
        // ORDERING: Relaxed. The count publishes nothing: each entry is counted before it is
        // inserted, and until it is removed.
        // Model: keyed_map::never_more_than_the_capacity
        let mut seen = tracked.load(Ordering::Relaxed);
        loop {
            if seen >= capacity {
                return None;
            }
            if inject_fault!(LooksForRoomFirst) {
                tracked.fetch_add(1, Ordering::Relaxed);
                return Some(Self(tracked));
            }
            // ORDERING: Relaxed, as above. The exchange itself keeps the count right.
            match tracked.compare_exchange_weak(
                seen,
                seen.saturating_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(Self(tracked)),
                Err(now) => seen = now,
            }
        }
    }

    /// Keeps the room for an entry that was inserted.
    pub(super) fn keep(self) {
        mem::forget(self);
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        // In a model, a thread that stops for ever returns nothing.
        #[cfg(all(tollgate_loom, feature = "loom"))]
        if std::thread::panicking() {
            return;
        }
        // ORDERING: Relaxed, as in `reserve`.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The right of one thread to discard the tickets of removed keys.
struct ClearingUp<'m>(&'m AtomicU64);

impl<'m> ClearingUp<'m> {
    /// Returns `None` if another thread does this now.
    fn begin(clearing: &'m AtomicU64) -> Option<Self> {
        // ORDERING: Relaxed. It keeps threads from doing the same work twice, and publishes
        // nothing: the queue of tickets is safe with any number of threads.
        (clearing.swap(1, Ordering::Relaxed) == 0).then_some(Self(clearing))
    }
}

impl Drop for ClearingUp<'_> {
    fn drop(&mut self) {
        // ORDERING: Relaxed, as above.
        self.0.store(0, Ordering::Relaxed);
    }
}

/// The result of checking keys.
pub(super) struct SeenEntry<'g, K, A> {
    /// The key that needs the room. It is not evicted: another thread may have inserted it, and
    /// granted, after this one found it absent.
    pub(super) own: Option<&'g dyn MatchesKey<K>>,
    pub(super) candidate: Option<Candidate<'g, K, A>>,
    /// Whether a pending entry was seen.
    pending: bool,
    /// How many keys this search has retired. (Another thread may have removed such an entry and
    /// taken its room.)
    pub(super) left: usize,
}

impl<K, A> SeenEntry<'_, K, A> {
    pub(super) const fn nothing() -> Self {
        Self {
            own: None,
            candidate: None,
            pending: false,
            left: 0,
        }
    }
}

/// A ticket that was taken from the queue. Dropping it puts it back.
struct Drawn<'m, K: Hash + Eq, A: Algorithm, C, S: BuildHasher> {
    map: &'m KeyedMap<K, A, C, S>,
    ticket: KeyTicket,
}

impl<K: Hash + Eq, A: Algorithm, C, S: BuildHasher> Drawn<'_, K, A, C, S> {
    /// Discards the ticket, because its key has left.
    fn discard(self) {
        mem::forget(self);
    }
}

impl<K: Hash + Eq, A: Algorithm, C, S: BuildHasher> Drop for Drawn<'_, K, A, C, S> {
    fn drop(&mut self) {
        self.map.entries.push_ticket(self.ticket);
    }
}

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq,
    A: Algorithm,
    S: BuildHasher,
{
    /// Returns room for a new key, if there is any or an old key can be removed. `round` counts the
    /// attempts of one operation. Checks at least [`STEPS`] keys in each round before [`ROUNDS`].
    pub(super) fn room<'g>(
        &self,
        own: &'g dyn MatchesKey<K>,
        round: u32,
        now: Tick,
        guard: &'g Guard<'_>,
    ) -> Option<Room<'_>> {
        if round >= ROUNDS {
            return self.reserve();
        }
        let mut seen = SeenEntry::nothing();
        seen.own = Some(own).filter(|_| !inject_fault!(EvictsItsOwnKey));
        let mut left = None;
        for _ in 0..STEPS {
            left = self.step(now, guard, &mut seen).or(left);
        }
        if let Some(room) = left.or_else(|| self.reserve()) {
            return Some(room);
        }
        for _ in STEPS..REACH {
            let left = self.step(now, guard, &mut seen);
            if let Some(room) = left.or_else(|| self.reserve()) {
                return Some(room);
            }
        }
        match self.overflow {
            Overflow::Evict => self.evict(now, guard, seen),
            Overflow::Deny | Overflow::Admit => None,
        }
    }

    pub(super) fn reserve(&self) -> Option<Room<'_>> {
        Room::reserve(&self.tracked, self.capacity)
    }

    /// Checks the next key in the queue. If it is idle, removes it and returns its room.
    pub(super) fn step<'g>(
        &self,
        now: Tick,
        guard: &'g Guard<'_>,
        seen: &mut SeenEntry<'g, K, A>,
    ) -> Option<Room<'_>> {
        let drawn = Drawn {
            map: self,
            ticket: self.entries.pop_ticket()?,
        };
        let Some(found) = self.entries.get(&drawn.ticket, guard) else {
            drawn.discard();
            return None;
        };
        let entry = found.entry();
        let live = match entry.state() {
            // A key with its own algorithm stays.
            EntryState::Pending | EntryState::Live(_) if entry.has_its_own() => return None,
            EntryState::Live(live) => live,
            // A thread is about to decide on it, or has stopped before it did.
            EntryState::Pending if !self.retire_forsaken(entry, seen) => return None,
            EntryState::Moved => return None,
            EntryState::Pending | EntryState::Retired => return self.take_out(&found, guard),
        };
        if self.retire_idle(&found, &live, now) {
            drawn.discard();
            seen.left = seen.left.saturating_add(1);
            let left = self.take_out(&found, guard);
            if inject_fault!(RaisesAfterwards) {
                self.horizon.raise(now);
            }
            return left;
        }
        self.consider(found, &live, now, seen.own, &mut seen.candidate);
        None
    }

    /// Discards the tickets of removed keys if they outnumber the keys in the map.
    ///
    /// The ticket of a removed key lies somewhere in the queue until its turn. New keys bring that
    /// turn closer, but removals alone do not, so without this an emptied map would keep its
    /// tickets. More than half of the tickets go, so each removal pays for only a few checks.
    ///
    /// Each ticket is checked once, and the remaining tickets keep their order: this does not
    /// change which key is next.
    pub(super) fn clear_up(&self, guard: &Guard<'_>) {
        let tickets = self.entries.tickets();
        // A model never has that many tickets, and always returns here.
        if tickets <= SPARE_TICKETS {
            return;
        }
        let most = self.len().saturating_mul(2).saturating_add(SPARE_TICKETS);
        if tickets <= most {
            return;
        }
        let Some(clearing) = ClearingUp::begin(&self.clearing) else {
            return;
        };
        for _ in 0..tickets {
            let Some(ticket) = self.entries.pop_ticket() else {
                break;
            };
            let drawn = Drawn { map: self, ticket };
            if self.entries.get(&ticket, guard).is_none() {
                drawn.discard();
            }
        }
        drop(clearing);
    }

    /// Retires a pending entry that an earlier search has already seen.
    fn retire_forsaken(&self, entry: &MapEntry<A>, seen: &mut SeenEntry<'_, K, A>) -> bool {
        let was_seen = mem::replace(&mut seen.pending, true);
        entry.mark_seen() && !was_seen && entry.retire_pending()
    }

    /// Retires a word that is idle.
    pub(super) fn retire_idle(&self, found: &FoundEntry<'_, K, A>, live: &Live, now: Tick) -> bool {
        // The word of a moved entry says nothing about the time before the move: the key may have
        // spent its burst then.
        if now < live.since && found.was_moved() {
            return false;
        }
        let algorithm = found.entry().algorithm();
        let reached = self.horizon.tick().max(live.since);
        let Some(idle) = idle_since(algorithm, live.word, now, reached) else {
            return false;
        };
        if !inject_fault!(RaisesAfterwards) {
            self.horizon.raise(idle);
        }
        let retired = found.entry().retire(live);
        if retired {
            self.counts.expired();
        }
        retired
    }
}

/// The result of removing a key.
pub(super) enum Forgotten<'m> {
    /// Another thread had retired it.
    Already,
    /// This call retired it and got its room, unless another thread removed the entry.
    Now(Option<Room<'m>>),
}
