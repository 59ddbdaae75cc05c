//! Methods with which loom and shuttle models inspect a table.

use core::hash::Hash;

use super::slot::SlotState;
use super::{KeyHasher, Keyed};

impl<A, C, S: KeyHasher> Keyed<A, C, S> {
    /// Returns the number of slots with claims.
    pub fn claims(&self) -> usize {
        let all = self.core.table.all();
        all.filter(|(_, held)| held.is_pending()).count()
    }

    /// Returns the number of live slots of this key.
    pub fn slots_of<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        self.live(key).count()
    }

    /// Returns whether this key is protected, or `None` if it has no slot.
    pub fn is_protected<Q: Hash + ?Sized>(&self, key: &Q) -> Option<bool> {
        self.live(key).next().map(|held| held.is_protected())
    }

    /// Returns whether this key is a newcomer, or `None` if it has no slot.
    pub fn is_newcomer<Q: Hash + ?Sized>(&self, key: &Q) -> Option<bool> {
        self.live(key).next().map(|held| held.is_newcomer())
    }

    fn live<Q: Hash + ?Sized>(&self, key: &Q) -> impl Iterator<Item = SlotState> + '_ {
        let probe_seq = self.core.table.probe_seq(self.hasher.hash_key(key));
        let its = probe_seq.all_buckets().flat_map(move |(bucket, second)| {
            let slots = self.core.table.slots_of(bucket).map(|(_, held)| held);
            slots.filter(move |held| held.is_live() && held.is_of(probe_seq.tag(), second))
        });
        its.collect::<std::vec::Vec<_>>().into_iter()
    }
}
