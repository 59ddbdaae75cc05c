//! Idle keys leave: a few with each new key, and when the map is purged. A late caller gets no
//! second burst.

use std::time::Duration;

use tollgate::adjustable::Keep;
use tollgate::clock::NoClock;
use tollgate::{Denied, KeyedMap, ManualClock, Quota, TokenBucket};

use super::{map, of};
use crate::support::{often, queue, tick};

/// As new keys come, idle ones do not accumulate. A busy key is examined again and again, and
/// stays.
#[test]
fn a_map_that_gets_new_keys_sheds_idle_ones() {
    let (map, clock) = map(1_000_000);
    map.key(&u64::MAX).charge(1_000_000);
    let (keys, mut most) = (often(10_000), 0);
    for key in 0..keys {
        clock.advance(Duration::from_nanos(1));
        assert!(map.try_acquire(&key).is_ok());
        most = most.max(map.len());
    }
    // A key is idle after 10 ns, and in that time one more key comes.
    assert!(most < 40, "{most}");
    let stats = map.stats();
    assert_eq!(stats.expired + stats.tracked, keys + 1);
    assert_eq!(stats.evicted + stats.removed + stats.no_room, 0);
    assert!(!map.key(&u64::MAX).is_idle() && map.key(&u64::MAX).available() == 0);
}

#[test]
fn purging_takes_the_given_number_of_steps() {
    let (map, clock) = map(100);
    for key in 0..50 {
        map.key(&key).charge(1 + key % 2);
    }
    assert_eq!(map.purge_idle(1_000), 0);
    clock.advance(Duration::from_nanos(10));
    let first = map.purge_idle(20);
    assert!((1..=20).contains(&first), "{first}");
    assert_eq!(map.purge_idle(100) + first, 25);
    clock.advance(Duration::from_nanos(10));
    assert_eq!((map.purge_idle(100), map.len()), (25, 0));
}

/// Two permits are taken at 100, and the key leaves at 120. A caller that then comes with an older
/// tick counts at 120: at 110 only one permit was available.
#[test]
fn a_late_tick_gets_no_second_burst() {
    let (map, _) = map(10);
    assert!(map.try_acquire_n_at(&1, 2, tick(100)).is_ok());
    assert_eq!(map.purge_idle_at(tick(500), 10), 1);
    let granted = map.try_acquire_n_at(&1, 2, tick(110)).expect("fresh");
    let idle_since = tick(120);
    assert_eq!(granted.at(), idle_since, "and not when it was found");
    // From the caller's tick the next permit is due in 20 ns, not in 10.
    let Err(Denied::Later { retry_after, .. }) = map.try_acquire_at(&1, tick(110)) else {
        panic!("denied");
    };
    assert_eq!(retry_after, Duration::from_nanos(20));
    assert_eq!(map.key(&1).at(tick(110)).time_until(1), Some(retry_after));
    assert!(map.try_acquire_at(&1, tick(129)).is_err());
    assert!(map.try_acquire_at(&1, tick(130)).is_ok());
}

/// The key takes two permits at 100 and is idle again when the quota is set at 200. Its new word
/// says nothing about earlier ticks, so the key does not leave at one.
#[test]
fn a_migrated_key_does_not_leave_at_an_earlier_tick() {
    let quota = Quota::per(1, Duration::from_nanos(20)).burst(2);
    for keep in [Keep::AsIs, Keep::Scaled] {
        let (map, _) = map(10);
        assert!(map.try_acquire_n_at(&1, 2, tick(100)).is_ok());
        assert_eq!(map.set_quota_at(quota, keep, tick(200)), Ok(()));
        assert_eq!(map.purge_idle_at(tick(100), 10), 0, "{keep:?}");
        let granted = map.try_acquire_n_at(&1, 1, tick(100)).expect("full");
        assert_eq!(granted.at(), tick(200), "{keep:?}");
        assert_eq!(map.key(&1).at(tick(200)).undo(granted), 1);
        assert_eq!(map.purge_idle_at(tick(200), 10), 1, "{keep:?}");
        let granted = map.try_acquire_n_at(&1, 2, tick(100)).expect("fresh");
        assert_eq!(granted.at(), tick(200), "{keep:?}");
    }
}

/// The same for a key that was never present: the tick of the last idle eviction counts for all
/// keys.
#[test]
fn a_new_key_counts_from_the_tick_of_the_last_idle_eviction() {
    let (map, _) = map(10);
    assert!(map.try_acquire_at(&1, tick(100)).is_ok());
    assert_eq!(map.purge_idle_at(tick(100), 1), 0);
    assert_eq!(map.purge_idle_at(tick(110), 1), 1);
    let granted = map.try_acquire_at(&2, tick(7)).expect("fresh");
    assert_eq!(granted.at(), tick(110));
    assert_eq!(map.key(&3).at(tick(7)).available(), 2);
}

/// A key whose initial permits are below its burst starts at its first request, and fills from then
/// on, even if all requests are denied.
#[test]
fn a_key_with_a_partial_start_begins_to_fill_at_its_first_request() {
    let quota = Quota::per(1, Duration::from_nanos(10)).burst(3).initial(0);
    let bucket = TokenBucket::new(quota).expect("a quota");
    let map: KeyedMap<u64, TokenBucket, NoClock> = of(bucket, 10);
    let at = |nanos| map.key(&1).at(tick(nanos));
    // A query inserts no key.
    assert_eq!((at(50).available(), map.len()), (0, 0));
    assert!(at(100).try_acquire().is_err());
    assert_eq!(map.len(), 1);
    assert!(at(109).try_acquire().is_err());
    assert_eq!(at(120).available(), 2);
    let granted = at(120).try_acquire_n(2).expect("there");
    assert_eq!(at(120).undo(granted), 2);
    at(120).reset();
    assert_eq!(at(120).available(), 3, "a reset fills it");
    assert!(at(120).try_acquire_n(3).is_ok());
    // Idle from 150 on.
    assert_eq!(map.purge_idle_at(tick(149), 5), 0);
    assert_eq!(map.purge_idle_at(tick(160), 5), 1);
    assert_eq!(at(155).available(), 0, "it starts fresh");
}

/// A caller whose tick is older than the key's counts at the key's. That does not shorten its
/// timeout for good: it is told when to retry.
#[test]
fn a_late_caller_keeps_its_full_timeout() {
    let map: KeyedMap<u64, _, _> = of(queue("leaky-queue 10/s burst 5"), 10);
    assert!(map.key(&1).at(tick(100_000_000_000)).try_acquire().is_ok());
    let (late, patience) = (tick(90_000_000_000), Duration::from_secs(5));
    let key = map.key(&1);
    let denied = key.reserve_within_at(3, patience, late).unwrap_err();
    let wait = denied.retry_after().expect("it will be there");
    let reserved = key.reserve_within_at(3, patience, late.saturating_add(wait));
    assert_eq!(reserved.map(|reserved| reserved.n()), Ok(3));
}

/// As in a table, a key whose initial permits are below its burst starts at the first request for
/// permits, by any verb. A reset does not make an absent key full.
#[test]
fn every_request_for_permits_starts_a_key_and_a_reset_does_not() {
    let requests: [fn(&super::Map); 3] = [
        |map| assert!(map.try_acquire(&7).is_err()),
        |map| assert_eq!(map.key(&7).take_up_to(1).n(), 0),
        |map| assert!(map.key(&7).reserve_within(1, Duration::ZERO).is_err()),
    ];
    let quota = Quota::per(1, Duration::from_nanos(10)).burst(5).initial(0);
    let bucket = TokenBucket::new(quota).expect("a quota");
    for request in requests {
        let clock = ManualClock::new();
        let map = KeyedMap::with_clock(bucket, 10, clock.clone()).expect("a map");
        map.key(&7).reset();
        assert!(map.is_empty());
        clock.advance(Duration::from_nanos(1_000));
        request(&map);
        clock.advance(Duration::from_nanos(20));
        assert_eq!((map.key(&7).available(), map.len()), (2, 1));
    }
}
