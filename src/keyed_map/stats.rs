use crate::counted::LimiterStats;
use crate::metrics::{Metric, MetricSource, Value};
use crate::sync::{AtomicU64, Ordering};

/// Statistics of the keys in a [`KeyedMap`](super::KeyedMap) and of those that left, returned by
/// [`stats`](super::KeyedMap::stats).
///
/// Each number is exact by itself. While other threads decide, the numbers need not belong to the
/// same moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MapStats {
    /// Keys in the map now, including those that are being inserted.
    pub tracked: u64,
    /// Keys that left because they were idle. They lost nothing.
    pub expired: u64,
    /// Keys that left although they were not idle. Each may get one more burst.
    pub evicted: u64,
    /// How many of the evicted keys were protected, that is, had got at least two grants. They are
    /// evicted only if no unprotected key is found.
    pub evicted_protected: u64,
    /// Keys that [`remove`](super::KeyedMap::remove) removed, and keys that were not idle and that
    /// [`retain`](super::KeyedMap::retain) removed.
    pub removed: u64,
    /// Calls for keys that found no room. [`Overflow`](crate::Overflow) says whether they were
    /// denied, or answered as for a fresh key.
    pub no_room: u64,
    /// The decisions on all keys, if the map is in a [`Counted`](crate::Counted).
    pub decisions: Option<LimiterStats>,
}

/// The counters. They are updated when keys enter and leave, not by decisions.
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

    /// Counts that a snapshot replaced all keys, and that some of its keys found no room.
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
