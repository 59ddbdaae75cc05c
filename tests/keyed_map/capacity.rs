//! Never more keys than the capacity, whatever threads do; and what goes for a new key is what is nearest to idle.

use std::sync::Barrier;
use std::thread;

use tollgate::primitive::{AtomicU64, Ordering};
use tollgate::{KeyedMap, NoClock, Overflow};

use crate::{Random, bucket, map, tick};

/// Threads bring, remove, purge and look through keys, under each policy; one counts what is there all the time.
#[test]
fn never_more_under_threads() {
    const CAPACITY: usize = 40;
    for overflow in [Overflow::Evict, Overflow::Deny, Overflow::Admit] {
        let map = KeyedMap::<u64, _, _>::with_clock(bucket(), CAPACITY, NoClock).expect("a map");
        let map = map.with_overflow(overflow);
        let ready = Barrier::new(4);
        let working = AtomicU64::new(3);
        thread::scope(|scope| {
            for seed in 0..3 {
                let (map, ready, working) = (&map, &ready, &working);
                scope.spawn(move || {
                    let mut random = Random(seed);
                    ready.wait();
                    for step in 0..4_000 {
                        let key = random.below(200);
                        let now = tick(step);
                        match random.below(12) {
                            0 => {
                                map.remove(&key);
                            }
                            1 => {
                                map.purge_idle_at(now, 3);
                            }
                            2 => {
                                map.retain_at(now, |tracked| tracked.key() % 7 != 0);
                            }
                            _ => {
                                let _ = map.try_acquire_at(&key, now);
                            }
                        }
                    }
                    // ORDERING: Relaxed. It only ends the counting.
                    working.fetch_sub(1, Ordering::Relaxed);
                });
            }
            ready.wait();
            while working.load(Ordering::Relaxed) > 0 {
                assert!(map.len() <= CAPACITY, "{map:?}");
                let _ = map.pin().iter_at(tick(0)).count();
            }
        });
        let there = map.pin().iter_at(tick(0)).count();
        assert_eq!(map.len(), there, "each room has its key: {map:?}");
        assert!(there <= CAPACITY);
        let idle_at_last = tick(1_000_000);
        map.retain_at(idle_at_last, |tracked| !tracked.is_idle());
        assert_eq!(map.len(), 0, "{map:?}");
    }
}

/// All threads want the last room.
#[test]
fn one_gets_the_last_room() {
    for round in 0..200 {
        let (map, _) = map(1);
        let map = map.with_overflow(Overflow::Deny);
        let ready = Barrier::new(4);
        let granted = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|key| {
                    let (map, ready) = (&map, &ready);
                    scope.spawn(move || {
                        ready.wait();
                        u64::from(map.try_acquire_at(&key, tick(round)).is_ok())
                    })
                })
                .collect();
            let granted = threads
                .into_iter()
                .map(|thread| thread.join().expect("done"));
            granted.sum::<u64>()
        });
        assert_eq!((granted, map.len()), (1, 1), "{map:?}");
    }
}

#[test]
fn the_nearest_to_idle_goes() {
    let (map, _) = map(3);
    map.key(&1).at(tick(0)).charge(9);
    map.key(&2).at(tick(0)).charge(1);
    map.key(&3).at(tick(0)).charge(5);
    assert!(map.try_acquire_at(&4, tick(5)).is_ok());
    let mut keys: Vec<u64> = map.pin().iter_at(tick(5)).map(|at| *at.key()).collect();
    keys.sort_unstable();
    assert_eq!(keys, [1, 3, 4]);
    assert_eq!(map.stats().evicted, 1);
}

#[test]
fn what_is_idle_goes_before_anybody_is_evicted() {
    let (map, _) = map(8);
    for key in 0..7 {
        map.key(&key).at(tick(0)).charge(100);
    }
    map.key(&7).at(tick(0)).charge(1);
    assert!(map.try_acquire_at(&8, tick(10)).is_ok());
    let stats = map.stats();
    assert_eq!((stats.left, stats.evicted, stats.tracked), (1, 0, 8));
}

/// A verb that can't be refused is answered, and not recorded.
#[test]
fn what_can_t_be_refused_is_not_recorded() {
    let (map, _) = map(1);
    let map = map.with_overflow(Overflow::Deny);
    map.key(&1).charge(1);
    let charged = map.key(&2).charge(5);
    assert_eq!((charged.n(), charged.debt()), (0, 0));
    assert_eq!((map.key(&2).available(), map.len()), (2, 1));
    assert_eq!(map.stats().refused, 1);
}
