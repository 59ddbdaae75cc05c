//! Keys with algorithms of their own: what there was is carried over; they stay; and whatever threads do meanwhile, no
//! permit comes from nowhere.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::{AnyAlgorithm, Denied, KeyedMap, NoClock, Overflow, Quota, TokenBucket};

use crate::{map, tick};

fn of(n: u64, burst: u64) -> TokenBucket {
    TokenBucket::new(Quota::per(n, Duration::from_nanos(10)).burst(burst)).expect("a quota")
}

#[test]
fn what_was_there_is_carried_over() {
    let (map, _) = map(10);
    let key = map.key(&1);
    key.at(tick(0)).charge(5);
    map.set_algorithm_at(&1, of(1, 10), tick(0)).expect("room");
    assert_eq!(key.at(tick(0)).charge(0).debt(), 3);
    assert_eq!(key.at(tick(100)).available(), 7);
    map.set_algorithm_afresh_at(&1, of(1, 4), tick(100))
        .expect("room");
    assert_eq!(key.at(tick(100)).available(), 4);
    assert_eq!(map.key(&2).at(tick(100)).available(), 2);
    assert_eq!(map.len(), 1);
}

#[test]
fn any_algorithm_becomes_another() {
    let bucket: AnyAlgorithm = "token-bucket 10/s".parse().expect("an algorithm");
    let map = KeyedMap::<String, _, _>::with_clock(bucket, 5, NoClock).expect("a map");
    assert!(map.try_acquire_n_at("alice", 7, tick(0)).is_ok());
    let window = "sliding-window 100/min".parse().expect("an algorithm");
    map.set_algorithm_at("alice", window, tick(0))
        .expect("room");
    let pinned = map.pin();
    let tracked = pinned.iter_at(tick(0)).next().expect("alice");
    assert_eq!((tracked.algorithm(), tracked.available()), (&window, 3));
    assert!(tracked.has_its_own());
}

#[test]
fn they_stay_idle_or_not() {
    let (map, _) = map(2);
    map.set_algorithm_at(&1, of(1, 9), tick(0)).expect("room");
    map.set_algorithm_at(&2, of(1, 8), tick(0)).expect("room");
    assert_eq!(map.purge_idle_at(tick(1_000), 10), 0);
    assert!(matches!(
        map.try_acquire_at(&3, tick(1_000)),
        Err(Denied::NoRoom { .. })
    ));
    let third = map.set_algorithm_at(&3, of(1, 7), tick(0));
    assert!(matches!(third, Err(Denied::NoRoom { .. })));
    assert_eq!(map.stats().refused, 2);
    assert_eq!(map.key(&1).at(tick(1_000)).available(), 9);
    // Until they are removed; then they are as all.
    assert!(map.remove(&1));
    assert_eq!(
        map.retain_at(tick(1_000), |tracked| !tracked.has_its_own()),
        1
    );
    assert!(map.try_acquire_at(&3, tick(1_000)).is_ok());
    assert_eq!(map.key(&1).at(tick(1_000)).available(), 2);
}

/// A thread changes the algorithm again and again while others take, and one looks for idle keys. At one tick there is
/// what there was.
#[test]
fn no_permit_comes_from_nowhere() {
    const PERMITS: u64 = 20_000;
    let large = || of(1, PERMITS);
    let map = KeyedMap::<u64, _, _>::with_clock(large(), 2, NoClock).expect("a map");
    let map = map.with_overflow(Overflow::Deny);
    // A fresh key would begin with all that its first algorithm has.
    assert!(map.try_acquire_at(&1, tick(5)).is_ok());
    let ready = Barrier::new(4);
    let taken: u64 = thread::scope(|scope| {
        let takes = || {
            ready.wait();
            let takes = (0..PERMITS).filter(|_| map.try_acquire_at(&1, tick(5)).is_ok());
            takes.count() as u64
        };
        let changes = || {
            ready.wait();
            for more in 0..3_000 {
                let other = of(1, PERMITS + more);
                map.set_algorithm_at(&1, other, tick(5)).expect("room");
                map.purge_idle_at(tick(5), 2);
                let _ = map.try_acquire_at(&(2 + more), tick(5));
            }
            0
        };
        let threads = [scope.spawn(takes), scope.spawn(takes), scope.spawn(takes)];
        let changer = scope.spawn(changes);
        let takers = threads
            .into_iter()
            .map(|thread| thread.join().expect("done"));
        takers.sum::<u64>() + changer.join().expect("done")
    });
    assert_eq!(1 + taken + map.key(&1).at(tick(5)).available(), PERMITS);
}

/// It goes on with what it had by that of all, and leaves when it is idle by it.
#[test]
fn an_algorithm_that_is_taken_away_keeps_nobody() {
    let (map, _) = map(10);
    assert!(!map.unset_algorithm_at(&1, tick(0)), "it is not there");
    map.set_algorithm_at(&1, of(1, 100), tick(0))
        .expect("there is room");
    assert!(map.try_acquire_n_at(&1, 99, tick(0)).is_ok());
    assert_eq!(map.purge_idle_at(tick(1_000_000), 100), 0);
    assert!(map.unset_algorithm_at(&1, tick(0)));
    assert!(!map.unset_algorithm_at(&1, tick(0)));
    assert_eq!(map.key(&1).at(tick(0)).available(), 1);
    assert_eq!(map.purge_idle_at(tick(0), 100), 0);
    assert_eq!(map.purge_idle_at(tick(1_000_000), 100), 1);
    assert!(map.is_empty());
}
