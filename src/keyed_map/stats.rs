use crate::counted::LimiterStats;
use crate::metrics::{Metric, MetricSource, Value};
use crate::sync::{AtomicU64, Ordering};

/// The counts of a [`KeyedMap`](super::KeyedMap), of the keys in it and those that left.
///
/// Each number is right by itself: while other threads decide, they need not belong to the same
/// moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MapStats {
    /// The keys that are there now, those that are being added among them.
    pub tracked: u64,
    /// Keys that left because they were idle. They lost nothing.
    pub expired: u64,
    /// Keys that left although they were not idle: each may have had a burst more.
    pub evicted: u64,
    /// How many of the evicted ones were protected: they had been granted something at least twice.
    /// These leave only if no key is found that was granted something once.
    pub evicted_protected: u64,
    /// Keys removed by [`remove`](super::KeyedMap::remove), and keys removed by
    /// [`retain`](super::KeyedMap::retain) that were not idle.
    pub removed: u64,
    /// Verbs on keys for which there was no room. They were denied, or answered as for a fresh key,
    /// as [`Overflow`](crate::Overflow) says.
    pub no_room: u64,
    /// What was decided on all keys, if the map is in a [`Counted`](crate::Counted).
    pub decisions: Option<LimiterStats>,
}

/// They are counted where keys come and go, and not where they are decided on.
#[derive(Default)]
pub(super) struct MapCounters {
    expired: AtomicU64,
    evicted: AtomicU64,
    evicted_protected: AtomicU64,
    removed: AtomicU64,
    no_room: AtomicU64,
}

fn count(counter: &AtomicU64) {
    // ORDERING: Relaxed. Counts publish nothing.
    counter.fetch_add(1, Ordering::Relaxed);
}

impl MapCounters {
    pub(super) fn expired(&self) {
        count(&self.expired);
    }

    pub(super) fn evicted(&self, is_protected: bool) {
        count(&self.evicted);
        if is_protected {
            count(&self.evicted_protected);
        }
    }

    pub(super) fn removed(&self) {
        count(&self.removed);
    }

    /// All keys were replaced by those of a snapshot, some of which found no room.
    pub(super) fn restored(&self, removed: u64, evicted: u64, evicted_protected: u64) {
        // ORDERING: Relaxed, as in `count`.
        let add = |counter: &AtomicU64, n| counter.fetch_add(n, Ordering::Relaxed);
        add(&self.removed, removed);
        add(&self.evicted, evicted);
        add(&self.evicted_protected, evicted_protected);
    }

    pub(super) fn no_room(&self) {
        count(&self.no_room);
    }

    pub(super) fn with_tracked(&self, tracked: u64) -> MapStats {
        // ORDERING: Relaxed, as in `count`.
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MapStats {
            tracked,
            expired: read(&self.expired),
            evicted: read(&self.evicted),
            evicted_protected: read(&self.evicted_protected),
            removed: read(&self.removed),
            no_room: read(&self.no_room),
            decisions: None,
        }
    }
}

impl MetricSource for MapStats {
    fn value(&self, metric: Metric) -> Option<Value> {
        Some(match metric {
            Metric::Tracked => self.tracked.into(),
            Metric::Expired => self.expired.into(),
            Metric::Evicted => self.evicted.into(),
            Metric::EvictedProtected => self.evicted_protected.into(),
            Metric::Removed => self.removed.into(),
            Metric::NoRoom => self.no_room.into(),
            _ => return self.decisions?.value(metric),
        })
    }
}
