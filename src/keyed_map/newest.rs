//! Hints at the newest keys, which an eviction considers too.
//!
//! All tickets are in one queue, and those of a flood of new keys are at its end. A search that
//! takes a few tickets from the front finds none of the flood's keys. With the hints, a flood
//! evicts its own keys: each new key takes the room, and the hint's place, of a key that was
//! inserted shortly before it.
//!
//! A hint is the hash of a key, and owns nothing: the key's ticket is in the queue as well. A lost
//! or stale hint can only make an eviction choose worse.

use super::stored::KeyTicket;
use crate::sync::{AtomicU64, Ordering};

/// The number of hints, which should exceed the number of threads that evict at the same moment.
const NEWEST: usize = 32;

/// The hints. 0 marks a free place. (A key whose hash is 0 has no hint.)
#[derive(Default)]
pub(super) struct Newest([AtomicU64; NEWEST]);

// ORDERING: Relaxed, everywhere below. A hint publishes nothing: the map decides whether there is
// such a key, and the key's word decides whether it leaves.
impl Newest {
    /// Adds a hint at this key, in a free place or in that of an older key.
    pub(super) fn add(&self, ticket: KeyTicket) {
        // ORDERING: Relaxed, as everywhere here.
        let (hash, relaxed) = (ticket.hash, Ordering::Relaxed);
        let took = |hint: &AtomicU64| {
            hint.load(relaxed) == 0 && (hint.compare_exchange(0, hash, relaxed, relaxed)).is_ok()
        };
        if !self.0.iter().any(took) {
            if let Some(hint) = self.0.get(ticket.id as usize % NEWEST) {
                hint.store(hash, relaxed);
            }
        }
    }

    /// Removes the hint at a key of this hash, which has left.
    pub(super) fn remove(&self, hash: u64) {
        // ORDERING: Relaxed, as everywhere here.
        let relaxed = Ordering::Relaxed;
        if let Some(hint) = self.0.iter().find(|hint| hint.load(relaxed) == hash) {
            let _ = hint.compare_exchange(hash, 0, relaxed, relaxed);
        }
    }

    /// Returns the hashes of the hinted keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        // ORDERING: Relaxed, as everywhere here.
        let hashes = self.0.iter().map(|hint| hint.load(Ordering::Relaxed));
        hashes.filter(|hash| *hash != 0)
    }
}
