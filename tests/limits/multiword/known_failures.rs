//! Failures of the slots, logs and shards of other rate limiters, each as a regression test.

use std::collections::BTreeMap;

use tollgate::TryAcquire;

use crate::algorithm::known_failures::WINDOWS;
use crate::support::threads::on_threads;
use crate::support::*;

type AnyLimiter = Box<dyn TryAcquire<Clock = ManualClock> + Sync>;

/// Windows that slide: by a tenth of their length, and exactly.
fn sliding(quota: Quota) -> [AnyLimiter; 2] {
    let clock = ManualClock::new();
    let slots = SlottedWindow::with_clock(quota, 10, clock.clone()).expect("slots");
    let log = SlidingLog::with_clock(quota, clock).expect("a log");
    [Box::new(slots), Box::new(log)]
}

/// Returns how many of `tries` single permits are granted at this tick.
fn count(limiter: &AnyLimiter, tries: u64, now: Tick) -> u64 {
    let granted = (0..tries).filter(|_| limiter.try_acquire_n_at(1, now).is_ok());
    granted.count() as u64
}

/// Sentinel: a slot of the LeapArray is checked and added to separately, so threads together exceed
/// the limit. The first caller in a new window resets it, so counts of the old window were lost or
/// counted in the new one. Here every window of ten slots has its limit and no more, by the ticks
/// at which permits were counted, while threads with different clocks move from slot to slot.
#[test]
fn every_slotted_window_has_its_limit_while_threads_roll_over() {
    let slot = SECOND / 10;
    deadline("threads that roll over", move || {
        for round in 0..10 {
            let limiter = SlottedWindow::with_clock(Quota::per_second(100), 10, ManualClock::new());
            let limiter = limiter.expect("slots");
            let granted = on_threads(0..8, |id| {
                // A quarter of a slot apart, and half of them a slot behind.
                let lag = id % 4 * slot / 4 + id % 2 * slot;
                let times = (0..3000).map(|step| 2 * SECOND + step * slot / 100 + round - lag);
                let granted =
                    times.filter_map(|now| limiter.try_acquire_n_at(1 + id % 3, tick(now)).ok());
                granted.collect::<Vec<Granted>>()
            });
            let mut slots = BTreeMap::<u64, u64>::new();
            for granted in granted.into_iter().flatten() {
                *slots.entry(granted.at().as_nanos() / slot).or_default() += granted.n();
            }
            let ends = slots.first_key_value().zip(slots.last_key_value());
            let ((first, _), (last, _)) = ends.expect("some were granted");
            let sum = |window| {
                slots
                    .range(window..window + 10)
                    .map(|(_, n)| n)
                    .sum::<u64>()
            };
            for window in *first..=*last {
                let sum = sum(window);
                assert!(sum <= 100, "{sum} from slot {window} on: {slots:?}");
            }
            // No permit was lost either: what counts now was granted in the last window.
            assert_eq!(limiter.at(tick(last * slot)).level().ceil(), sum(last - 9));
        }
    });
}

/// ShenYu: the sliding log counts before it removes expired entries, so the first call after a gap
/// is refused. It also takes one permit for any request.
#[test]
fn after_a_gap_all_permits_are_available_and_each_one_counts() {
    let mut limiters = Vec::from(sliding(Quota::per_second(10)));
    for quota in WINDOWS {
        let window = algorithm(&quota.replace("QUOTA", "10/s"));
        limiters.push(Box::new(Limiter::with_clock(window, ManualClock::new())));
    }
    for limiter in limiters {
        for now in [0, 5, 3600].map(|second| second * SECOND) {
            assert!(limiter.try_acquire_n_at(7, tick(now)).is_ok());
            assert!(limiter.try_acquire_n_at(4, tick(now + 1)).is_err());
            assert!(limiter.try_acquire_n_at(3, tick(now + 2)).is_ok());
            assert!(limiter.try_acquire_n_at(1, tick(now + 3)).is_err());
        }
    }
}

/// limits: an entry exactly a window old counts for a hit but not for a test, so a caller that was
/// told that a permit is available is refused.
#[test]
fn available_permits_are_granted() {
    for limiter in sliding(Quota::per_second(3)) {
        assert!(limiter.try_acquire_n_at(3, tick(0)).is_ok());
        for later in [SECOND - 1, SECOND, 2 * SECOND - 1, 2 * SECOND] {
            let there = limiter.available_at(tick(later));
            assert!(limiter.try_acquire_n_at(there + 1, tick(later)).is_err());
            assert_eq!(there, if later % SECOND == 0 { 3 } else { 0 }, "{later}");
            let granted = limiter.try_acquire_n_at(there, tick(later));
            assert_eq!(granted.map(|granted| granted.n()), Ok(there));
        }
    }
}

/// pyrate-limiter: an interval of its log includes both ends, so a limit of one a second grants one
/// every 1001 milliseconds. A caller that waits 1000 as told is refused.
#[test]
fn one_a_second_grants_one_each_second() {
    for limiter in sliding(Quota::per_second(1)) {
        for now in (0..100).map(|second| second * SECOND) {
            assert!(limiter.try_acquire_n_at(1, tick(now)).is_ok());
            let denied = limiter
                .try_acquire_n_at(1, tick(now + 1))
                .expect_err("it was taken");
            let wait = Duration::from_nanos(SECOND - 1);
            assert_eq!(denied.retry_after(), Some(wait));
        }
    }
}

/// AspNetCoreRateLimit, rate-limiter-flexible and both windows of limits count refused requests, so
/// a caller that keeps asking is never admitted again.
#[test]
fn denied_requests_do_not_count() {
    let mut limiters = Vec::from(sliding(Quota::per_second(10)));
    for kind in WINDOWS
        .into_iter()
        .chain(["fixed-window QUOTA origin 700ms"])
    {
        let window = algorithm(&kind.replace("QUOTA", "10/s"));
        limiters.push(Box::new(Limiter::with_clock(window, ManualClock::new())));
    }
    let whole = limiters.len();
    for name in [
        "token-bucket",
        "gcra",
        "leaky-meter",
        "fixed-window",
        "sliding-window",
        "intervals",
    ] {
        let limiter =
            Sharded::with_shards(algorithm(&format!("{name} 10/s")), 3, ManualClock::new());
        limiters.push(Box::new(limiter.expect("it can be split")));
    }
    for (place, limiter) in limiters.iter().enumerate() {
        // A hundred requests a second, from callers that keep asking.
        let times = (0..20 * SECOND).step_by(10_000_000);
        let granted: u64 = times.map(|now| count(limiter, 1, tick(now))).sum();
        // Up to 21 windows. A sliding estimate settles at one permit less, in each shard.
        let least = if place < whole { 181 } else { 140 };
        assert!((least..=210).contains(&granted), "{place}: {granted}");
    }
}
