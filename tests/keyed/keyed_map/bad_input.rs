//! Invalid input is refused with the field's name, and impossible requests are refused as a limiter
//! refuses them.

use std::time::Duration;

use tollgate::clock::NoClock;
use tollgate::{AnyAlgorithm, ConfigError, Denied, KeyedMap, Limiter, Overflow, Tick};

use super::{bucket_of, map, of};
use crate::support::{self, NOW, algorithm, every, tick};

#[test]
fn impossible_capacities_are_errors() {
    let made = |capacity| KeyedMap::<u64, _, _>::with_clock(bucket_of(2), capacity, NoClock);
    let none = made(0).unwrap_err();
    assert_eq!(none, ConfigError::ZeroCapacity);
    assert_eq!(none.to_string(), "capacity is 0, but must be at least 1");
    for absurd in [usize::MAX, isize::MAX as usize, usize::MAX / 256 + 1] {
        let error = made(absurd).unwrap_err();
        assert_eq!(error.field(), "capacity");
        let ConfigError::CapacityTooLarge { capacity, max } = error else {
            panic!("{error:?}");
        };
        assert_eq!(capacity, absurd);
        assert!(made(max).is_ok(), "the allowed maximum is refused: {max}");
        assert!(error.to_string().contains(&max.to_string()), "{error}");
    }
    assert!(made(1).is_ok());
}

#[test]
fn requests_without_effect_insert_no_key() {
    let (map, _) = map(10);
    let key = map.key(&1);
    for n in [3, u64::MAX] {
        assert!(matches!(key.try_acquire_n(n), Err(Denied::Never { .. })));
    }
    assert!(key.try_acquire_n(0).is_ok());
    assert_eq!((key.available(), key.refund(u64::MAX)), (2, 0));
    assert_eq!(key.take_up_to(0).n(), 0);
    key.reset();
    assert!(key.is_idle() && map.is_empty(), "{map:?}");
    assert!(!map.remove(&1));
}

#[test]
fn ticks_at_both_ends_of_time_are_answered() {
    let (map, _) = map(4);
    let far = map.key(&1).at(Tick::MAX);
    let _ = far.try_acquire();
    let _ = far.charge(u64::MAX);
    // The request at the end of time has spoiled its own key's word, and no other.
    for key in 2..20 {
        let granted = map.try_acquire_n_at(&key, 2, tick(5)).expect("fresh");
        assert!(granted.at() < tick(1_000), "{granted:?}");
    }
    // A caller at the end of time finds all keys idle. The others then count at the ticks at which
    // they became idle, and not at the end of time.
    let _ = map.try_acquire_at(&30, Tick::MAX);
    assert!(map.stats().expired > 0, "{map:?}");
    let granted = map.try_acquire_n_at(&40, 2, tick(6)).expect("fresh");
    assert!(granted.at() < tick(1_000), "{granted:?}");
    assert!(map.len() <= 4);
}

/// At these ticks a limiter stands still: a fresh one has its initial permits, and none come later.
#[test]
fn a_limiter_stands_still_at_the_last_ticks() {
    let others = [
        "token-bucket 1/1ns",
        "intervals 1/1ns",
        "fixed-window 1/1us",
        "fixed-window 10/365d",
        "fixed-window 10/365d first-hit",
        "sliding-window 10/365d",
        "intervals 10/365d",
    ];
    let last = [0, 1, 2].map(|before| tick(u64::MAX - before));
    let pairs = last.iter().flat_map(|now| last.map(|then| (*now, then)));
    for (now, then) in pairs {
        for algorithm in every().into_iter().chain(others.map(algorithm)) {
            let limiter = Limiter::unstarted(algorithm, NoClock);
            let map: KeyedMap<u64, AnyAlgorithm, NoClock> = of(algorithm, 1);
            let table = support::table(algorithm);
            let (of_map, of_table) = (map.key(&1), table.key(&1));
            let has = limiter.at(now).available();
            let granted = [
                limiter.at(now).take_up_to(u64::MAX).n(),
                of_map.at(now).take_up_to(u64::MAX).n(),
                of_table.at(now).take_up_to(u64::MAX).n(),
            ];
            assert_eq!(granted, [has; 3], "{algorithm}");
            for denied in [
                limiter.at(then).try_acquire(),
                of_map.at(then).try_acquire(),
                of_table.at(then).try_acquire(),
            ] {
                let is_stuck = matches!(denied, Err(Denied::Stuck { .. }));
                assert!(is_stuck, "{denied:?} at {now:?}, {then:?}: {algorithm}");
            }
            assert_eq!(limiter.at(then).time_until(1), None, "{algorithm}");
        }
    }
}

/// Permits may come at the last tick but one, which is the latest horizon.
#[test]
fn the_last_tick_of_all_counts_as_the_one_before() {
    // Permits come at 2^64 - 2, and never again.
    let intervals = algorithm("intervals 10/28394589873902ns");
    let [last, before, edge] = [0, 1, 2].map(|before| tick(u64::MAX - before));
    let map: KeyedMap<u64, AnyAlgorithm, NoClock> = of(intervals, 1);
    assert!(map.try_acquire_n_at(&1, 10, edge).is_ok());
    let denied = map.try_acquire_at(&1, edge).unwrap_err();
    assert_eq!(denied.retry_after(), Some(Duration::from_nanos(1)));
    assert!(map.try_acquire_n_at(&1, 10, before).is_ok());
    for now in [edge, before, last] {
        let denied = map.try_acquire_at(&1, now);
        assert!(matches!(denied, Err(Denied::Stuck { .. })), "{denied:?}");
    }
}

#[test]
fn a_map_of_one_key_has_room_for_one() {
    for (overflow, right) in [
        (Overflow::Evict, (9, 0)),
        (Overflow::Deny, (0, 9)),
        (Overflow::Admit, (0, 9)),
    ] {
        let map = map(1).0.with_overflow(overflow);
        for key in 0..10 {
            let granted = map.try_acquire_n(&key, 2);
            let no_room = matches!(granted, Err(Denied::NoRoom { requested: 2, .. }));
            assert_eq!(no_room, key > 0 && overflow == Overflow::Deny);
            assert_eq!(map.len(), 1);
        }
        let stats = map.stats();
        assert_eq!((stats.evicted, stats.no_room), right);
        // Verbs that can't be refused are answered, and recorded if there is room.
        let charged = map.key(&2).charge(5);
        let right = if overflow == Overflow::Deny {
            (0, 0)
        } else {
            (5, 3)
        };
        assert_eq!((charged.n(), charged.debt()), right, "{overflow:?}");
        assert_eq!((map.key(&20).available(), map.len()), (2, 1));
        let right = match overflow {
            Overflow::Evict => (0, 0),
            Overflow::Deny => (2, 10),
            Overflow::Admit => (2, 10),
        };
        let is = (map.key(&2).available(), map.stats().no_room);
        assert_eq!(is, right, "{overflow:?}");
    }
}

/// A key with any charge, even at the end of time, stays in the map and in debt.
#[test]
fn a_key_with_the_largest_debt_stays_in_the_map() {
    // With an interval of a nanosecond, the largest word can be reached.
    let exact = [
        "token-bucket 1/ns burst 3",
        "gcra 1/ns burst 3",
        "leaky-meter 1/ns burst 3",
    ];
    for algorithm in every().into_iter().chain(exact.map(algorithm)) {
        let map: KeyedMap<u64, AnyAlgorithm, NoClock> = of(algorithm, 10);
        for nanos in [0, NOW, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            let key = map.key(&7).at(tick(nanos));
            for n in [u64::MAX, 1, u64::MAX / 3, 1, 1, u64::MAX] {
                let owes = key.charge(n).debt();
                // The largest word but two stands for larger ones.
                let still = key.charge(0).debt();
                assert!(
                    still == owes || still == owes - 1,
                    "{still} of {owes}, {algorithm}"
                );
                assert_eq!((key.available(), map.len()), (0, 1), "{algorithm}");
                assert!(map.pin().iter_at(tick(nanos)).next().is_some());
            }
            assert!(map.set_algorithm_at(&7, algorithm, tick(nanos)).is_ok());
            assert!(map.unset_algorithm_at(&7, tick(nanos)));
            assert_eq!((key.available(), map.len()), (0, 1), "{algorithm}");
        }
    }
}
