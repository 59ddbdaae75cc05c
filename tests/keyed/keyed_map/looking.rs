//! Iteration while keys come and go: a key that is present all the time is visited once. Nothing
//! more is guaranteed.

use std::collections::BTreeMap;

use tollgate::clock::NoClock;
use tollgate::{KeyedMap, Overflow, TokenBucket};

use super::{bucket_of, map};
use crate::support::{IdentityState, tick};

/// On one thread.
#[test]
fn iteration_visits_each_key_once() {
    let (map, _) = map(1_000);
    for key in 0..500 {
        map.key(&key).at(tick(0)).charge(10);
    }
    let mut keys: Vec<u64> = map.pin().iter_at(tick(0)).map(|at| *at.key()).collect();
    keys.sort_unstable();
    assert!(keys.into_iter().eq(0..500));
}

const STAYS: u64 = 100;

/// Half of the keys stay. Each of the others is removed when it is visited, and inserted again. It
/// may be visited again, so more keys are visited than there is room for. Those that stay are
/// visited once.
#[test]
fn iteration_may_visit_a_reinserted_key_twice_and_visits_others_once() {
    const CAPACITY: u64 = 200;
    let map = KeyedMap::<u64, TokenBucket, _>::with_clock(bucket_of(2), CAPACITY as usize, NoClock);
    let map = map.expect("a map").with_overflow(Overflow::Deny);
    // With the same slots in each run.
    let map = map.with_hasher(IdentityState::default());
    let brings = |key: u64| assert!(map.try_acquire_n_at(&key, 2, tick(0)).is_ok());
    (0..CAPACITY).for_each(brings);
    let mut seen = BTreeMap::new();
    for tracked in map.pin().iter_at(tick(0)) {
        let key = *tracked.key();
        *seen.entry(key).or_insert(0) += 1;
        if key >= STAYS {
            assert!(map.remove(&key));
            brings(key);
        }
        assert!(map.len() as u64 <= CAPACITY);
    }
    assert!((0..STAYS).all(|key| seen[&key] == 1), "{seen:?}");
    let all: u64 = seen.values().sum();
    assert!(all > CAPACITY, "{all} seen: {seen:?}");
    assert_eq!(map.len() as u64, CAPACITY);
}
