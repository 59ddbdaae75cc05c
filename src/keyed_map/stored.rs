//! Keys as the map stores them, with their hash and a unique number. So the map finds exactly the
//! same entry again without cloning or comparing the key, and without calling the key's `Hash`.

use core::borrow::Borrow;
use core::hash::{Hash, Hasher};

/// A stored key.
#[derive(Debug)]
pub(super) struct Stored<K> {
    pub(super) key: K,
    pub(super) ticket: KeyTicket,
}

/// Identifies a stored key while it is in the map. An `id` is never reused.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyTicket {
    pub(super) hash: u64,
    pub(super) id: u64,
}

/// A key to look up, with its hash.
pub(super) struct HashedKey<'q, Q: ?Sized> {
    pub(super) hash: u64,
    pub(super) key: &'q Q,
}

/// Matches any key that has this hash.
pub(super) struct AnyOfHash(pub(super) u64);

/// A query for a stored key.
pub(super) trait MatchesKey<K>: Hashed {
    fn is(&self, stored: &Stored<K>) -> bool;
}

/// A query whose hash is already computed.
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
