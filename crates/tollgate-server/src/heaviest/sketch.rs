//! Finds the keys that come most, in a fixed memory.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::cell::{Cell, Word};

/// Each key has a cell in each row, so two keys that share a cell in one row rarely do in the
/// other.
const ROWS: usize = 2;
/// The cells of a row. If no key is heavy, about one request in a thousand is counted for each
/// cell's other keys.
const WIDTH: usize = 512;

/// Counts how often keys come. Of each key it knows how often at least, and at most; of all keys
/// that it does not name, how often at most.
///
/// Adding a key takes two exchanges of a word, and waits for nothing. A name is kept for the
/// candidate of each cell: it is made when a key comes first to an empty cell, or came again.
#[derive(Debug)]
pub(super) struct Sketch<N> {
    cells: Box<[(Cell, Named<N>)]>,
}

/// The key that was the candidate when it was last named, by its hash.
type Named<N> = Mutex<Option<(u64, Arc<N>)>>;

impl<N> Default for Sketch<N> {
    fn default() -> Self {
        let cells = (0..ROWS * WIDTH).map(|_| Default::default());
        Self {
            cells: cells.collect(),
        }
    }
}

/// Returns by what a key is known in its cells.
const fn mark(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl<N> Sketch<N> {
    /// Adds a key by its hash. The name is made if it is not known.
    pub(super) fn add(&self, hash: u64, name: impl Fn() -> N) {
        for (cell, named) in self.cells_of(hash) {
            let (before, after) = cell.add(mark(hash));
            if !wants_name(before, after, mark(hash)) {
                continue;
            }
            // If another thread has it, the key is named when it comes again.
            let Ok(mut named) = named.try_lock() else {
                continue;
            };
            if named.as_ref().is_none_or(|(known, _)| *known != hash) {
                *named = Some((hash, Arc::new(name())));
            }
        }
    }

    fn cells_of(&self, hash: u64) -> impl Iterator<Item = &(Cell, Named<N>)> {
        let rows = self.cells.chunks(WIDTH).zip([hash, hash >> 16]);
        rows.filter_map(|(row, bits)| row.get(bits as usize % WIDTH))
    }

    /// Returns how often a key came, at least and at most.
    pub(super) fn bounds(&self, hash: u64) -> (u64, u64) {
        let all = self
            .cells_of(hash)
            .map(|(cell, _)| cell.get().bounds(mark(hash)));
        let (low, high) = all.fold((0, u64::MAX), |(low, high), (at_least, at_most)| {
            (low.max(at_least), high.min(at_most))
        });
        // The key may have come between the two.
        (low, high.max(low))
    }

    /// Adds the keys that may have come most to a list, by their hashes.
    pub(super) fn named(&self, all: &mut HashMap<u64, Arc<N>>) {
        for (cell, named) in &self.cells {
            let word = cell.get().word;
            let named = named.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((hash, name)) = &*named {
                if word.votes > 0 && word.candidate == mark(*hash) {
                    all.entry(*hash).or_insert_with(|| Arc::clone(name));
                }
            }
        }
    }

    /// Returns how often each key came at most that is not among these.
    pub(super) fn others(&self, named: &HashSet<u64>) -> u64 {
        let marks: HashSet<u32> = named.iter().map(|hash| mark(*hash)).collect();
        let at_most = |cell: &Cell| {
            let seen = cell.get();
            match marks.contains(&seen.word.candidate) {
                true => seen.cancelled,
                false => seen.bounds(seen.word.candidate).1,
            }
        };
        let rows = self.cells.chunks(WIDTH);
        let rows = rows.map(|row| row.iter().map(|(cell, _)| at_most(cell)).max());
        rows.flatten().min().unwrap_or(0)
    }

    pub(super) fn clear(&self) {
        for (cell, named) in &self.cells {
            cell.clear();
            *named.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

/// Returns whether a key should be named now: it is the candidate, and it came first to an empty
/// cell, again, or for the sixteenth time.
const fn wants_name(before: Word, after: Word, key: u32) -> bool {
    let is_first = before.votes == 0 && before.candidate == 0;
    after.candidate == key && (is_first || after.votes == 2 || after.votes.is_multiple_of(16))
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};
    use std::thread;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::{Sketch, WIDTH};

    /// Spreads numbers as a hash does. Keys of the same hundred have the same cell in one row.
    fn hash(key: u64) -> u64 {
        let row = key / 100 % WIDTH as u64;
        key.wrapping_mul(0x9E37_79B9_7F4A_7C15) & !0xFFFF | row
    }

    fn check(sketch: &Sketch<u64>, counts: &HashMap<u64, u64>) {
        for (key, count) in counts {
            let (low, high) = sketch.bounds(hash(*key));
            assert!(
                (low..=high).contains(count),
                "{key} came {count} times: {low} to {high}"
            );
        }
        let mut named = HashMap::new();
        sketch.named(&mut named);
        for (hash_of, key) in &named {
            assert_eq!(hash(**key), *hash_of);
        }
        // All of them, the heavier half, and none.
        let mut order: Vec<_> = named.keys().copied().collect();
        order.sort_by_key(|hash| sketch.bounds(*hash).1);
        for kept in [order.len(), order.len() / 2, 0] {
            let listed: HashSet<u64> = order.iter().rev().take(kept).copied().collect();
            let others = sketch.others(&listed);
            for (key, count) in counts {
                assert!(
                    listed.contains(&hash(*key)) || *count <= others,
                    "{key}: {count}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn counts_are_within_their_bounds(keys in vec(0..400_u64, 0..3000)) {
            let sketch = Sketch::default();
            let mut counts = HashMap::new();
            for key in keys {
                // Small ones come most.
                let key = key * key / 400;
                sketch.add(hash(key), || key);
                *counts.entry(key).or_insert(0) += 1;
            }
            check(&sketch, &counts);
        }
    }

    #[test]
    fn heavy_keys_are_named_among_many_light_ones() {
        let sketch = Sketch::default();
        for round in 0..1000 {
            for light in 0..50 {
                let light = 1_000_000 + round * 50 + light;
                sketch.add(hash(light), || light);
            }
            for heavy in 0..3 {
                sketch.add(hash(heavy), || heavy);
            }
        }
        let mut named = HashMap::new();
        sketch.named(&mut named);
        let listed: HashSet<u64> = (0..3).map(hash).collect();
        assert!(listed.iter().all(|hash| named.contains_key(hash)));
        for heavy in 0..3 {
            let (low, high) = sketch.bounds(hash(heavy));
            assert!(
                low <= 1000 && (1000..1300).contains(&high),
                "{low} to {high}"
            );
        }
        assert!(sketch.others(&listed) < 300);
        sketch.clear();
        assert_eq!(
            (sketch.bounds(hash(0)), sketch.others(&HashSet::new())),
            ((0, 0), 0)
        );
    }

    #[test]
    fn counts_of_many_threads_are_within_their_bounds() {
        let sketch = Sketch::default();
        thread::scope(|scope| {
            for first in 0..4 {
                let sketch = &sketch;
                scope.spawn(move || {
                    for n in 0..20_000 {
                        let key = (first + n) % 7 * 100 + n % 2;
                        sketch.add(hash(key), || key);
                    }
                });
            }
        });
        let mut counts = HashMap::new();
        for first in 0..4 {
            for n in 0..20_000 {
                *counts.entry((first + n) % 7 * 100 + n % 2).or_insert(0) += 1;
            }
        }
        check(&sketch, &counts);
    }
}
