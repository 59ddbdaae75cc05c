//! A panic in a key's `Hash`, `Eq` or `clone`, in an algorithm or in a predicate loses nothing and
//! leaks no room, and the map continues.

use std::hash::{BuildHasherDefault, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tollgate::clock::NoClock;
use tollgate::{KeyedMap, Overflow};

use super::{bucket_of, of};
use crate::support::hooks::{Call, Hooked, HookedKey as Key, at_call, unhook};
use crate::support::tick;

type Map = KeyedMap<Key, Hooked, NoClock>;

const CAPACITY: u64 = 8;

fn hooked() -> Hooked {
    Hooked(bucket_of(2))
}

/// Returns a map with as many keys as there is room for, each with one permit taken.
fn full() -> Map {
    let map: Map = of(hooked(), CAPACITY as usize);
    for key in 0..CAPACITY {
        assert!(map.try_acquire_at(&Key(key), tick(0)).is_ok());
    }
    map
}

/// Checks that each key has its slot and its word, and that each slot is usable.
fn check_whole(map: &Map, context: &str) {
    let pinned: usize = map.pin().iter_at(tick(0)).count();
    assert_eq!(map.len(), pinned, "{context}: {map:?}");
    assert!(map.len() <= CAPACITY as usize);
    map.retain_at(tick(1_000), |_| false);
    assert_eq!(map.len(), 0, "{context}");
    for key in (100..100 + CAPACITY).map(Key) {
        assert!(map.try_acquire_n_at(&key, 2, tick(1_000)).is_ok());
        assert!(map.try_acquire_at(&key, tick(1_000)).is_err());
    }
    assert_eq!((map.len() as u64, map.stats().evicted), (CAPACITY, 0));
}

type Action = (&'static str, fn(&Map) -> bool);

/// Actions on a key, on a map that is full or has room.
const ACTIONS: [Action; 7] = [
    ("a known key", |map| takes(map, 3)),
    ("a new key", |map| takes(map, 50)),
    ("a look", |map| map.key(&Key(3)).at(tick(1)).available() > 0),
    ("a removal", |map| map.remove(&Key(3))),
    ("a change", changes),
    ("a purge", |map| map.purge_idle_at(tick(1), 20) > 0),
    ("a look at all", |map| {
        map.retain_at(tick(1), |of| of.is_idle()) > 0
    }),
];

fn takes(map: &Map, key: u64) -> bool {
    map.try_acquire_at(&Key(key), tick(1)).is_ok()
}

fn changes(map: &Map) -> bool {
    map.set_algorithm_at(&Key(3), hooked(), tick(1)).is_ok()
}

#[test]
fn a_panic_leaves_the_map_intact() {
    let mut panicked = Vec::new();
    let calls = [Call::Hash, Call::Eq, Call::Clone].into_iter();
    let calls = calls.chain([Call::IsIdle, Call::CarryOver]);
    for call in calls.clone() {
        for (name, action) in ACTIONS {
            for turn in 0..6 {
                let map = full().with_overflow(Overflow::Deny);
                if turn % 2 == 0 {
                    assert!(map.remove(&Key(CAPACITY - 1)));
                }
                at_call(call, turn / 2, || panic!("on purpose"));
                let done = catch_unwind(AssertUnwindSafe(|| action(&map)));
                unhook();
                if done.is_err() {
                    panicked.push((call, name));
                }
                if call == Call::CarryOver && done.is_err() {
                    // A key whose change was interrupted keeps its word, and the change can be made
                    // afterwards.
                    assert_eq!(map.key(&Key(3)).at(tick(0)).available(), 1);
                    assert!(action(&map));
                }
                // The key is present with the permit taken, unless the action removed it.
                let left = map.key(&Key(2)).at(tick(0)).available();
                let is_right = left == 1 || (left == 2 && name == "a look at all");
                assert!(is_right, "{call:?} in {name}: {left}");
                check_whole(&map, name);
            }
        }
    }
    for call in calls {
        let has = panicked.iter().any(|(which, _)| *which == call);
        assert!(has, "{call:?} never panicked");
    }
    assert!(panicked.contains(&(Call::CarryOver, "a change")));
    assert!(panicked.contains(&(Call::Clone, "a new key")));
}

/// Gives all keys the same hash.
#[derive(Debug, Default, Clone, Copy)]
struct OneHash;

impl Hasher for OneHash {
    fn finish(&self) -> u64 {
        7
    }

    fn write(&mut self, _bytes: &[u8]) {}
}

/// Migrating a key compares it with keys of the same hash. If that panics, the key keeps its old or
/// its new state, whichever key is migrated next, and whether or not that panics too.
#[test]
fn no_migration_is_lost_when_comparing_keys_panics() {
    let mut panicked = 0;
    for (after, key) in (0..12).flat_map(|after| (0..4).map(move |key| (after, key))) {
        let map: KeyedMap<Key, Hooked, NoClock> = of(hooked(), 4);
        let map = map.with_hasher(BuildHasherDefault::<OneHash>::default());
        for key in (0..4).map(Key) {
            assert!(map.try_acquire_n_at(&key, 2, tick(0)).is_ok());
        }
        let ban = |key: u64| map.key(&Key(key % 4)).at(tick(0)).ban(tick(10));
        for turn in 0..2 {
            at_call(Call::Eq, after, || panic!("on purpose"));
            let ban = AssertUnwindSafe(|| ban(key + turn));
            panicked += u64::from(catch_unwind(ban).is_err());
            unhook();
        }
        assert_eq!(ban(key + 2), Ok(()));
        let available = |key| map.key(&Key(key)).at(tick(0)).available();
        assert_eq!([0, 1, 2, 3].map(available), [0; 4], "{after}, {key}");
        assert_eq!(map.len(), 4);
    }
    assert!(panicked > 9, "{panicked}");
}

#[test]
fn a_predicate_may_panic() {
    let map = full();
    let mut asked = 0;
    let retained = catch_unwind(AssertUnwindSafe(|| {
        map.retain_at(tick(0), |_| {
            asked += 1;
            assert!(asked < 4, "enough");
            false
        })
    }));
    assert!(retained.is_err());
    assert_eq!((map.len() as u64, map.stats().removed), (CAPACITY - 3, 3));
    check_whole(&map, "a predicate");
}
