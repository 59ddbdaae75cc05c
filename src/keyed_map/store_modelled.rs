//! What stands in for papaya's map in a model, and promises no more than is relied on: a key has one place, and an
//! entry is published by a Release when it is inserted, to who finds it; that it has gone tells nothing.
//!
//! The queue of tickets is not seen by loom: whatever its order, the protocol must hold.

use core::hash::Hash;
use core::marker::PhantomData;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::entry::Entry;
use super::stored::{Asks, Hashed, Stored, Ticket};
use crate::primitive::{AtomicU64, Ordering};

/// A model's keys have a place each, by their hash.
const PLACES: u64 = 4;

pub(super) struct Store<K, A> {
    /// The number, in what was ever inserted, of what is there, from 1 on.
    places: [AtomicU64; PLACES as usize],
    inserted: Mutex<Vec<Arc<(Stored<K>, Entry<A>)>>>,
    tickets: Mutex<VecDeque<Ticket>>,
}

/// Nothing that a model inserts is freed before its end.
pub(super) struct Guard<'g>(PhantomData<&'g ()>);

pub(super) struct Found<'g, K, A> {
    both: Arc<(Stored<K>, Entry<A>)>,
    life: PhantomData<&'g ()>,
}

impl<K, A> Clone for Found<'_, K, A> {
    fn clone(&self) -> Self {
        let both = Arc::clone(&self.both);
        let life = PhantomData;
        Self { both, life }
    }
}

impl<K, A> Found<'_, K, A> {
    pub(super) fn key(&self) -> &K {
        &self.both.0.key
    }

    pub(super) fn ticket(&self) -> Ticket {
        self.both.0.ticket
    }

    pub(super) fn entry(&self) -> &Entry<A> {
        &self.both.1
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: Hash + Eq, A> Store<K, A> {
    pub(super) fn new() -> Self {
        Self {
            places: core::array::from_fn(|_| AtomicU64::new(0)),
            inserted: Mutex::default(),
            tickets: Mutex::default(),
        }
    }

    pub(super) fn guard(&self) -> Guard<'_> {
        Guard(PhantomData)
    }

    fn place(&self, asked: &impl Hashed) -> &AtomicU64 {
        let place = asked.hashed() % PLACES;
        self.places.get(place as usize).expect("a place")
    }

    fn of_number(&self, number: u64) -> Option<Arc<(Stored<K>, Entry<A>)>> {
        let index = number.checked_sub(1)?;
        lock(&self.inserted).get(index as usize).map(Arc::clone)
    }

    fn number_of(&self, stored: Stored<K>, entry: Entry<A>) -> u64 {
        let mut inserted = lock(&self.inserted);
        inserted.push(Arc::new((stored, entry)));
        inserted.len() as u64
    }

    pub(super) fn get<'g>(
        &self,
        asked: &impl Asks<K>,
        _guard: &'g Guard<'_>,
    ) -> Option<Found<'g, K, A>> {
        let there = self.place(asked).load(Ordering::Acquire);
        let both = self.of_number(there)?;
        let life = PhantomData;
        asked.is(&both.0).then_some(Found { both, life })
    }

    pub(super) fn insert(&self, stored: Stored<K>, entry: Entry<A>, _guard: &Guard<'_>) -> bool {
        let ticket = stored.ticket;
        let number = self.number_of(stored, entry);
        let place = self.place(&ticket);
        let inserted = place.compare_exchange(0, number, Ordering::Release, Ordering::Acquire);
        inserted.is_ok()
    }

    pub(super) fn replace(&self, stored: Stored<K>, entry: Entry<A>, _guard: &Guard<'_>) {
        let ticket = stored.ticket;
        let number = self.number_of(stored, entry);
        let was = self.place(&ticket).swap(number, Ordering::AcqRel);
        assert!(was != 0, "what is to be replaced is there");
    }

    pub(super) fn remove(&self, found: &Found<'_, K, A>, _guard: &Guard<'_>) -> bool {
        let place = self.place(&found.ticket());
        let there = place.load(Ordering::Acquire);
        let is_it = self
            .of_number(there)
            .is_some_and(|both| both.1.number == found.entry().number);
        let release = Ordering::Release;
        is_it && (place.compare_exchange(there, 0, release, Ordering::Relaxed)).is_ok()
    }

    pub(super) fn all<'g>(&self, _guard: &'g Guard<'_>) -> impl Iterator<Item = Found<'g, K, A>>
    where
        K: 'g,
        A: 'g,
    {
        let numbers = self
            .places
            .iter()
            .map(|place| place.load(Ordering::Acquire));
        let all: Vec<_> = numbers
            .filter_map(|number| self.of_number(number))
            .collect();
        let life = PhantomData;
        all.into_iter().map(move |both| Found { both, life })
    }

    pub(super) fn push_ticket(&self, ticket: Ticket) {
        lock(&self.tickets).push_back(ticket);
    }

    pub(super) fn pop_ticket(&self) -> Option<Ticket> {
        lock(&self.tickets).pop_front()
    }
}
