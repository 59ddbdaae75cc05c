//! What models see of a table.

use core::hash::Hash;

use super::{KeyHasher, Keyed};

impl<A, C, S: KeyHasher> Keyed<A, C, S> {
    /// How many slots are claimed for keys that are not in the table yet.
    pub fn claims(&self) -> usize {
        let all = self.core.table.all();
        all.filter(|(_, held)| held.is_pending()).count()
    }

    /// How many slots are this key's.
    pub fn slots_of<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        let spot = self.core.table.spot(self.hasher.hash_key(key));
        let its = spot.all_lines().flat_map(|(line, second)| {
            let slots = self.core.table.slots_of(line);
            slots.filter(move |(_, held)| held.is_live() && held.is_of(spot.tag(), second))
        });
        its.count()
    }
}
