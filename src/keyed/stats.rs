use crate::counted::LimiterStats;
use crate::metrics::{Metric, MetricSource, Value};
use crate::striped::StripedCounters;

/// What happens to slots.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// A key was put into the table.
    Inserted,
    /// A key that was idle left for another one.
    Expired,
    /// A key that was neither idle nor protected left for another one.
    Evicted,
    /// A protected key that was not idle left for another one.
    EvictedProtected,
    /// A key was removed.
    Removed,
    /// There was no room for a key.
    NoRoom,
}

/// Counts of a table, and the numbers of claims.
#[derive(Debug)]
pub(super) struct Events(StripedCounters<7>);

impl Events {
    const NUMBERS: usize = 6;

    pub(super) fn new() -> Self {
        Self(StripedCounters::new())
    }

    pub(super) fn count(&self, event: Event) {
        self.0.add(event as usize, 1);
    }

    pub(super) fn count_many(&self, event: Event, n: u64) {
        self.0.add(event as usize, n);
    }

    /// A number that no other claim has.
    pub(super) fn nonce(&self) -> u64 {
        self.0.number(Self::NUMBERS)
    }

    pub(super) fn of(&self, event: Event) -> u64 {
        self.0.sum(event as usize)
    }

    /// How many keys are in the table.
    pub(super) fn tracked(&self) -> u64 {
        // Those that leave first: a key that is inserted meanwhile must not seem to have left
        // before.
        let left = [
            Event::Expired,
            Event::Evicted,
            Event::EvictedProtected,
            Event::Removed,
        ];
        let left = left.map(|event| self.of(event));
        let left = left.into_iter().fold(0, u64::wrapping_add);
        self.of(Event::Inserted).saturating_sub(left)
    }
}

/// The counts of a [`Keyed`](super::Keyed) table, of the keys in it and those that left:
/// [`stats`](super::Keyed::stats).
///
/// While no other thread uses the table, `inserted` is `tracked + expired + evicted + removed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct KeyedStats {
    /// How many keys are in the table.
    pub tracked: u64,
    /// How many of them can't be told from fresh ones any more. Their places are there for others.
    pub idle: u64,
    /// How many keys were put into the table: a key that left and came again is counted again.
    pub inserted: u64,
    /// How many left because they were idle and another one needed the place. They lost nothing.
    pub expired: u64,
    /// How many left although they were not idle: each may have one burst more.
    pub evicted: u64,
    /// How many of these were protected: they had been granted something again after they came.
    /// They leave only where all keys that could leave are protected, or banned. (A banned key
    /// counts as it would without its ban.)
    pub evicted_protected: u64,
    /// How many were removed by [`remove`](super::Keyed::remove), or were there when a snapshot
    /// was [restored](super::Keyed::restore).
    pub removed: u64,
    /// How often there was no room for a key, so that it was denied, or admitted without being
    /// recorded, as [`Overflow`](crate::Overflow) says.
    pub no_room: u64,
    /// What was decided on all keys, if the table is in a [`Counted`](crate::Counted).
    pub decisions: Option<LimiterStats>,
}

impl MetricSource for KeyedStats {
    fn value(&self, metric: Metric) -> Option<Value> {
        Some(match metric {
            Metric::Tracked => self.tracked.into(),
            Metric::Idle => self.idle.into(),
            Metric::Inserted => self.inserted.into(),
            Metric::Expired => self.expired.into(),
            Metric::Evicted => self.evicted.into(),
            Metric::EvictedProtected => self.evicted_protected.into(),
            Metric::Removed => self.removed.into(),
            Metric::NoRoom => self.no_room.into(),
            _ => return self.decisions?.value(metric),
        })
    }
}
