//! The map never holds more keys than its capacity under threads, and a new key evicts the key
//! nearest to idle.

use tollgate::clock::NoClock;
use tollgate::{KeyedMap, Overflow, TokenBucket};

use super::{bucket_of, map, of};
use crate::support::{Random, deadline, often, on_threads, tick};

/// Threads insert, remove, purge and iterate under each policy, while one counts the keys all the
/// time.
#[test]
fn threads_never_exceed_the_capacity() {
    const CAPACITY: usize = 40;
    deadline("threads that insert and remove keys", || {
        for overflow in [Overflow::Evict, Overflow::Deny, Overflow::Admit] {
            let map: KeyedMap<u64, TokenBucket, NoClock> = of(bucket_of(2), CAPACITY);
            let map = map.with_overflow(overflow);
            on_threads(4, |id| {
                let mut random = Random(id);
                for turn in 0..often(1_500) {
                    let (key, now) = (random.below(200), tick(turn));
                    match random.below(12) {
                        _ if id == 3 => {
                            assert!(map.len() <= CAPACITY, "{map:?}");
                            let _ = map.pin().iter_at(tick(0)).count();
                        }
                        0 => drop(map.remove(&key)),
                        1 => drop(map.purge_idle_at(now, 3)),
                        2 => drop(map.retain_at(now, |tracked| tracked.key() % 7 != 0)),
                        _ => drop(map.try_acquire_at(&key, now).is_ok()),
                    }
                }
            });
            let there = map.pin().iter_at(tick(0)).count();
            assert_eq!(map.len(), there, "each slot has its key: {map:?}");
            assert!(there <= CAPACITY);
            let idle_at_last = tick(1_000_000);
            map.retain_at(idle_at_last, |tracked| !tracked.is_idle());
            assert_eq!(map.len(), 0, "{map:?}");
        }
    });
}

#[test]
fn the_key_nearest_to_idle_is_evicted() {
    let (map, _) = map(3);
    for (key, n) in [(1, 9), (2, 1), (3, 5)] {
        map.key(&key).at(tick(0)).charge(n);
    }
    assert!(map.try_acquire_at(&4, tick(5)).is_ok());
    let mut keys: Vec<u64> = map.pin().iter_at(tick(5)).map(|at| *at.key()).collect();
    keys.sort_unstable();
    assert_eq!(keys, [1, 3, 4]);
    assert_eq!(map.stats().evicted, 1);
}

#[test]
fn idle_keys_are_removed_before_any_key_is_evicted() {
    let (map, _) = map(8);
    for key in 0..8 {
        let n = if key < 7 { 100 } else { 1 };
        map.key(&key).at(tick(0)).charge(n);
    }
    assert!(map.try_acquire_at(&8, tick(10)).is_ok());
    let stats = map.stats();
    assert_eq!((stats.expired, stats.evicted, stats.tracked), (1, 0, 8));
}
