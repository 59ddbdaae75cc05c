//! Methods with which loom and shuttle models inspect a table.

use core::hash::Hash;
use std::vec::Vec;

use super::{KeyHasher, Keyed};

impl<A, C, S: KeyHasher> Keyed<A, C, S> {
    /// Returns the number of slots with claims.
    pub fn claims(&self) -> usize {
        let all = self.keys.table().all();
        all.filter(|(_, held)| held.is_pending()).count()
    }

    /// Returns the live slots of this key: of each, whether the key is protected and whether it is
    /// a newcomer.
    pub fn slots_of<Q: Hash + ?Sized>(&self, key: &Q) -> Vec<(bool, bool)> {
        let table = self.keys.table();
        let probe_seq = table.probe_seq(self.hasher.hash_key(key));
        let its = table
            .all_of(&probe_seq)
            .filter(|(at, held)| held.is_live() && held.is_of(probe_seq.tag(), at.is_second()));
        its.map(|(_, held)| (held.is_protected(), held.is_newcomer()))
            .collect()
    }
}
