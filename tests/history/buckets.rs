//! The buckets that are filled steadily.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::history::{Bound, Bounded};
use tollgate::primitive::{AtomicU64, Ordering};
use tollgate::{Clock, Gcra, Limiter, ManualClock, Quota, Tick, TokenBucket};

use crate::work::{EVERYTHING, TAKING, kept, record};

/// Rates at which a few nanoseconds matter: whole intervals, thirds, a prime, and a large burst.
fn quotas() -> [Quota; 4] {
    [
        Quota::per(1, Duration::from_nanos(10)).burst(7),
        Quota::per(3, Duration::from_nanos(40)).burst(20),
        Quota::per(104_729, Duration::from_micros(900)).burst(50),
        Quota::per(1, Duration::from_nanos(3)).burst(10_000),
    ]
}

#[test]
fn two_to_eight_threads_take_what_was_promised() {
    let mut operations = 0;
    for quota in quotas() {
        let bound = Bound::of_quota(quota).expect("a quota");
        for threads in [2, 3, 4, 8] {
            let bucket = TokenBucket::new(quota).expect("a quota");
            let summary = kept(&record(bucket, threads, 60_000, TAKING), &bound);
            assert!(summary.granted > u128::from(quota.burst_size()));
            operations += threads * 60_000;
        }
    }
    assert!(operations > 4_000_000, "{operations}");
}

#[test]
fn giving_back_and_charging_and_resetting_keep_the_promise() {
    for quota in quotas() {
        let bound = Bound::of_quota(quota).expect("a quota");
        let bucket = TokenBucket::new(quota).expect("a quota");
        let summary = kept(&record(bucket, 4, 60_000, EVERYTHING), &bound);
        assert!(summary.granted > 1000, "{summary:?}");
        assert!(summary.gave_back > 100, "{summary:?}");
        assert!(summary.charged > 100, "{summary:?}");
        assert!(summary.resets > 0, "{summary:?}");
    }
}

#[test]
fn a_tolerance_that_is_no_multiple_of_the_interval_is_kept() {
    let (interval, tolerance) = (Duration::from_nanos(70), Duration::from_nanos(333));
    let gcra = Gcra::from_interval(interval, tolerance).expect("it fits");
    let bound = Bound::of_interval(interval, tolerance).expect("it fits");
    assert_eq!(bound.allows(Duration::ZERO), 5);
    assert_eq!(gcra.bound(), bound);
    for threads in [2, 8] {
        kept(&record(gcra, threads, 60_000, TAKING), &bound);
    }
}

#[test]
fn threads_at_one_standing_tick_get_exactly_the_burst() {
    for burst in [1, 2, 63, 1000] {
        let quota = Quota::per_second(1).burst(burst);
        let gate = Limiter::with_clock(
            TokenBucket::new(quota).expect("a quota"),
            ManualClock::new(),
        );
        let granted = AtomicU64::new(0);
        let start = Barrier::new(8);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    let mine = (0..500).filter(|_| gate.try_acquire().is_ok()).count();
                    // ORDERING: Relaxed. The scope joins before it is read.
                    granted.fetch_add(mine as u64, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(granted.into_inner(), burst);
    }
}

#[test]
fn clocks_of_a_history_are_the_limiters_own() {
    // A caller from the past is counted at its own tick and answered conservatively.
    let quota = Quota::per(1, Duration::from_nanos(10)).burst(5);
    let gate = Limiter::with_clock(
        TokenBucket::new(quota).expect("a quota"),
        ManualClock::at(Tick::from_nanos(1000)),
    );
    assert_eq!(gate.clock().now(), Tick::from_nanos(1000));
    let granted = gate.try_acquire_n(3).expect("it is full");
    assert_eq!(granted.at(), Tick::from_nanos(1000));
    assert!(gate.try_acquire_at(Tick::from_nanos(900)).is_err());
    let granted = gate
        .try_acquire_at(Tick::from_nanos(990))
        .expect("one is left");
    assert_eq!(granted.at(), Tick::from_nanos(990));
}
