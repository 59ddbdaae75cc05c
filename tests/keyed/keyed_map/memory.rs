//! Removed keys leave almost no memory behind, however they were removed.

use std::io::{self, Write};

use super::{Map, map};
use crate::support::memory::taken;
use crate::support::{Random, often, tick};

/// How many more entries than keys the queue may have, because entries of removed keys remain.
const SPARE: i64 = 64;

/// The bytes of an entry in the queue, and the additional bytes of its last block.
const ENTRY_BYTES: i64 = 25;
const BLOCK_BYTES: i64 = 1_000;

fn filled(keys: u64) -> Map {
    let (map, _) = map(2 * keys as usize);
    for key in 0..keys {
        map.key(&key).at(tick(0)).charge(10);
    }
    assert_eq!(map.len() as u64, keys);
    map
}

/// Examines this many entries and returns how many are freed: those of keys that have gone. (The
/// clock stands still, so no key is idle.)
fn left_in_line(map: &Map, places: u64) -> i64 {
    let (before, len) = (taken(), map.len());
    assert_eq!(map.purge_idle_at(tick(0), places as usize), 0);
    assert_eq!(map.len(), len);
    before - taken()
}

#[test]
fn an_emptied_map_keeps_no_queue_entries() {
    let keys = often(20_000);
    let empty = |by: &str, map: &Map| match by {
        "retain" => assert_eq!(map.retain_at(tick(0), |_| false) as u64, keys),
        "remove, from the first" => assert!((0..keys).all(|key| map.remove(&key))),
        "remove, from the last" => assert!((0..keys).rev().all(|key| map.remove(&key))),
        // Each number except 0 occurs once, so the last keys may be anywhere in the queue.
        _ => assert!((0..keys).all(|at| map.remove(&(at * 7_919 % keys)))),
    };
    for by in [
        "retain",
        "remove, from the first",
        "remove, from the last",
        "remove",
    ] {
        let map = filled(keys);
        empty(by, &map);
        assert!(map.is_empty());
        let left = left_in_line(&map, keys);
        assert!(
            left <= SPARE * ENTRY_BYTES + BLOCK_BYTES,
            "{left} bytes after {by}"
        );
    }
}

/// This also holds if some keys stay: entries of keys that have gone never outnumber the keys.
#[test]
fn a_thinned_map_keeps_few_queue_entries() {
    let keys = often(20_000);
    for one_in in [2, 3, 10, 100] {
        let map = filled(keys);
        let stay = map.retain_at(tick(0), |tracked| tracked.key() % one_in == 0);
        let stay = (keys - stay as u64) as i64;
        let left = left_in_line(&map, keys);
        assert!(
            left <= (stay + SPARE) * ENTRY_BYTES + BLOCK_BYTES,
            "{left} bytes for {stay} keys"
        );
    }
}

/// A map whose keys are all removed sooner or later, but that is never empty.
#[test]
fn the_queue_does_not_grow_with_removed_keys() {
    let (map, _) = map(1_000);
    let mut random = Random(5);
    let mut most = 0;
    let before = taken();
    for key in 0..often(50_000) {
        map.key(&key).at(tick(0)).charge(10);
        if key >= 100 {
            // One of the last hundred, or none: it may have been removed before.
            map.remove(&(key - random.below(100)));
            map.remove(&(key - 100));
        }
        most = most.max(taken() - before);
    }
    assert!(map.len() <= 100, "{map:?}");
    // A hundred keys, the table, and memory that waits for the last guard.
    assert!(most < 100_000, "{most} bytes");
}

/// 9 bytes for each slot, with at most four slots for a key, and garbage that is freed in batches.
#[test]
fn an_emptied_map_keeps_only_its_table() {
    let keys = often(20_000);
    let before = taken();
    let map = filled(keys);
    let full = taken() - before;
    map.retain_at(tick(0), |_| false);
    let (left, table) = (taken() - before, 4 * 9 * keys as i64);
    assert!(
        left <= table + 64_000 && left < full / 3,
        "{left} of {full} bytes"
    );
    drop(map);
    let left = taken() - before;
    assert!(left < 10_000, "{left} bytes without a map");
}

/// Keys are examined in turn as before, after any removals: all idle ones leave in one round.
#[test]
fn compaction_of_the_queue_forgets_no_key() {
    let keys = often(2_000);
    let map = filled(keys);
    let gone = map.retain_at(tick(0), |tracked| tracked.key() % 5 == 0) as u64;
    let stay = keys - gone;
    assert_eq!(
        map.purge_idle_at(tick(1_000_000), 2 * stay as usize + 64) as u64,
        stay
    );
    assert!(map.is_empty());
}

/// A slow writer: keys come and go while it writes. It records how much memory they leave behind.
struct Slow<'m> {
    map: &'m Map,
    next: u64,
    most: i64,
}

impl Write for Slow<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let before = taken();
        for _ in 0..200 {
            self.map.key(&self.next).at(tick(0)).charge(10);
            assert!(self.map.remove(&self.next));
            self.next += 1;
        }
        self.most += taken() - before;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// While a snapshot is written, keys that go are freed as always, however slow the writer is.
#[test]
fn a_slow_writer_of_a_snapshot_keeps_no_keys_that_have_gone() {
    let map = filled(20);
    let mut slow = Slow {
        map: &map,
        next: 1_000,
        most: 0,
    };
    assert_eq!(map.snapshot_at(&mut slow, tick(0)).ok(), Some(20));
    let (keys, left) = (slow.next - 1_000, slow.most);
    assert!(keys > 10_000, "{keys}");
    assert!(left < 100_000, "{left} bytes of {keys} keys");
}
