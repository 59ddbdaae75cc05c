//! Counters of events.

use crate::striped::StripedCounters;

/// An event in the table.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// A key was inserted.
    Inserted,
    /// An idle key lost its slot to another key.
    Expired,
    /// A key was evicted that was neither idle nor protected.
    Evicted,
    /// A protected key was evicted that was not idle.
    EvictedProtected,
    /// A key was removed.
    Removed,
    /// A key found no room.
    NoRoom,
}

/// The counters of a table: one for each event, and one that numbers claims.
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

    /// Returns a number that no other claim has.
    pub(super) fn nonce(&self) -> u64 {
        self.0.number(Self::NUMBERS)
    }

    pub(super) fn total(&self, event: Event) -> u64 {
        self.0.sum(event as usize)
    }

    /// Returns how many keys are in the table.
    pub(super) fn tracked(&self) -> u64 {
        // Read the departures before the insertions. Otherwise a key that is inserted and leaves
        // meanwhile could be subtracted without having been added.
        let left = [
            Event::Expired,
            Event::Evicted,
            Event::EvictedProtected,
            Event::Removed,
        ];
        let left = left.map(|event| self.total(event));
        let left = left.into_iter().fold(0, u64::wrapping_add);
        self.total(Event::Inserted).saturating_sub(left)
    }
}
