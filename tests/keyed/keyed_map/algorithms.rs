//! Keys with their own algorithms: permits are carried over, the keys stay, and no permits are
//! gained under threads.

use tollgate::clock::NoClock;
use tollgate::{AnyAlgorithm, Denied, KeyedMap, Overflow, TokenBucket};

use super::{bucket_of, map, of};
use crate::support::{algorithm, deadline, often, on_threads, tick};

#[test]
fn permits_are_carried_over_to_a_new_algorithm() {
    let (map, _) = map(10);
    let key = map.key(&1);
    key.at(tick(0)).charge(5);
    assert!(map.set_algorithm_at(&1, bucket_of(10), tick(0)).is_ok());
    assert_eq!(key.at(tick(0)).charge(0).debt(), 3);
    assert_eq!(key.at(tick(100)).available(), 7);
    let afresh = map.set_algorithm_afresh_at(&1, bucket_of(4), tick(100));
    assert!(afresh.is_ok());
    assert_eq!(key.at(tick(100)).available(), 4);
    assert_eq!(map.key(&2).at(tick(100)).available(), 2);
    assert_eq!(map.len(), 1);
}

/// An absent key has the permits of a fresh one, and continues with those.
#[test]
fn an_absent_key_is_treated_as_a_fresh_one() {
    for (burst, then) in [(10, 2), (2, 2), (1, 1)] {
        let (map, _) = map(10);
        let key = map.key(&1);
        assert_eq!((key.at(tick(0)).available(), map.len()), (2, 0));
        assert!(map.set_algorithm_at(&1, bucket_of(burst), tick(0)).is_ok());
        assert_eq!((key.at(tick(0)).available(), map.len()), (then, 1));
        // The key has its own algorithm from then on.
        assert_eq!(key.at(tick(1_000)).available(), burst);
        let (_, one_more) = (key.at(tick(0)).take_up_to(99), tick(10));
        assert_eq!(key.at(one_more).available(), 1);
    }
}

/// A key that starts fresh has all initial permits of its new algorithm, present or not.
#[test]
fn a_key_that_starts_fresh_has_the_full_initial_permits() {
    for is_there in [true, false] {
        let (map, _) = map(10);
        if is_there {
            assert!(map.try_acquire_at(&1, tick(0)).is_ok());
        }
        let afresh = map.set_algorithm_afresh_at(&1, bucket_of(10), tick(0));
        assert!(afresh.is_ok());
        assert_eq!(map.key(&1).at(tick(0)).available(), 10);
    }
}

/// An idle key may or may not have been removed, depending on other keys. It has the same permits
/// in both cases.
#[test]
fn an_idle_key_answers_the_same_whether_or_not_it_was_removed() {
    let texts = [
        "token-bucket 1/10ns burst 2",
        "token-bucket 97/us burst 9",
        "gcra 1/10ns tolerance 25ns",
        "leaky-meter 3/10ns burst 5",
        "leaky-queue 3/10ns burst 5 free 2",
        "fixed-window 3/40ns",
        "sliding-window 5/40ns",
    ];
    for (old, new) in texts.iter().flat_map(|old| texts.map(|new| (*old, new))) {
        let has = |has_left: bool| {
            let map: KeyedMap<u64, AnyAlgorithm, NoClock> = of(algorithm(old), 5);
            assert!(map.try_acquire_at(&1, tick(400)).is_ok());
            if has_left {
                assert_eq!(map.purge_idle_at(tick(4_000), 1), 1);
            }
            let set = map.set_algorithm_at(&1, algorithm(new), tick(4_000));
            assert!(set.is_ok());
            [4_000, 4_007, 4_020, 4_040, 5_000].map(|at| map.key(&1).at(tick(at)).available())
        };
        assert_eq!(has(true), has(false), "{old}, then {new}");
    }
}

#[test]
fn any_algorithm_can_become_any_other() {
    let map: KeyedMap<String, AnyAlgorithm, NoClock> = of(algorithm("token-bucket 10/s"), 5);
    assert!(map.try_acquire_n_at("alice", 7, tick(0)).is_ok());
    let window = algorithm("sliding-window 100/min");
    assert!(map.set_algorithm_at("alice", window, tick(0)).is_ok());
    let pinned = map.pin();
    let tracked = pinned.iter_at(tick(0)).next().expect("alice");
    assert_eq!((tracked.algorithm(), tracked.available()), (&window, 3));
    assert!(tracked.has_its_own());
}

#[test]
fn keys_with_their_own_algorithms_stay_even_when_idle() {
    let (map, _) = map(2);
    assert!(map.set_algorithm_at(&1, bucket_of(9), tick(0)).is_ok());
    assert!(map.set_algorithm_at(&2, bucket_of(8), tick(0)).is_ok());
    assert_eq!(map.purge_idle_at(tick(1_000), 10), 0);
    let denied = map.try_acquire_at(&3, tick(1_000)).map(|_| ());
    let third = map.set_algorithm_at(&3, bucket_of(7), tick(0));
    for no_room in [denied, third] {
        assert!(matches!(no_room, Err(Denied::NoRoom { .. })));
    }
    assert_eq!(map.stats().no_room, 2);
    assert_eq!(map.key(&1).at(tick(1_000)).available(), 9);
    // Until they are removed. Then they are like all others.
    assert!(map.remove(&1));
    let removed = map.retain_at(tick(1_000), |tracked| !tracked.has_its_own());
    assert_eq!(removed, 1);
    assert!(map.try_acquire_at(&3, tick(1_000)).is_ok());
    assert_eq!(map.key(&1).at(tick(1_000)).available(), 2);
}

/// A thread changes the algorithm repeatedly while others take permits and look for idle keys. At
/// one tick exactly the initial permits are granted.
#[test]
fn threads_gain_no_permits_while_the_algorithm_changes() {
    const PERMITS: u64 = often(5_000);
    deadline("threads that change an algorithm", || {
        let map: KeyedMap<u64, TokenBucket, NoClock> = of(bucket_of(PERMITS), 2);
        let map = map.with_overflow(Overflow::Deny);
        let taken = on_threads(4, |id| {
            let takes = |_: &u64| id > 0 && map.try_acquire_at(&1, tick(5)).is_ok();
            for more in (0..often(500)).take_while(|_| id == 0) {
                let other = bucket_of(PERMITS + more);
                assert!(map.set_algorithm_at(&1, other, tick(5)).is_ok());
                map.purge_idle_at(tick(5), 2);
                let _ = map.try_acquire_at(&(2 + more), tick(5));
            }
            (0..PERMITS).filter(takes).count() as u64
        });
        let left = map.key(&1).at(tick(5)).available();
        assert_eq!(taken.iter().sum::<u64>() + left, PERMITS);
    });
}

/// The key continues under the map's algorithm with what it had, and leaves when it is idle by
/// that.
#[test]
fn a_key_without_its_own_algorithm_leaves_when_idle() {
    let (map, _) = map(10);
    assert!(!map.unset_algorithm_at(&1, tick(0)), "it is not there");
    let own = map.set_algorithm_afresh_at(&1, bucket_of(100), tick(0));
    assert!(own.is_ok());
    assert!(map.try_acquire_n_at(&1, 99, tick(0)).is_ok());
    assert_eq!(map.purge_idle_at(tick(1_000_000), 100), 0);
    assert!(map.unset_algorithm_at(&1, tick(0)));
    assert!(!map.unset_algorithm_at(&1, tick(0)));
    assert_eq!(map.key(&1).at(tick(0)).available(), 1);
    assert_eq!(map.purge_idle_at(tick(0), 100), 0);
    assert_eq!(map.purge_idle_at(tick(1_000_000), 100), 1);
    assert!(map.is_empty());
}
