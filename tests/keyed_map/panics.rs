//! A key whose `Hash`, `Eq` or `clone` panics, an algorithm that does, a predicate that does: nothing is lost, no room
//! leaks, and the map goes on.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tollgate::{
    Algorithm, ConfigError, Denied, Granted, KeyedMap, NoClock, Overflow, Quota, Requota, Tick,
    TokenBucket,
};

use crate::{bucket, tick};

thread_local! {
    /// How often each may still be called.
    static LEFT: Cell<[Option<u32>; 5]> = const { Cell::new([None; 5]) };
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Hash,
    Eq,
    Clone,
    IsIdle,
    CarryOver,
}

fn panic_in(what: What, after: u32) {
    let mut left = [None; 5];
    left[what as usize] = Some(after);
    LEFT.set(left);
}

fn called(what: What) {
    let mut left = LEFT.get();
    if let Some(times) = &mut left[what as usize] {
        match times.checked_sub(1) {
            Some(fewer) => *times = fewer,
            None => {
                LEFT.set([None; 5]);
                panic!("{what:?}");
            }
        }
    }
    LEFT.set(left);
}

#[derive(Debug)]
struct Key(u64);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        called(What::Hash);
        self.0.hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        called(What::Eq);
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Clone for Key {
    fn clone(&self) -> Self {
        called(What::Clone);
        Self(self.0)
    }
}

#[derive(Debug, Clone, Copy)]
struct Touchy(TokenBucket);

impl Algorithm for Touchy {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        self.0.step(word, now, n)
    }
    fn available(&self, word: u64, now: Tick) -> u64 {
        self.0.available(word, now)
    }
    fn is_idle(&self, word: u64, now: Tick) -> bool {
        called(What::IsIdle);
        self.0.is_idle(word, now)
    }
}

impl Requota for Touchy {
    fn quota(&self) -> Quota {
        self.0.quota()
    }
    fn with_quota(&self, quota: Quota) -> Result<Self, ConfigError> {
        Ok(Self(self.0.with_quota(quota)?))
    }
    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        called(What::CarryOver);
        self.0.carry_over(word, now, &next.0)
    }
}

type Map = KeyedMap<Key, Touchy, NoClock>;

const CAPACITY: u64 = 8;

/// As many keys as there is room for, each with one permit taken.
fn full() -> Map {
    let map = Map::with_clock(Touchy(bucket()), CAPACITY as usize, NoClock).expect("a map");
    for key in 0..CAPACITY {
        assert!(map.try_acquire_at(&Key(key), tick(0)).is_ok());
    }
    map
}

/// Each key has its place and its word, and each place can be had.
fn check_whole(map: &Map, context: &str) {
    let pinned: usize = map.pin().iter_at(tick(0)).count();
    assert_eq!(map.len(), pinned, "{context}: {map:?}");
    assert!(map.len() <= CAPACITY as usize);
    map.retain_at(tick(1_000), |_| false);
    assert_eq!(map.len(), 0, "{context}");
    for key in 100..100 + CAPACITY {
        assert!(map.try_acquire_n_at(&Key(key), 2, tick(1_000)).is_ok());
        assert!(map.try_acquire_at(&Key(key), tick(1_000)).is_err());
    }
    assert_eq!((map.len() as u64, map.stats().evicted), (CAPACITY, 0));
}

type Named = (&'static str, fn(&Map));

/// What has to do with the key, on a map that is full, or has a place.
fn deeds() -> [Named; 7] {
    [
        ("a known key", |map| {
            let _ = map.try_acquire_at(&Key(3), tick(1));
        }),
        ("a new key", |map| {
            let _ = map.try_acquire_at(&Key(50), tick(1));
        }),
        ("a look", |map| {
            map.key(&Key(3)).at(tick(1)).available();
        }),
        ("a removal", |map| {
            map.remove(&Key(3));
        }),
        ("a change", |map| {
            let _ = map.set_algorithm_at(&Key(3), Touchy(bucket()), tick(1));
        }),
        ("a purge", |map| {
            map.purge_idle_at(tick(1), 20);
        }),
        ("a look at all", |map| {
            map.retain_at(tick(1), |tracked| tracked.is_idle());
        }),
    ]
}

#[test]
fn the_map_stays_whole() {
    let mut panicked = Vec::new();
    let whats = [
        What::Hash,
        What::Eq,
        What::Clone,
        What::IsIdle,
        What::CarryOver,
    ];
    for what in whats {
        for (name, deed) in deeds() {
            for has_room in [false, true] {
                for after in 0..3 {
                    let map = full().with_overflow(Overflow::Deny);
                    if has_room {
                        assert!(map.remove(&Key(CAPACITY - 1)));
                    }
                    panic_in(what, after);
                    let done = catch_unwind(AssertUnwindSafe(|| deed(&map)));
                    LEFT.set([None; 5]);
                    if done.is_err() {
                        panicked.push((what, name));
                    }
                    // What was there is there, with the permit taken, unless the deed removed it.
                    let left = map.key(&Key(2)).at(tick(0)).available();
                    assert!(
                        left == 1 || (left == 2 && name == "a look at all"),
                        "{what:?} in {name}: {left}"
                    );
                    check_whole(&map, name);
                }
            }
        }
    }
    for what in whats {
        assert!(
            panicked.iter().any(|(which, _)| *which == what),
            "{what:?} never panicked"
        );
    }
    assert!(panicked.contains(&(What::CarryOver, "a change")));
    assert!(panicked.contains(&(What::Clone, "a new key")));
}

/// The word of a key whose change was broken off is what it was.
#[test]
fn a_change_that_is_broken_off_changes_nothing() {
    let map = full();
    panic_in(What::CarryOver, 0);
    let change = || map.set_algorithm_at(&Key(3), Touchy(bucket()), tick(1));
    assert!(catch_unwind(AssertUnwindSafe(change)).is_err());
    assert_eq!(map.key(&Key(3)).at(tick(0)).available(), 1);
    assert!(map.try_acquire_at(&Key(3), tick(0)).is_ok());
    // And can be made then.
    assert!(change().is_ok());
    assert_eq!(map.key(&Key(3)).at(tick(1)).available(), 0);
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
