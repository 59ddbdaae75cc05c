//! A flood of new keys evicts no spent key that was used twice, and hardly any that was used once:
//! the flood's own keys are evicted first. Also tests the eviction order. (Time nearly stands
//! still: nothing is idle.)

use std::time::Duration;

use tollgate::{Denied, KeyedMap, ManualClock, Quota, Tick, TokenBucket};

use crate::support::{SECOND, often, on_threads, tick};

type Map = KeyedMap<u64, TokenBucket, ManualClock>;

const BURST: u64 = 100;
const TWICE: &[u64] = &[50, 50];
const ONCE: &[u64] = &[BURST];
const ONE_PERMIT: &[u64] = &[1];

/// The keys of a flood.
const FLOOD: u64 = often(2_000);
const FIRST_OF_FLOOD: u64 = 1 << 32;

fn map(capacity: u64) -> Map {
    let bucket = TokenBucket::new(Quota::per_minute(100).burst(BURST)).expect("a quota");
    let clock = ManualClock::at(tick(SECOND));
    KeyedMap::with_clock(bucket, capacity as usize, clock).expect("a map")
}

/// Each of these keys takes these parts of its burst.
fn take(map: &Map, keys: impl IntoIterator<Item = u64>, parts: &[u64]) {
    for key in keys {
        for part in parts {
            assert!(map.try_acquire_n(&key, *part).is_ok());
        }
    }
}

/// Inserts new keys that each take these parts of their burst.
fn flood(map: &Map, parts: &[u64]) {
    for key in 0..FLOOD {
        map.clock().advance(Duration::from_micros(1));
        take(map, [FIRST_OF_FLOOD + key], parts);
    }
}

/// Returns how many of these keys, which had no permits left, have some again.
fn reset(map: &Map, keys: impl IntoIterator<Item = u64>) -> u64 {
    let keys = keys.into_iter();
    keys.filter(|key| map.key(key).available() > 0).count() as u64
}

/// Returns capacities, each with the number of free slots: none, or one in a thousand.
fn maps() -> impl Iterator<Item = (u64, u64)> {
    [1_000, 10_000]
        .into_iter()
        .flat_map(|capacity| [(capacity, 0), (capacity, capacity / 1_000)])
}

/// If all keys are protected and no slot is free, one of them must be evicted: the newest.
#[test]
fn a_flood_resets_no_key_used_twice() {
    for (capacity, free) in maps() {
        for parts in [ONE_PERMIT, ONCE] {
            let map = map(capacity);
            // The first key is used in parts, as a client would use it.
            take(&map, [0], &[1, 39, 60]);
            take(&map, 1..capacity - free, TWICE);
            flood(&map, parts);
            let gone = u64::from(free == 0);
            assert_eq!(reset(&map, 0..capacity - free - gone), 0, "{map:?}");
            assert_eq!(reset(&map, 0..capacity - free), gone, "{map:?}");
            let stats = map.stats();
            assert_eq!((stats.no_room, stats.tracked), (0, capacity));
            let evicted = (stats.evicted, stats.evicted_protected);
            assert_eq!(evicted, (FLOOD - free, gone), "{map:?}");
        }
    }
}

/// A hundred of them, anywhere among keys that were used once.
#[test]
fn a_flood_resets_no_key_used_twice_among_others() {
    for (capacity, free) in maps() {
        let first = [(capacity - free) / 2, 0, capacity - free - 100];
        // A large map takes long to fill.
        let places = if capacity > 1_000 { 1 } else { first.len() };
        for (parts, others) in [(ONE_PERMIT, ONCE), (ONCE, ONCE), (ONCE, ONE_PERMIT)] {
            for first in first.into_iter().take(places) {
                let map = map(capacity);
                let victims = first..first + 100;
                for key in 0..capacity - free {
                    let is_victim = victims.contains(&key);
                    take(&map, [key], if is_victim { TWICE } else { others });
                }
                flood(&map, parts);
                assert_eq!(
                    (reset(&map, victims), map.stats().evicted_protected),
                    (0, 0)
                );
            }
        }
    }
}

/// The flood fills the map before it evicts.
#[test]
fn a_flood_that_fills_the_map_resets_no_spent_key() {
    for (victims, parts) in [
        (TWICE, ONE_PERMIT),
        (TWICE, ONCE),
        (TWICE, TWICE),
        (ONCE, ONE_PERMIT),
        (ONCE, ONCE),
    ] {
        let map = map(1_000);
        take(&map, 0..100, victims);
        flood(&map, parts);
        assert_eq!(reset(&map, 0..100), 0, "{victims:?}, {parts:?}");
    }
}

#[test]
fn a_flood_resets_one_in_a_hundred_keys_spent_at_once() {
    for (capacity, free) in maps() {
        for parts in [ONE_PERMIT, ONCE] {
            let map = map(capacity);
            take(&map, 0..capacity - free, ONCE);
            flood(&map, parts);
            // One in a hundred of all keys, and so of each hundred.
            assert!(reset(&map, 0..capacity - free) <= 1);
        }
    }
}

/// The flood's keys are protected too, and newer.
#[test]
fn a_flood_of_keys_used_twice_resets_hardly_any_key() {
    for (capacity, free) in maps() {
        let map = map(capacity);
        take(&map, 0..capacity - free, TWICE);
        flood(&map, TWICE);
        assert!(reset(&map, 0..capacity - free) <= 1);
        let stats = map.stats();
        assert_eq!(stats.evicted_protected, stats.evicted, "{stats:?}");
        assert_eq!(stats.evicted, FLOOD - free, "{stats:?}");
    }
}

/// A key of each thread may be in no slot when another thread looks for a key to evict.
#[test]
fn a_flood_from_several_threads_resets_hardly_any_key() {
    for free in [0, 10] {
        let map = map(1_000);
        take(&map, 0..1_000 - free, TWICE);
        on_threads(4, |id| {
            let first = (1 + id) * FIRST_OF_FLOOD;
            for key in first..first + often(5_000) {
                let outcome = map.try_acquire_n(&key, BURST);
                assert!(matches!(outcome, Ok(_) | Err(Denied::NoRoom { .. })));
            }
        });
        let stats = map.stats();
        assert!(reset(&map, 0..1_000 - free) <= 32, "{stats:?}");
        assert!(stats.evicted_protected <= 32, "{stats:?}");
    }
}

/// All present keys are protected, and each new key is inserted.
#[test]
fn a_map_of_protected_keys_admits_new_ones() {
    let map = map(1_000);
    take(&map, 0..1_000, TWICE);
    for key in 1_000..3_000 {
        take(&map, [key], TWICE);
        assert_eq!(map.key(&key).available(), 0);
    }
    let stats = map.stats();
    assert_eq!((stats.tracked, stats.no_room), (1_000, 0), "{stats:?}");
    let evicted = (stats.evicted, stats.evicted_protected);
    assert_eq!(evicted, (2_000, 2_000), "{stats:?}");
}

type Use = fn(&Map, u64, Tick);

/// Uses of a key at a tick, in the eviction order. Each occurs twice: the newer key is evicted
/// first.
const USES: [(&str, Use); 7] = [
    ("takes 10", |map, key, at| use_up(map, key, at, &[10])),
    ("takes 10, and is denied", |map, key, at| {
        use_up(map, key, at, &[13]);
        assert!(map.try_acquire_n_at(&key, BURST, at).is_err());
    }),
    ("takes 60 and gives back 20", |map, key, at| {
        use_up(map, key, at, &[60]);
        assert_eq!(map.key(&key).at(at).refund(20), 20);
    }),
    ("takes all", |map, key, at| use_up(map, key, at, ONCE)),
    ("owes", |map, key, at| {
        assert_eq!(map.key(&key).at(at).charge(BURST + 1).debt(), 1);
    }),
    ("takes 10, and another", |map, key, at| {
        use_up(map, key, at, &[10, 1]);
    }),
    ("owes more and more", |map, key, at| {
        assert_eq!(map.key(&key).at(at).charge(BURST).debt(), 0);
        assert_eq!(map.key(&key).at(at).charge(1).debt(), 1);
    }),
];

fn use_up(map: &Map, key: u64, at: Tick, parts: &[u64]) {
    for part in parts {
        assert!(map.try_acquire_n_at(&key, *part, at).is_ok());
    }
}

/// Checks each pair of uses, also if a key's second use comes after the other key.
#[test]
fn unprotected_keys_are_evicted_first_and_among_them_the_least_spent_and_newest() {
    let at = tick(SECOND);
    for (rank, (name, first)) in USES.iter().enumerate() {
        for (last_name, last) in &USES[rank..] {
            for is_first_older in [true, false] {
                let map = map(2);
                let keys = if is_first_older { [1, 2] } else { [2, 1] };
                for key in keys {
                    let is_first = key == 1;
                    if is_first {
                        first(&map, key, at);
                    } else {
                        last(&map, key, at);
                    }
                }
                let goes = if name == last_name { keys[1] } else { 1 };
                assert!(map.try_acquire_at(&3, at).is_ok());
                let there = map.pin().iter_at(at).any(|of| *of.key() == goes);
                assert!(!there, "{name}, and {last_name}: {keys:?}");
                let stats = map.stats();
                let is_protected = rank >= 5;
                let protected = u64::from(is_protected);
                assert_eq!((stats.evicted, stats.evicted_protected), (1, protected));
            }
        }
    }
}

/// The key stays protected under another algorithm, and without it.
#[test]
fn a_protected_key_stays_protected_through_changes_of_its_algorithm() {
    for (parts, protected) in [(TWICE, 1), (ONCE, 0)] {
        let (map, other) = (map(1), Quota::per_minute(10).burst(BURST));
        take(&map, [1], parts);
        let other = TokenBucket::new(other).expect("a quota");
        assert!(map.set_algorithm(&1, other).is_ok());
        assert!(map.try_acquire(&2).is_err(), "it stays");
        assert!(map.unset_algorithm(&1));
        assert!(map.try_acquire(&2).is_ok());
        let stats = map.stats();
        assert_eq!((stats.evicted, stats.evicted_protected), (1, protected));
    }
}
