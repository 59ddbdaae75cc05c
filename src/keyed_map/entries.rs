//! Stores the entries in papaya's map, and a [`KeyTicket`] for each in a queue. A search for idle
//! keys takes the next few tickets from the queue.
//!
//! The protocol relies on five properties of the map:
//!
//! - An entry that is found stays readable while the guard lives.
//! - Of two insertions of a key, one succeeds.
//! - Only the thread that removed an entry is told so.
//! - A thread that finds an entry sees what was written before the entry was inserted.
//! - A walk through the map finds each entry that was inserted before the walk began and is not
//!   removed.
//!
//! A search that finds no entry need not synchronize with anything (see [`entry`](super::entry)).

use core::hash::{BuildHasherDefault, Hash, Hasher};
use core::ptr;

use crossbeam_queue::SegQueue;
use papaya::{Equivalent, HashMap, LocalGuard, Operation};

use super::entry::MapEntry;
use super::newest::Newest;
use super::published::AsItIs;
use super::stored::{Hashed, KeyTicket, MatchesKey, Stored};

pub(super) struct Entries<K, A> {
    map: HashMap<Stored<K>, MapEntry<A>, BuildHasherDefault<AsItIs>>,
    tickets: SegQueue<KeyTicket>,
    newest: Newest,
}

/// Entries that were found are readable while this lives.
pub(super) type Guard<'g> = LocalGuard<'g>;

/// A key and its entry.
pub(super) struct FoundEntry<'g, K, A> {
    stored: &'g Stored<K>,
    entry: &'g MapEntry<A>,
}

impl<K, A> Clone for FoundEntry<'_, K, A> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<K, A> FoundEntry<'_, K, A> {
    pub(super) fn key(&self) -> &K {
        &self.stored.key
    }

    pub(super) fn stored(&self) -> &Stored<K> {
        self.stored
    }

    pub(super) fn ticket(&self) -> KeyTicket {
        self.stored.ticket
    }

    pub(super) fn entry(&self) -> &MapEntry<A> {
        self.entry
    }

    /// Returns whether this entry replaced another entry of its key. An entry that was inserted has
    /// the number of the key's ticket.
    pub(super) fn was_moved(&self) -> bool {
        self.entry().number() != self.ticket().id
    }
}

impl<K: Hash + Eq, A> Entries<K, A> {
    pub(super) fn new() -> Self {
        Self {
            map: HashMap::default(),
            tickets: SegQueue::new(),
            newest: Newest::default(),
        }
    }

    pub(super) fn guard(&self) -> Guard<'_> {
        self.map.guard()
    }

    #[inline]
    pub(super) fn get<'g>(
        &self,
        hashed_key: &impl MatchesKey<K>,
        guard: &'g Guard<'_>,
    ) -> Option<FoundEntry<'g, K, A>> {
        let (stored, entry) = self.map.get_key_value(&Query(hashed_key), guard)?;
        Some(FoundEntry { stored, entry })
    }

    /// Inserts an entry, unless the key has one. Returns whether it did.
    pub(super) fn insert(&self, stored: Stored<K>, entry: MapEntry<A>, guard: &Guard<'_>) -> bool {
        self.map.try_insert(stored, entry, guard).is_ok()
    }

    /// Replaces exactly this entry by its key's next one, if it is in the map. `stored` is the key
    /// to store.
    pub(super) fn replace(
        &self,
        found: &FoundEntry<'_, K, A>,
        stored: Stored<K>,
        mut next: impl FnMut() -> MapEntry<A>,
        guard: &Guard<'_>,
    ) {
        let exchange = |there: Option<(&Stored<K>, &MapEntry<A>)>| match there {
            Some((_, entry)) if ptr::eq(entry, found.entry()) => Operation::Insert(next()),
            _ => Operation::Abort(()),
        };
        let _ = self.map.compute(stored, exchange, guard);
    }

    /// Removes exactly this entry. Returns whether this call removed it.
    pub(super) fn remove(&self, found: &FoundEntry<'_, K, A>, guard: &Guard<'_>) -> bool {
        let is_it = |_: &Stored<K>, entry: &MapEntry<A>| ptr::eq(entry, found.entry());
        let removed = self.map.remove_if(&Query(&found.ticket()), is_it, guard);
        matches!(removed, Ok(Some(_)))
    }

    /// Returns all entries.
    pub(super) fn all<'g>(&self, guard: &'g Guard<'_>) -> impl Iterator<Item = FoundEntry<'g, K, A>>
    where
        K: 'g,
        A: 'g,
    {
        let all = self.map.iter(guard);
        all.map(|(stored, entry)| FoundEntry { stored, entry })
    }

    pub(super) fn push_ticket(&self, ticket: KeyTicket) {
        self.tickets.push(ticket);
    }

    pub(super) fn pop_ticket(&self) -> Option<KeyTicket> {
        self.tickets.pop()
    }

    /// Returns the hints at the newest keys.
    pub(super) fn newest(&self) -> &Newest {
        &self.newest
    }

    /// Returns how many tickets are in the queue, without those that threads hold.
    pub(super) fn tickets(&self) -> usize {
        self.tickets.len()
    }
}

/// A query in the form that the map takes.
struct Query<'a, T>(&'a T);

impl<T: Hashed> Hash for Query<'_, T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hashed());
    }
}

impl<K, T: MatchesKey<K>> Equivalent<Stored<K>> for Query<'_, T> {
    fn equivalent(&self, stored: &Stored<K>) -> bool {
        self.0.is(stored)
    }
}
