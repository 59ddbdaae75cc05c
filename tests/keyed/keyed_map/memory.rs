//! What keys that have gone leave behind: next to nothing, whatever made them go.

use super::{Map, map};
use crate::support::memory::taken;
use crate::support::{Random, often, tick};

/// Places in the line of keys to be looked at that may be those of keys that have gone, beside as
/// many as there are keys.
const SPARE: i64 = 64;

/// So many bytes a place takes in the line, and so many more its last block.
const PLACE: i64 = 25;
const BLOCK: i64 = 1_000;

fn filled(keys: u64) -> Map {
    let (map, _) = map(2 * keys as usize);
    for key in 0..keys {
        map.key(&key).at(tick(0)).charge(10);
    }
    assert_eq!(map.len() as u64, keys);
    map
}

/// What places in the line are given back when each of so many is looked at: those of keys that
/// have gone. (The clock stands still: no key is idle.)
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
        // Each number but 0 comes once: the last ones that are there lie anywhere in the line.
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
        assert!(left <= SPARE * PLACE + BLOCK, "{left} bytes after {by}");
    }
}

/// Also if some stay: no more places of keys that have gone than there are keys.
#[test]
fn a_thinned_map_keeps_few_queue_entries() {
    let keys = often(20_000);
    for one_in in [2, 3, 10, 100] {
        let map = filled(keys);
        let stay = map.retain_at(tick(0), |tracked| tracked.key() % one_in == 0);
        let stay = (keys - stay as u64) as i64;
        let left = left_in_line(&map, keys);
        assert!(
            left <= (stay + SPARE) * PLACE + BLOCK,
            "{left} bytes for {stay} keys"
        );
    }
}

/// A map whose keys are all removed sooner or later, and that is never without some.
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
    // A hundred keys, the table, and what waits for the last guard to be given back.
    assert!(most < 100_000, "{most} bytes");
}

/// Of 9 bytes for each of its slots, of which there are at most four for a key; and what waits for
/// others of its kind, to be given back together.
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

/// It is looked at in turn as before, whatever was removed: all that are idle leave in one round.
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
