//! The stand-in for papaya's map in models. It promises no more than the protocol relies on: an
//! insertion publishes an entry, by a Release, to a thread that finds it; a removal publishes
//! nothing. So each entry of a key gets another place: in the same place, the exchange that inserts
//! an entry would also publish what the exchange before it published.
//!
//! Loom does not see the queue of tickets and the hints at the newest keys: the protocol must hold
//! whatever they contain.

use core::hash::Hash;
use core::marker::PhantomData;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::entry::MapEntry;
use super::stored::{Hashed, KeyTicket, MatchesKey, Stored};
use crate::sync::{AtomicU64, Ordering};

/// How many keys a model has, each with its own places, by its hash.
const KEYS: usize = 3;

/// How many places a key has: enough for the models.
const PLACES: usize = 5;

/// Marks a place whose entry was removed.
const GONE: u64 = u64::MAX;

/// A key and its entry.
type Both<K, A> = Arc<(Stored<K>, MapEntry<A>)>;

pub(super) struct Entries<K, A> {
    /// The index of each place's entry in `inserted`, counted from 1; 0 if there is none.
    places: [[AtomicU64; PLACES]; KEYS],
    inserted: Mutex<Vec<Both<K, A>>>,
    tickets: Mutex<VecDeque<KeyTicket>>,
    newest: Newest,
}

/// Protects nothing: a model frees its entries only at its end.
pub(super) struct Guard<'g>(PhantomData<&'g ()>);

pub(super) struct FoundEntry<'g, K, A> {
    both: Both<K, A>,
    life: PhantomData<&'g ()>,
}

impl<K, A> Clone for FoundEntry<'_, K, A> {
    fn clone(&self) -> Self {
        let both = Arc::clone(&self.both);
        let life = PhantomData;
        Self { both, life }
    }
}

impl<K, A> FoundEntry<'_, K, A> {
    pub(super) fn key(&self) -> &K {
        &self.both.0.key
    }

    pub(super) fn stored(&self) -> &Stored<K> {
        &self.both.0
    }

    pub(super) fn ticket(&self) -> KeyTicket {
        self.both.0.ticket
    }

    pub(super) fn entry(&self) -> &MapEntry<A> {
        &self.both.1
    }

    /// Returns whether this entry replaced another entry of its key. An entry that was inserted has
    /// the number of the key's ticket.
    pub(super) fn was_moved(&self) -> bool {
        self.entry().number() != self.ticket().id
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: Hash + Eq, A> Entries<K, A> {
    pub(super) fn new() -> Self {
        Self {
            places: core::array::from_fn(|_| core::array::from_fn(|_| AtomicU64::new(0))),
            inserted: Mutex::default(),
            tickets: Mutex::default(),
            newest: Newest::default(),
        }
    }

    pub(super) fn guard(&self) -> Guard<'_> {
        Guard(PhantomData)
    }

    fn places(&self, hashed_key: &impl Hashed) -> &[AtomicU64] {
        let key = hashed_key.hashed() as usize % KEYS;
        self.places.get(key).map_or(&[], <[_; PLACES]>::as_slice)
    }

    /// Returns the place where the key is or could be inserted, and what it holds.
    fn place(&self, hashed_key: &impl Hashed) -> Option<(&AtomicU64, u64)> {
        let places = self.places(hashed_key).iter();
        let mut seen = places.map(|place| (place, place.load(Ordering::Relaxed)));
        seen.find(|(_, there)| *there != GONE)
    }

    fn of_number(&self, number: u64) -> Option<Both<K, A>> {
        let index = number.checked_sub(1)?;
        lock(&self.inserted).get(index as usize).map(Arc::clone)
    }

    fn number_of(&self, stored: Stored<K>, entry: MapEntry<A>) -> u64 {
        let mut inserted = lock(&self.inserted);
        inserted.push(Arc::new((stored, entry)));
        inserted.len() as u64
    }

    pub(super) fn get<'g>(
        &self,
        hashed_key: &impl MatchesKey<K>,
        _guard: &'g Guard<'_>,
    ) -> Option<FoundEntry<'g, K, A>> {
        let (place, there) = self.place(hashed_key)?;
        if there == 0 {
            return None;
        }
        // Acquire only if an entry is found: the map promises nothing to a search that finds none.
        let there = place.load(Ordering::Acquire);
        let both = self.of_number(there)?;
        let life = PhantomData;
        hashed_key.is(&both.0).then_some(FoundEntry { both, life })
    }

    pub(super) fn insert(&self, stored: Stored<K>, entry: MapEntry<A>, _guard: &Guard<'_>) -> bool {
        let ticket = stored.ticket;
        let number = self.number_of(stored, entry);
        while let Some((place, 0)) = self.place(&ticket) {
            let (release, relaxed) = (Ordering::Release, Ordering::Relaxed);
            if place.compare_exchange(0, number, release, relaxed).is_ok() {
                return true;
            }
        }
        false
    }

    pub(super) fn replace(
        &self,
        found: &FoundEntry<'_, K, A>,
        stored: Stored<K>,
        mut next: impl FnMut() -> MapEntry<A>,
        _guard: &Guard<'_>,
    ) {
        let Some((place, there)) = self.place(&stored.ticket) else {
            return;
        };
        if self.is_at(there, found) {
            let number = self.number_of(stored, next());
            let (release, relaxed) = (Ordering::Release, Ordering::Relaxed);
            let _ = place.compare_exchange(there, number, release, relaxed);
        }
    }

    fn is_at(&self, there: u64, found: &FoundEntry<'_, K, A>) -> bool {
        (self.of_number(there)).is_some_and(|both| Arc::ptr_eq(&both, &found.both))
    }

    pub(super) fn remove(&self, found: &FoundEntry<'_, K, A>, _guard: &Guard<'_>) -> bool {
        let Some((place, there)) = self.place(&found.ticket()) else {
            return false;
        };
        // A removal publishes nothing.
        let tells = Ordering::Relaxed;
        self.is_at(there, found) && place.compare_exchange(there, GONE, tells, tells).is_ok()
    }

    pub(super) fn all<'g>(
        &self,
        _guard: &'g Guard<'_>,
    ) -> impl Iterator<Item = FoundEntry<'g, K, A>>
    where
        K: 'g,
        A: 'g,
    {
        let places = self.places.iter().flatten();
        let numbers = places.map(|place| place.load(Ordering::Acquire));
        let all: Vec<_> = numbers
            .filter_map(|number| self.of_number(number))
            .collect();
        let life = PhantomData;
        all.into_iter().map(move |both| FoundEntry { both, life })
    }

    pub(super) fn push_ticket(&self, ticket: KeyTicket) {
        lock(&self.tickets).push_back(ticket);
    }

    pub(super) fn pop_ticket(&self) -> Option<KeyTicket> {
        lock(&self.tickets).pop_front()
    }

    pub(super) fn newest(&self) -> &Newest {
        &self.newest
    }

    pub(super) fn tickets(&self) -> usize {
        lock(&self.tickets).len()
    }
}

/// Hints at the last two keys. Loom does not see them, as it does not see the queue.
#[derive(Default)]
pub(super) struct Newest(Mutex<VecDeque<u64>>);

impl Newest {
    pub(super) fn add(&self, ticket: KeyTicket) {
        let mut newest = lock(&self.0);
        newest.push_back(ticket.hash);
        if newest.len() > 2 {
            newest.pop_front();
        }
    }

    pub(super) fn remove(&self, hash: u64) {
        lock(&self.0).retain(|of| *of != hash);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        lock(&self.0).clone().into_iter()
    }
}
