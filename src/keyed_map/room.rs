//! Room for so many keys and no more, and how it is made: idle keys leave in small steps.

use core::hash::{BuildHasher, Hash};
use core::mem;

use super::KeyedMap;
use super::entries::{FoundEntry, Guard};
use super::entry::{EntryState, Live, MapEntry};
use super::horizon::idle_since;
use super::rank::Candidate;
use super::stored::KeyTicket;
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::overflow::Overflow;
use crate::sync::{AtomicU64, Ordering, inject_fault};

/// How far a thread goes that wants room for a new key. In a model less will do.
#[cfg(not(all(tollgate_loom, feature = "loom")))]
mod far {
    /// So many keys are looked at for each that is new: as long as keys leave, more leave than
    /// come.
    pub(super) const STEPS: usize = 4;

    /// So many at most, where there is no room.
    pub(in crate::keyed_map) const REACH: usize = 16;

    /// So often a key is looked for that can be evicted, while other threads are quicker.
    pub(in crate::keyed_map) const ATTEMPTS: usize = 16;

    /// So often a verb makes room by having others leave; then it takes what room there is. A key
    /// that has just been brought in is as good as fresh, so two threads that bring one each could
    /// otherwise have each other's leave for ever.
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

/// As many tickets of keys that have gone may be there as there are keys, and this many more: a
/// small map need not clear up all the time.
const SPARE_TICKETS: usize = 64;

/// Room for one key: of an entry that is in the map, or of one that will be. Given back when it is
/// dropped.
#[must_use]
pub(super) struct Room<'m>(&'m AtomicU64);

impl<'m> Room<'m> {
    /// That of an entry which was taken out.
    pub(super) fn left(tracked: &'m AtomicU64) -> Self {
        Self(tracked)
    }

    /// Some that nobody has.
    fn reserve(tracked: &'m AtomicU64, capacity: u64) -> Option<Self> {
        // ORDERING: Relaxed. It counts, and publishes nothing: each entry is counted before it is
        // inserted, and until it is taken out. Model: keyed_map::never_more_than_the_capacity
        let mut seen = tracked.load(Ordering::Relaxed);
        loop {
            if seen >= capacity {
                return None;
            }
            if inject_fault!(LooksForRoomFirst) {
                tracked.fetch_add(1, Ordering::Relaxed);
                return Some(Self(tracked));
            }
            // ORDERING: Relaxed. As above: a count, which the exchange itself keeps right.
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

    /// There is an entry in it.
    pub(super) fn keep(self) {
        mem::forget(self);
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        // In a model, who has stopped for ever gives nothing back.
        #[cfg(all(tollgate_loom, feature = "loom"))]
        if std::thread::panicking() {
            return;
        }
        // ORDERING: Relaxed, as in `reserve`.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A thread clears up, and no other need.
struct ClearingUp<'m>(&'m AtomicU64);

impl<'m> ClearingUp<'m> {
    /// `None` if another thread is about it.
    fn begin(clearing: &'m AtomicU64) -> Option<Self> {
        // ORDERING: Relaxed. It keeps threads from doing the same work twice, and publishes
        // nothing: tickets are safe with any number of threads.
        (clearing.swap(1, Ordering::Relaxed) == 0).then_some(Self(clearing))
    }
}

impl Drop for ClearingUp<'_> {
    fn drop(&mut self) {
        // ORDERING: Relaxed, as above.
        self.0.store(0, Ordering::Relaxed);
    }
}

/// What was seen of the keys that were looked at.
pub(super) struct SeenEntry<'g, K, A> {
    pub(super) candidate: Option<Candidate<'g, K, A>>,
    /// Whether one was come across on which nobody has decided.
    pending: bool,
    /// How many have left. (Others may have taken them out, and have their room.)
    pub(super) left: usize,
}

impl<K, A> SeenEntry<'_, K, A> {
    pub(super) const fn nothing() -> Self {
        Self {
            candidate: None,
            pending: false,
            left: 0,
        }
    }
}

/// A ticket that is looked at, and goes back to the others.
struct Drawn<'m, K: Hash + Eq, A: Algorithm, C, S: BuildHasher> {
    map: &'m KeyedMap<K, A, C, S>,
    ticket: KeyTicket,
}

impl<K: Hash + Eq, A: Algorithm, C, S: BuildHasher> Drawn<'_, K, A, C, S> {
    /// Its key has gone.
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
    /// Room for a new key, if there is or can be made some, in this round of a verb. Looks at
    /// [`STEPS`] keys in any case.
    pub(super) fn room(&self, round: u32, now: Tick, guard: &Guard<'_>) -> Option<Room<'_>> {
        if round >= ROUNDS {
            return self.reserve();
        }
        let mut seen = SeenEntry::nothing();
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

    /// Looks at the key whose turn it is. If it is idle it leaves, and this is its room.
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
            // Its owner wants it to stay.
            EntryState::Pending | EntryState::Live(_) if entry.has_its_own() => return None,
            EntryState::Live(live) => live,
            // Somebody is about to decide on it, or was, and has gone.
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
        self.consider(found, &live, now, &mut seen.candidate);
        None
    }

    /// Tears up the tickets of keys that were removed, if they outnumber the keys that are there.
    ///
    /// A removed key's ticket lies somewhere in the queue, and only its turn finds it. New keys
    /// bring that turn nearer; removals alone do not, so without this the tickets of a map that was
    /// emptied would stay. More than half of the tickets go, so each removal pays for a few looks
    /// at most.
    ///
    /// Each ticket is looked at once, and those that stay keep their order: whose turn it is to be
    /// looked at for being idle does not change.
    pub(super) fn clear_up(&self, guard: &Guard<'_>) {
        let tickets = self.entries.tickets();
        // In a model there are never so many: it does not get past this.
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

    /// Retires an entry on which nobody has decided since somebody else came across it.
    fn retire_forsaken(&self, entry: &MapEntry<A>, seen: &mut SeenEntry<'_, K, A>) -> bool {
        let was_seen = mem::replace(&mut seen.pending, true);
        entry.mark_seen() && !was_seen && entry.retire_pending()
    }

    /// Retires a word that is as good as fresh.
    pub(super) fn retire_idle(&self, found: &FoundEntry<'_, K, A>, live: &Live, now: Tick) -> bool {
        // What its key did before it was moved is in the word as it was at the move, and not as it
        // was before.
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

/// What became of a key that was to leave.
pub(super) enum Forgotten<'m> {
    /// Another thread had retired it.
    Already,
    /// It is retired, and left this room, unless another thread took it out.
    Now(Option<Room<'m>>),
}
