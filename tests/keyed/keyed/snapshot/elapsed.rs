//! The time between two processes.

use super::{SECOND, next_table, restarted, table, ticks, written};
use crate::support::*;

/// A restart in the same process, by the time of day, which advances or stays. A time of day that
/// went back or was unknown counts as no pause. The fifth number is the time of writing.
#[test]
fn the_time_of_day_measures_the_pause() {
    let limiter = table(bucket("1/365d burst 100"), ticks(5.0));
    let _ = limiter.try_acquire_n("alice", 100).expect("fresh");
    let restored = |bytes: &[u8]| {
        let mut next = next_table(bucket("1/365d burst 100"), ticks(0.0));
        let restored = next.restore(&mut &*bytes).expect("whole");
        (restored, next.key("alice").available())
    };
    let bytes = written(&limiter);
    let (now, left) = restored(&bytes);
    assert_eq!((now.keys, left), (1, 0));
    assert!(now.elapsed < 86_400 * SECOND, "{now:?}");
    let (back, left) = restored(&forged::with_number(&bytes, 4 * 8, u64::MAX));
    assert_eq!((back.elapsed, left), (Duration::ZERO, 0));
    let (unknown, left) = restored(&forged::with_number(&bytes, 4 * 8, 0));
    assert_eq!((unknown.elapsed, left), (Duration::ZERO, 0));
    let (since_1970, left) = restored(&forged::with_number(&bytes, 4 * 8, 1));
    assert!(since_1970.elapsed > 50 * 365 * 86_400 * SECOND && left > 50);
}

#[test]
fn idle_keys_are_not_written() {
    let limiter = table(bucket("10/s"), ticks(1.0)).with_overrides(1);
    let limiter = limiter.expect("one plan");
    assert_eq!(limiter.key("bob").set_override(bucket("20/s")), Ok(()));
    assert!(limiter.try_acquire("alice").is_ok() && limiter.try_acquire("bob").is_ok());
    let written = || limiter.snapshot(&mut Vec::new()).expect("nothing fails");
    assert_eq!(written(), 2);
    limiter.clock().advance(SECOND);
    assert_eq!((limiter.len(), written()), (2, 0));
}

#[test]
fn a_late_caller_counts_at_the_tick_of_the_restart() {
    let limiter = table(bucket("10/s"), ticks(9.0));
    let _ = limiter.try_acquire_n("alice", 10).expect("fresh");
    // The key is idle by then, and so is not restored.
    let next = restarted(&limiter, bucket("10/s"), ticks(1.0), SECOND);
    assert!(next.is_empty());
    let late = |table: &Keyed<TokenBucket, ManualClock>| {
        let granted = table.key("alice").at(ticks(0.0)).try_acquire_n(10);
        granted.expect("fresh").at()
    };
    assert_eq!(late(&next), ticks(1.0));
    // Idle keys may have left until second 9. The restart is at second 6.
    let old = restarted(&limiter, bucket("10/s"), ticks(9.0), SECOND);
    let mut bytes = Vec::new();
    assert!(old.snapshot_at(&mut bytes, ticks(5.0)).is_ok());
    let mut next = next_table(bucket("10/s"), ticks(1.0));
    assert!(next.restore_after(&mut bytes.as_slice(), SECOND).is_ok());
    assert_eq!(late(&next), ticks(4.0));
}
