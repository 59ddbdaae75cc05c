//! Keys as they are kept, with their hash and a number: so a key can be found again, and no other
//! for it, without being cloned or compared; and the map itself calls nobody's `Hash`.

use core::borrow::Borrow;
use core::hash::{Hash, Hasher};

/// A key as it is kept.
#[derive(Debug)]
pub(super) struct Stored<K> {
    pub(super) key: K,
    pub(super) ticket: KeyTicket,
}

/// By what a key that is kept is found again, as long as it is. `id` is never used twice.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyTicket {
    pub(super) hash: u64,
    pub(super) id: u64,
}

/// A key that is asked for.
pub(super) struct HashedKey<'q, Q: ?Sized> {
    pub(super) hash: u64,
    pub(super) key: &'q Q,
}

/// Any key that has this hash.
pub(super) struct AnyOfHash(pub(super) u64);

/// What may be one of the keys that are kept.
pub(super) trait MatchesKey<K>: Hashed {
    fn is(&self, stored: &Stored<K>) -> bool;
}

/// What has a hash already.
pub(super) trait Hashed {
    fn hashed(&self) -> u64;
}

impl<Q: ?Sized> Hashed for HashedKey<'_, Q> {
    fn hashed(&self) -> u64 {
        self.hash
    }
}

impl Hashed for KeyTicket {
    fn hashed(&self) -> u64 {
        self.hash
    }
}

impl Hashed for AnyOfHash {
    fn hashed(&self) -> u64 {
        self.0
    }
}

impl<K: Borrow<Q>, Q: Eq + ?Sized> MatchesKey<K> for HashedKey<'_, Q> {
    fn is(&self, stored: &Stored<K>) -> bool {
        stored.ticket.hash == self.hash && stored.key.borrow() == self.key
    }
}

impl<K> MatchesKey<K> for KeyTicket {
    fn is(&self, stored: &Stored<K>) -> bool {
        stored.ticket.id == self.id
    }
}

impl<K> MatchesKey<K> for AnyOfHash {
    fn is(&self, stored: &Stored<K>) -> bool {
        stored.ticket.hash == self.0
    }
}

impl<K> Hash for Stored<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.ticket.hash);
    }
}

impl<K: Eq> PartialEq for Stored<K> {
    fn eq(&self, other: &Self) -> bool {
        // A key and its clone have the same ticket.
        self.ticket.id == other.ticket.id
            || self.ticket.hash == other.ticket.hash && self.key == other.key
    }
}

impl<K: Eq> Eq for Stored<K> {}
