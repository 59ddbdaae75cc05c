//! Hints at the newest keys: when a key has to be evicted, the map considers these too.
//!
//! The tickets of all keys are in one queue, those of a flood of new keys behind those of all other
//! keys: a few looks at its front find none of them. By the hints a flood gives up its own keys:
//! each new key gets the room, and the place of the hint, of one that came shortly before it.
//!
//! A hint is the hash of a key, and owns nothing: the key's ticket is in the queue as well. A hint
//! that is lost, or left by a key that has gone, makes an eviction choose worse, and does no other
//! harm.

use super::stored::KeyTicket;
use crate::sync::{AtomicU64, Ordering};

/// The most hints: more than threads that make room for new keys at the same moment.
const NEWEST: usize = 32;

/// 0 is a free place. (A key whose hash is 0 has no hint.)
#[derive(Default)]
pub(super) struct Newest([AtomicU64; NEWEST]);

// ORDERING: Relaxed, all of them. A hint publishes nothing: the map says whether there is such a
// key, and its word whether it leaves.
impl Newest {
    /// Adds a hint at this key: in a free place, or else in that of an older key.
    pub(super) fn add(&self, ticket: KeyTicket) {
        // ORDERING: Relaxed, as all of them.
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

    /// Removes the hint at a key of this hash, which has gone.
    pub(super) fn remove(&self, hash: u64) {
        // ORDERING: Relaxed, as all of them.
        let relaxed = Ordering::Relaxed;
        if let Some(hint) = self.0.iter().find(|hint| hint.load(relaxed) == hash) {
            let _ = hint.compare_exchange(hash, 0, relaxed, relaxed);
        }
    }

    /// The hashes of the keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        // ORDERING: Relaxed, as all of them.
        let hashes = self.0.iter().map(|hint| hint.load(Ordering::Relaxed));
        hashes.filter(|hash| *hash != 0)
    }
}
