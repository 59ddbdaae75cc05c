//! The map of keys. It never exceeds its capacity. Idle keys leave and get no second burst, for any
//! late decision or tick. A key's own faulty code leaves the map intact.

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

/// `burst` permits at once, and one more every 10 ns.
fn bucket_of(burst: u64) -> TokenBucket {
    TokenBucket::new(Quota::per(1, Duration::from_nanos(10)).burst(burst)).expect("a quota")
}

/// A map whose keys have two permits.
fn map(capacity: usize) -> (Map, ManualClock) {
    let clock = ManualClock::new();
    let map = KeyedMap::with_clock(bucket_of(2), capacity, clock.clone()).expect("a map");
    (map, clock)
}

/// The same without a clock, with any algorithm and type of key.
fn of<K: std::hash::Hash + Eq, A: tollgate::algorithm::Algorithm>(
    algorithm: A,
    capacity: usize,
) -> KeyedMap<K, A, NoClock> {
    KeyedMap::with_clock(algorithm, capacity, NoClock).expect("a map")
}
