//! Removal of keys.

use super::core::Core;
use super::probe::Lookup;
use super::probe_seq::ProbeSeq;
use super::stats::Event;
use crate::algorithm::Algorithm;

impl<A: Algorithm> Core<A> {
    /// Returns whether the key is in the table.
    pub(super) fn tracks(&self, probe_seq: &ProbeSeq) -> bool {
        matches!(
            self.table.look(probe_seq).find(probe_seq.tag()),
            Lookup::Live(..)
        )
    }

    /// Removes the key, and returns whether it was in the table.
    pub(super) fn remove(&self, probe_seq: &ProbeSeq) -> bool {
        loop {
            let probe = self.table.look(probe_seq);
            // A claim does not count: its key is inserted after this removal.
            let Lookup::Live(at, held) = probe.find(probe_seq.tag()) else {
                return false;
            };
            if self.table.release(at, held).is_ok() {
                self.events.count(Event::Removed);
                return true;
            }
        }
    }
}
