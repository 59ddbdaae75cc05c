//! Changes a key's algorithm, to its own or to the map's.
//!
//! A successor with the carried-over word replaces the key's entry:
//!
//! 1. A thread that holds the lock computes the successor, and announces it ([`Change`]).
//! 2. It marks the entry as moved, by exchanging the word that was carried over. If the word has
//!    changed, it starts again.
//! 3. The successor replaces the entry in the map.
//!
//! Any thread that finds a moved entry can do the third step, and a decision does, so it waits for
//! no other thread. One announcement is enough for all keys: the thread with the lock does the
//! third step itself before its next announcement. So if a thread finds a moved entry, and the
//! announcement is of another entry, the successor is in the map or has already left. (If a key's
//! own code panics before the third step, the next announcement keeps the one before it.)

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use std::sync::{Arc, PoisonError};

use crossbeam_utils::CachePadded;

use super::KeyedMap;
use super::entries::{FoundEntry, Guard};
use super::entry::{EntryState, Live, MapEntry, Successor, first_word};
use super::latest::SharedAlgorithm;
use super::stored::{HashedKey, KeyTicket, Stored};
use crate::adjustable::Keep;
use crate::algorithm::{Algorithm, ChangeQuota};
use crate::ban::ban_in;
use crate::clock::{Clock, Tick};
use crate::outcome::Denied;
use crate::sync::{Ordering, fence};

/// The announced change: an entry, by its number, and its successor.
pub(super) struct Change<A> {
    of: u64,
    ticket: KeyTicket,
    successor: Successor<A>,
    /// The change before this one, if a panic kept its successor out of the map.
    broken_off: Option<Arc<Change<A>>>,
}

impl<A> Change<A> {
    /// Returns the successor of the entry with this number.
    fn of(&self, number: u64) -> Option<&Successor<A>> {
        let mut next = Some(self);
        while let Some(change) = next {
            if change.of == number {
                return Some(&change.successor);
            }
            next = change.broken_off.as_deref();
        }
        None
    }
}

/// The current state of a key.
pub(super) struct EntryNow<A> {
    pub(super) algorithm: SharedAlgorithm<A>,
    pub(super) word: u64,
    pub(super) since: Tick,
    pub(super) is_banned: bool,
    pub(super) is_protected: bool,
    /// Whether it was moved: then nothing is known of the time before [`since`](Self::since).
    pub(super) was_moved: bool,
}

/// The state to which a key is moved.
pub(super) struct Next<A> {
    pub(super) algorithm: SharedAlgorithm<A>,
    /// Whether the algorithm is the key's own.
    pub(super) is_own: bool,
    pub(super) word: u64,
    pub(super) is_banned: bool,
}

/// Carries a key over to another algorithm. A ban still ends at the same tick.
pub(super) fn carried_to<A: ChangeQuota>(
    next: &SharedAlgorithm<A>,
    is_own: bool,
    keep: Keep,
    (entry, live, at): (&MapEntry<A>, &Live, Tick),
) -> Next<A> {
    let old = entry.algorithm();
    let has_ban = entry.has_ban() && keep != Keep::Fresh;
    let ban = has_ban
        .then(|| ban_in(old, live.word, at, &**next))
        .flatten();
    Next {
        algorithm: Arc::clone(next),
        is_own,
        word: ban.unwrap_or_else(|| keep.carry(old, live.word, at, &**next)),
        is_banned: ban.is_some(),
    }
}

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq,
    A: Algorithm,
    S: BuildHasher,
{
    /// Gives a key its own algorithm at this tick: see [`set_algorithm`](Self::set_algorithm).
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the key is new and there is no room for it.
    pub fn set_algorithm_at<Q>(&self, key: &Q, algorithm: A, now: Tick) -> Result<(), Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        A: ChangeQuota,
    {
        let algorithm = Arc::new(CachePadded::new(algorithm));
        self.change(key, now, |entry, live, at| {
            Some(carried_to(&algorithm, true, Keep::AsIs, (entry, live, at)))
        })
    }

    /// Gives a key its own algorithm and starts it afresh, at this tick: see
    /// [`set_algorithm_afresh`](Self::set_algorithm_afresh).
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the key is new and there is no room for it.
    pub fn set_algorithm_afresh_at<Q>(&self, key: &Q, algorithm: A, now: Tick) -> Result<(), Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let algorithm = Arc::new(CachePadded::new(algorithm));
        self.change(key, now, |_, _, at| {
            Some(Next {
                algorithm: Arc::clone(&algorithm),
                is_own: true,
                word: first_word(&**algorithm, at),
                is_banned: false,
            })
        })
    }

    /// Removes a key's own algorithm at this tick: see [`unset_algorithm`](Self::unset_algorithm).
    pub fn unset_algorithm_at<Q>(&self, key: &Q, now: Tick) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        A: ChangeQuota,
    {
        let hashed_key = self.hashed_key(key);
        let one_at_a_time = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        let guard = self.entries.guard();
        let latest = self.latest.get();
        let next = |entry: &MapEntry<A>, live: &Live, at| {
            Some(carried_to(&latest, false, Keep::AsIs, (entry, live, at)))
        };
        let done = loop {
            match self.entries.get(&hashed_key, &guard) {
                Some(found) if found.entry().has_its_own() => {
                    if self.try_change(&hashed_key, &found, now, &next, &guard) {
                        break true;
                    }
                }
                _ => break false,
            }
        };
        drop(one_at_a_time);
        done
    }

    /// Inserts the key if it is not in the map, and moves it to the state that `next` returns, if
    /// any.
    pub(super) fn change<Q>(
        &self,
        key: &Q,
        now: Tick,
        next: impl Fn(&MapEntry<A>, &Live, Tick) -> Option<Next<A>>,
    ) -> Result<(), Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let hashed_key = self.hashed_key(key);
        let one_at_a_time = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        let guard = self.entries.guard();
        let mut round = 0;
        loop {
            match self.entries.get(&hashed_key, &guard) {
                Some(found) => {
                    if self.try_change(&hashed_key, &found, now, &next, &guard) {
                        break;
                    }
                }
                None => {
                    match self.room(&hashed_key, round, now, &guard) {
                        Some(room) => {
                            self.insert(&hashed_key, self.latest.get(), now, room, &guard);
                        }
                        // Another thread has inserted the key.
                        None if self.entries.get(&hashed_key, &guard).is_some() => {}
                        None => {
                            self.counts.no_room();
                            return Err(Denied::no_room(0));
                        }
                    }
                    round = round.saturating_add(1);
                }
            }
        }
        drop(one_at_a_time);
        Ok(())
    }

    /// Makes one attempt; the caller holds the lock. Returns whether it succeeded.
    fn try_change<Q>(
        &self,
        hashed_key: &HashedKey<'_, Q>,
        found: &FoundEntry<'_, K, A>,
        now: Tick,
        next: &impl Fn(&MapEntry<A>, &Live, Tick) -> Option<Next<A>>,
        guard: &Guard<'_>,
    ) -> bool
    where
        K: Borrow<Q>,
        Q: ToOwned<Owned = K> + ?Sized,
    {
        let entry = found.entry();
        // This starts a pending entry as a fresh key. So a change has the same result whether an
        // idle key is still in the map or has left.
        let _ = entry.since(&self.latest, now, &self.horizon);
        match entry.state() {
            EntryState::Live(live) => {
                let Some(next) = next(entry, &live, now.max(live.since)) else {
                    return true;
                };
                self.try_move(found, || hashed_key.key.to_owned(), &live, now, next, guard)
            }
            _ => {
                self.get_past(hashed_key, found, guard);
                false
            }
        }
    }

    /// Moves an entry that has this word; the caller holds the lock. Returns `false` if the word
    /// has changed. May fail spuriously.
    pub(super) fn try_move(
        &self,
        found: &FoundEntry<'_, K, A>,
        key: impl FnOnce() -> K,
        live: &Live,
        now: Tick,
        next: Next<A>,
        guard: &Guard<'_>,
    ) -> bool {
        let entry = found.entry();
        let successor = Successor {
            number: self.next_number(),
            algorithm: next.algorithm,
            is_own: next.is_own,
            is_banned: next.is_banned,
            word: next.word,
            since: now.max(live.since),
        };
        // The key's own code runs before the entry is moved: it may panic.
        let key = key();
        self.change.set(Arc::new(Change {
            of: entry.number(),
            ticket: found.ticket(),
            successor,
            broken_off: self.broken_off(guard),
        }));
        let is_moved = entry.move_away(live);
        if is_moved {
            self.finish_move(found, key, guard);
        }
        is_moved
    }

    /// Returns the last change whose successor is not in the map yet, because the `Eq` of another
    /// key with the same hash panicked. The caller holds the lock.
    fn broken_off(&self, guard: &Guard<'_>) -> Option<Arc<Change<A>>> {
        if !self.moving.is_poisoned() {
            return None;
        }
        let mut last = self.change.get();
        while let Some(change) = last {
            let found = self.entries.get(&change.ticket, guard);
            let entry = found.as_ref().map(FoundEntry::entry);
            if entry.is_some_and(|entry| entry.number() == change.of) {
                return Some(change);
            }
            last = change.broken_off.clone();
        }
        None
    }

    /// Returns the current state of a key that is in the map and not pending.
    pub(super) fn entry_now(&self, ticket: KeyTicket, guard: &Guard<'_>) -> Option<EntryNow<A>> {
        loop {
            let found = self.entries.get(&ticket, guard)?;
            let entry = found.entry();
            match entry.state() {
                EntryState::Live(live) => {
                    return Some(EntryNow {
                        algorithm: Arc::clone(entry.shared()),
                        word: live.word,
                        since: live.since,
                        is_banned: entry.has_ban(),
                        is_protected: entry.is_protected(),
                        was_moved: found.was_moved(),
                    });
                }
                EntryState::Pending | EntryState::Retired => return None,
                EntryState::Moved => {
                    // ORDERING: Acquire, as in `get_past`.
                    fence(Ordering::Acquire);
                    let change = self.change.get();
                    let change = change.as_ref();
                    if let Some(successor) = change.and_then(|last| last.of(entry.number())) {
                        return Some(EntryNow {
                            algorithm: Arc::clone(&successor.algorithm),
                            word: successor.word,
                            since: successor.since,
                            is_banned: successor.is_banned,
                            is_protected: entry.is_protected(),
                            was_moved: true,
                        });
                    }
                    // The successor was in the map and has left, as in `finish_move`.
                    drop(self.take_out(&found, guard));
                }
            }
        }
    }

    /// Replaces a moved entry by its successor, unless another thread has.
    pub(super) fn finish_move(&self, found: &FoundEntry<'_, K, A>, key: K, guard: &Guard<'_>) {
        let entry = found.entry();
        let change = self.change.get();
        match change.as_ref().and_then(|last| last.of(entry.number())) {
            Some(successor) => {
                let ticket = found.ticket();
                let stored = Stored { key, ticket };
                let next = || entry.succeeded_by(successor);
                self.entries.replace(found, stored, next, guard);
            }
            // The successor was inserted; if it is gone, only this entry can be left to remove.
            None => drop(self.take_out(found, guard)),
        }
    }
}

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq,
    A: Algorithm,
    C: Clock,
    S: BuildHasher,
{
    /// Gives a key its own algorithm, which continues with the available permits
    /// ([`ChangeQuota::carry_over`]). Earlier grants can't be undone after that.
    ///
    /// A key that is not in the map is fresh, and continues with the permits of a fresh key under
    /// the map's [`algorithm`](Self::algorithm). So a change never adds permits, even if it is
    /// repeated: [`available`](super::MapKey::available) is the same before and after it, or less,
    /// because permits that the new algorithm can't hold are lost and fractions are rounded down.
    /// To give a key the full burst of its new algorithm, use
    /// [`set_algorithm_afresh`](Self::set_algorithm_afresh).
    ///
    /// A key with its own algorithm stays, idle or not, and is not evicted, until it is
    /// [removed](Self::remove) or the algorithm is [unset](Self::unset_algorithm). Otherwise it
    /// would return with the map's algorithm.
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the key is new and there is no room for it.
    ///
    /// ```
    /// use tollgate::{KeyedMap, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let map: KeyedMap<String, _> = KeyedMap::token_bucket(Quota::per_hour(5), 1000)?;
    /// map.try_acquire_n("alice", 2)?;
    /// map.set_algorithm("alice", TokenBucket::new(Quota::per_hour(100).burst(10))?)?;
    /// assert_eq!(map.key("alice").available(), 3); // of 10
    ///
    /// // Bob is not there: a fresh key has 5 permits.
    /// assert_eq!(map.key("bob").available(), 5);
    /// map.set_algorithm("bob", TokenBucket::new(Quota::per_hour(100).burst(10))?)?;
    /// assert_eq!(map.key("bob").available(), 5); // of 10
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_algorithm<Q>(&self, key: &Q, algorithm: A) -> Result<(), Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        A: ChangeQuota,
    {
        self.set_algorithm_at(key, algorithm, self.clock.now())
    }

    /// Gives a key its own algorithm, and starts the key afresh under it, whether it was in the map
    /// or not. This allows one more burst. The algorithm need not implement [`ChangeQuota`].
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the key is new and there is no room for it.
    ///
    /// ```
    /// use tollgate::{KeyedMap, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let map: KeyedMap<u64, _> = KeyedMap::token_bucket(Quota::per_hour(5), 1000)?;
    /// map.try_acquire_n(&7, 2)?;
    /// map.set_algorithm_afresh(&7, TokenBucket::new(Quota::per_hour(9))?)?;
    /// assert_eq!(map.key(&7).available(), 9);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_algorithm_afresh<Q>(&self, key: &Q, algorithm: A) -> Result<(), Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.set_algorithm_afresh_at(key, algorithm, self.clock.now())
    }

    /// Removes a key's own algorithm, and returns whether it had one. The key continues under the
    /// map's algorithm with the available permits, and may leave when it is idle.
    ///
    /// ```
    /// use tollgate::{KeyedMap, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let map: KeyedMap<u64, _> = KeyedMap::token_bucket(Quota::per_hour(5), 1000)?;
    /// map.set_algorithm_afresh(&7, TokenBucket::new(Quota::per_hour(100))?)?;
    /// map.try_acquire_n(&7, 98)?;
    /// assert!(map.unset_algorithm(&7));
    /// assert_eq!(map.key(&7).available(), 2); // of 5
    /// assert!(!map.unset_algorithm(&7));
    /// # Ok(())
    /// # }
    /// ```
    pub fn unset_algorithm<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        A: ChangeQuota,
    {
        self.unset_algorithm_at(key, self.clock.now())
    }
}
