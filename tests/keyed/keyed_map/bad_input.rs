//! What can't be made is refused with the field's name, and what can't be granted is refused as a
//! limiter does.

use tollgate::{ConfigError, Denied, KeyedMap, NoClock, Overflow, Tick};

use super::{bucket_of, map};
use crate::support::tick;

#[test]
fn capacities_that_there_can_not_be_are_errors() {
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
        assert!(made(max).is_ok(), "what is allowed can be had: {max}");
        assert!(error.to_string().contains(&max.to_string()), "{error}");
    }
    assert!(made(1).is_ok());
}

#[test]
fn requests_that_come_to_nothing_bring_no_key_in() {
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
fn ticks_at_both_ends_of_time() {
    let (map, _) = map(4);
    let far = map.key(&1).at(Tick::MAX);
    let _ = far.try_acquire();
    let _ = far.charge(u64::MAX);
    // It has poisoned its own word, and no other.
    for key in 2..20 {
        let granted = map.try_acquire_n_at(&key, 2, tick(5)).expect("fresh");
        assert!(granted.at() < tick(1_000), "{granted:?}");
    }
    // A caller at the end of time finds all idle; the others then count at the ticks at which they
    // were, and not at the end of time.
    let _ = map.try_acquire_at(&30, Tick::MAX);
    assert!(map.stats().left > 0, "{map:?}");
    let granted = map.try_acquire_n_at(&40, 2, tick(6)).expect("fresh");
    assert!(granted.at() < tick(1_000), "{granted:?}");
    assert!(map.len() <= 4);
}

#[test]
fn a_map_of_one_key_has_room_for_one() {
    for (overflow, right) in [
        (Overflow::Evict, (9, 0, 0)),
        (Overflow::Deny, (0, 9, 0)),
        (Overflow::Admit, (0, 0, 9)),
    ] {
        let map = map(1).0.with_overflow(overflow);
        for key in 0..10 {
            let granted = map.try_acquire_n(&key, 2);
            let no_room = matches!(granted, Err(Denied::NoRoom { requested: 2, .. }));
            assert_eq!(no_room, key > 0 && overflow == Overflow::Deny);
            assert_eq!(map.len(), 1);
        }
        let stats = map.stats();
        assert_eq!((stats.evicted, stats.refused, stats.admitted), right);
        // What can't be refused is answered, and recorded where there is room.
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
            Overflow::Admit => (2, 0),
        };
        let is = (map.key(&2).available(), map.stats().refused);
        assert_eq!(is, right, "{overflow:?}");
    }
}
