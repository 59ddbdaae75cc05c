//! How a key gets an algorithm of its own.
//!
//! The entry is retired, and another one, with the word carried over, takes its place in the map.
//! Between the two only the thread that retired it knows the word: so a thread that finds it then
//! waits, by a lock that is held for these few steps, and for nothing else. A count says that an
//! algorithm is being changed, from before the word is retired until the new entry is there.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use std::sync::PoisonError;

use super::KeyedMap;
use super::entries::{FoundEntry, Guard};
use super::entry::{EntryState, Live, MapEntry, first_word};
use super::stored::{HashedKey, Stored};
use crate::algorithm::{Algorithm, ChangeQuota};
use crate::clock::{Clock, Tick};
use crate::outcome::Denied;
use crate::sync::{AtomicU64, Ordering, inject_fault};

/// A thread changes an algorithm.
struct Moving<'m>(&'m AtomicU64);

impl<'m> Moving<'m> {
    fn begin(moves: &'m AtomicU64) -> Self {
        // ORDERING: Relaxed. The fence of `MapEntry::retire` comes after it: a thread that finds
        // the word retired finds this. Model: keyed_map::an_algorithm_is_changed
        moves.fetch_add(1, Ordering::Relaxed);
        Self(moves)
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        // ORDERING: Relaxed. It publishes nothing: see `KeyedMap::is_moving`.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Puts back what was retired, if what follows panics: the algorithm's own code, or the key's.
struct Reinstating<'e, A> {
    entry: &'e MapEntry<A>,
    was: Option<EntryState>,
}

impl<A> Drop for Reinstating<'_, A> {
    fn drop(&mut self) {
        if let Some(was) = &self.was {
            self.entry.reinstate(was);
        }
    }
}

/// The word of an algorithm as it goes on in the next one.
fn carry_over<A: ChangeQuota>(old: &A, live: &Live, at: Tick, next: &A) -> u64 {
    old.carry_over(live.word, at, next)
}

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq,
    A: Algorithm,
    S: BuildHasher,
{
    /// [`set_algorithm`](Self::set_algorithm) at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the key is new, and there is no room for it.
    pub fn set_algorithm_at<Q>(&self, key: &Q, algorithm: A, now: Tick) -> Result<(), Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        A: ChangeQuota,
    {
        self.give(key, algorithm, now, carry_over)
    }

    /// [`unset_algorithm`](Self::unset_algorithm) at this tick.
    pub fn unset_algorithm_at<Q>(&self, key: &Q, now: Tick) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        A: ChangeQuota,
    {
        let hashed_key = self.hashed_key(key);
        let one_at_a_time = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        let guard = self.entries.guard();
        let done = loop {
            match self.entries.get(&hashed_key, &guard) {
                Some(found) if found.entry().own.is_some() => {
                    if let Ok(()) =
                        self.take_over(&hashed_key, &found, None, now, &carry_over, &guard)
                    {
                        break true;
                    }
                }
                _ => break false,
            }
        };
        drop(one_at_a_time);
        done
    }

    /// [`set_algorithm_afresh`](Self::set_algorithm_afresh) at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the key is new, and there is no room for it.
    pub fn set_algorithm_afresh_at<Q>(&self, key: &Q, algorithm: A, now: Tick) -> Result<(), Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.give(key, algorithm, now, |_, _, at, next| first_word(next, at))
    }

    /// Gives the key this algorithm, with what `carry` makes of its word.
    fn give<Q>(
        &self,
        key: &Q,
        algorithm: A,
        now: Tick,
        carry: impl Fn(&A, &Live, Tick, &A) -> u64,
    ) -> Result<(), Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let hashed_key = self.hashed_key(key);
        let one_at_a_time = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        let guard = self.entries.guard();
        let mut own = Some(Box::new(algorithm));
        let mut round = 0;
        loop {
            let Some(found) = self.entries.get(&hashed_key, &guard) else {
                let Some(room) = self.room(round, now, &guard) else {
                    self.counts.no_room();
                    return Err(Denied::no_room(0));
                };
                self.insert(&hashed_key, now, room, &guard);
                round = round.saturating_add(1);
                continue;
            };
            match self.take_over(&hashed_key, &found, own, now, &carry, &guard) {
                Ok(()) => break,
                Err(again) => own = again,
            }
        }
        drop(one_at_a_time);
        Ok(())
    }

    /// One attempt to give the key this algorithm, or that of all; the algorithm, if others were
    /// quicker.
    fn take_over<Q>(
        &self,
        hashed_key: &HashedKey<'_, Q>,
        found: &FoundEntry<'_, K, A>,
        own: Option<Box<A>>,
        now: Tick,
        carry: &impl Fn(&A, &Live, Tick, &A) -> u64,
        guard: &Guard<'_>,
    ) -> Result<(), Option<Box<A>>>
    where
        K: Borrow<Q>,
        Q: ToOwned<Owned = K> + ?Sized,
    {
        let stored = Stored {
            key: hashed_key.key.to_owned(),
            ticket: found.ticket(),
        };
        let entry = found.entry();
        // A key on which nobody has decided is fresh from here on, and goes on as any other: so it
        // is all the same whether an idle key is there or has left.
        let _ = entry.since(now, &self.horizon);
        let was = entry.state(&self.algorithm);
        let EntryState::Live(live) = was else {
            self.remove_retired(found, guard);
            return Err(own);
        };
        let _moving = Moving::begin(&self.moves);
        if !inject_fault!(CarriesUnretired) && !entry.retire(&live) {
            return Err(own);
        }
        let mut reinstating = Reinstating {
            entry,
            was: Some(was),
        };
        let number = self.next_number();
        let at = now.max(live.since);
        let next = own.as_deref().unwrap_or(&self.algorithm);
        let word = carry(entry.algorithm(&self.algorithm), &live, at, next);
        let next = entry.carried_over(number, own, &self.algorithm, word, at);
        self.entries.replace(stored, next, guard);
        reinstating.was = None;
        Ok(())
    }
}

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq,
    A: Algorithm,
    C: Clock,
    S: BuildHasher,
{
    /// Gives a key an algorithm of its own, which goes on with the permits that there are
    /// ([`ChangeQuota::carry_over`]). Grants from before can't be undone then.
    ///
    /// A key that is not in the map is a fresh one, whether it was never there or has left as idle:
    /// it has the permits with which [`algorithm`](Self::algorithm) begins, and goes on with those.
    /// So its [`available`](super::MapKey::available) says the same before and after, or less: what
    /// the new algorithm can't hold is lost, and a part of a permit is rounded to the limiter's
    /// favour. Changing a key's algorithm again and again wins it nothing. To hand a key the whole
    /// burst of its new algorithm use [`set_algorithm_afresh`](Self::set_algorithm_afresh).
    ///
    /// A key with an algorithm of its own stays, idle or not, and is not evicted, until it is
    /// [removed](Self::remove) or the algorithm [taken away](Self::unset_algorithm): otherwise it
    /// would come back with the map's algorithm. While this runs, callers of that key wait.
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the key is new, and there is no room for it.
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

    /// The same, but the key starts afresh with all that the new algorithm begins with, whether it
    /// was there or not. This allows it one burst more. Any algorithm can do this.
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the key is new, and there is no room for it.
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

    /// Takes a key's own algorithm away, and says whether it had one. The key goes on by the map's
    /// algorithm with the permits that there are, and may leave when it is idle.
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
