use crate::overflow::Overflow;
use crate::sync::{AtomicU64, Ordering};

/// What has become of the keys of a [`KeyedMap`](super::KeyedMap).
///
/// Each number is right by itself: while others decide they need not belong to the same moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MapStats {
    /// The keys that are there now, those that are being added among them.
    pub tracked: u64,
    /// Keys that left because they could not be told from fresh ones.
    pub left: u64,
    /// Keys that had to go for others: each may have had a burst more.
    pub evicted: u64,
    /// Keys that were removed by who asked for it, idle or not.
    pub removed: u64,
    /// Verbs on keys for which there was no room, that were refused; or answered as for a fresh
    /// key, where a verb can't be refused.
    pub refused: u64,
    /// Verbs on keys for which there was no room, that were answered as for a fresh key.
    pub admitted: u64,
}

/// They are counted where keys come and go, and not where they are decided on.
#[derive(Default)]
pub(super) struct MapCounters {
    left: AtomicU64,
    evicted: AtomicU64,
    removed: AtomicU64,
    refused: AtomicU64,
    admitted: AtomicU64,
}

fn count(counter: &AtomicU64) {
    // ORDERING: Relaxed. Counts publish nothing.
    counter.fetch_add(1, Ordering::Relaxed);
}

impl MapCounters {
    pub(super) fn left(&self) {
        count(&self.left);
    }

    pub(super) fn evicted(&self) {
        count(&self.evicted);
    }

    pub(super) fn removed(&self) {
        count(&self.removed);
    }

    /// There was no room.
    pub(super) fn full(&self, overflow: Overflow) {
        match overflow {
            Overflow::Admit => count(&self.admitted),
            Overflow::Evict | Overflow::Deny => count(&self.refused),
        }
    }

    pub(super) fn with_tracked(&self, tracked: u64) -> MapStats {
        // ORDERING: Relaxed, as in `count`.
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MapStats {
            tracked,
            left: read(&self.left),
            evicted: read(&self.evicted),
            removed: read(&self.removed),
            refused: read(&self.refused),
            admitted: read(&self.admitted),
        }
    }
}
