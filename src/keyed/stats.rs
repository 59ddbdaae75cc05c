use crate::metrics::{Metric, Metrics, Value};

/// Statistics of the keys in a [`Keyed`](super::Keyed) table and of those that left, returned by
/// [`stats`](super::Keyed::stats).
///
/// While no other thread uses the table, `inserted` is `tracked + expired + evicted + removed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct KeyedStats {
    /// How many [slots](super::Keyed::slots) the table has: about 1.5 for each key of its capacity.
    pub slots: u64,
    /// How many keys are in the table.
    pub tracked: u64,
    /// How many of these are idle: they decide like fresh keys, and other keys can take their
    /// slots.
    pub idle: u64,
    /// How many keys were inserted. A key that left and came back is counted again.
    pub inserted: u64,
    /// How many keys left because they were idle and another key needed the slot. They lost
    /// nothing.
    pub expired: u64,
    /// How many keys were evicted although they were not idle. Each may have one more burst.
    pub evicted: u64,
    /// How many of the evicted keys were protected: each had got at least two grants. A protected
    /// key is evicted only if every key that competes for the slot is protected or banned. A ban
    /// neither protects a key nor ends its protection.
    pub evicted_protected: u64,
    /// How many keys were removed by [`remove`](super::Key::remove), or replaced by a
    /// [restored](super::Keyed::restore) snapshot.
    pub removed: u64,
    /// How often a key found no room. [`Overflow`](crate::keyed::Overflow) says whether it was
    /// denied, or admitted without a record.
    pub no_room: u64,
}

impl Metrics for KeyedStats {
    fn value(&self, metric: Metric) -> Option<Value> {
        Some(match metric {
            Metric::Slots => self.slots.into(),
            Metric::Tracked => self.tracked.into(),
            Metric::Idle => self.idle.into(),
            Metric::Inserted => self.inserted.into(),
            Metric::Expired => self.expired.into(),
            Metric::Evicted => self.evicted.into(),
            Metric::EvictedProtected => self.evicted_protected.into(),
            Metric::Removed => self.removed.into(),
            Metric::NoRoom => self.no_room.into(),
            _ => return None,
        })
    }
}
