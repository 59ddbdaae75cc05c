//! The map of keys: never more than its capacity, idle keys leave and get no second burst for it,
//! however late a caller decides or whatever its tick is; and what a key's own code does wrong
//! leaves the map whole.

mod algorithms;
mod bad_input;
mod bans;
mod capacity;
mod churn;
mod idle;
mod interrupted;
mod looking;
mod memory;
mod panics;
mod quotas;
mod snapshots;
mod spent_keys_stay;
mod threads;
mod verbs;

use std::time::Duration;

use tollgate::clock::NoClock;
use tollgate::{KeyedMap, ManualClock, Quota, TokenBucket};

type Map = KeyedMap<u64, TokenBucket, ManualClock>;

/// So many permits at once, one more every 10 ns.
fn bucket_of(burst: u64) -> TokenBucket {
    TokenBucket::new(Quota::per(1, Duration::from_nanos(10)).burst(burst)).expect("a quota")
}

/// A map whose keys have two permits.
fn map(capacity: usize) -> (Map, ManualClock) {
    let clock = ManualClock::new();
    let map = KeyedMap::with_clock(bucket_of(2), capacity, clock.clone()).expect("a map");
    (map, clock)
}

/// The same on no clock, with an algorithm and keys of any kind.
fn of<K: std::hash::Hash + Eq, A: tollgate::algorithm::Algorithm>(
    algorithm: A,
    capacity: usize,
) -> KeyedMap<K, A, NoClock> {
    KeyedMap::with_clock(algorithm, capacity, NoClock).expect("a map")
}
