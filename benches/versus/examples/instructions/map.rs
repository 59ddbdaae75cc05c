//! The rows of a map that keeps its keys: many keys in turn, in a full map.

use std::hash::{BuildHasherDefault, DefaultHasher};
use std::hint::black_box;

use tollgate::clock::NoClock;
use tollgate::{KeyedMap, Quota, Tick, TokenBucket};
use tollgate_versus::keys::key;

use crate::{Row, SOON, bucket, times};

/// A hasher that is the same in each run.
type Hasher = BuildHasherDefault<DefaultHasher>;
type Map = KeyedMap<u64, TokenBucket, NoClock, Hasher>;

/// The wrapper. callgrind recognizes it by `counted_` in its name.
mod counted {
    use super::*;

    #[inline(never)]
    pub(super) fn counted_map_at(map: &Map, key: &u64, now: Tick) -> bool {
        map.try_acquire_at(key, now).is_ok()
    }
}
use counted::*;

const KEYS: u64 = 10_000;

/// Returns a full map. Each key in it took this number of permits, one after the other.
fn full(each: u64, burst: u64) -> Map {
    let quota = Quota::per_minute(1).burst(burst);
    let map = KeyedMap::with_clock(bucket(quota), KEYS as usize, NoClock).expect("a capacity");
    let map = map.with_hasher(Hasher::default());
    for key in (0..KEYS).map(key) {
        assert!((0..each).all(|_| map.try_acquire_at(&key, Tick::ZERO).is_ok()));
    }
    black_box(map)
}

/// Makes requests for these keys in an order other than that of insertion.
fn ask(map: &Map, first: u64, allowed: bool, count: u64) -> u64 {
    let mut keys = (1..).map(|turn: u64| key(first + turn * 7919 % KEYS));
    let now = black_box(SOON);
    times(count, || {
        keys.next()
            .is_some_and(|key| counted_map_at(map, &key, now))
            == allowed
    })
}

pub(crate) static MAP: &[Row] = &[
    ("map-at-allowed", |count| {
        ask(&full(2, 1 << 20), 0, true, count)
    }),
    ("map-at-second", |count| {
        ask(&full(1, 1 << 20), 0, true, count)
    }),
    ("map-at-denied", |count| ask(&full(1, 1), 0, false, count)),
    // Each key is new and evicts another one: one with a single grant, or a protected one.
    ("map-new-evicts", |count| {
        ask(&full(1, 2), KEYS, true, count)
    }),
    ("map-new-protected", |count| {
        ask(&full(2, 2), KEYS, true, count)
    }),
];
