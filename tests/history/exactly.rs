//! Where enough ask, exactly what was promised is granted: no less.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::history::{Bound, History, Log};
use tollgate::{
    Algorithm, FixedWindow, Granted, Intervals, LeakyBucket, Limiter, ManualClock, Quota, Tick,
};

use crate::work::Random;

const PERIOD: u64 = 8192;
const N: u64 = 300;
const THREADS: u64 = 4;
/// By how much a thread's tick may differ from the clock.
const SKEW: u64 = 600;
/// In the middle of a window, so that no thread's tick is in another one.
const START: u64 = 122 * PERIOD + PERIOD / 2;

/// In a window there are 2300 requests or more, whichever thread stands still: each moves the clock by
/// at most 3 ns, and all who read it later than `SKEW` after the window's beginning, and earlier than
/// `SKEW` before its end, ask in it.
fn greedily<A: Algorithm + Send + Sync>(gate: &Limiter<A, ManualClock>) -> Vec<Granted> {
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|id| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    let mut random = Random(id);
                    let turns = (0..40_000).map(|_| {
                        let now = gate.clock().advance(Duration::from_nanos(random.below(4)));
                        let now = now.as_nanos() + random.below(2 * SKEW + 1) - SKEW;
                        gate.at(Tick::from_nanos(now))
                            .take_up_to(random.below(3) + 1)
                    });
                    turns.filter(|granted| granted.n() > 0).collect::<Vec<_>>()
                })
            })
            .collect();
        let grants = threads.into_iter().map(|thread| thread.join());
        grants
            .flat_map(|grants| grants.expect("a thread panicked"))
            .collect()
    })
}

fn gate<A: Algorithm>(algorithm: A) -> Limiter<A, ManualClock> {
    gate_at(START, algorithm)
}

fn gate_at<A: Algorithm>(start: u64, algorithm: A) -> Limiter<A, ManualClock> {
    Limiter::with_clock(algorithm, ManualClock::at(Tick::from_nanos(start)))
}

fn quota() -> Quota {
    Quota::per(N, Duration::from_nanos(PERIOD))
}

/// How many were granted in each window.
fn by_window(grants: &[Granted], window: impl Fn(&Granted) -> u64) -> Vec<(u64, u64)> {
    let mut counts = BTreeMap::new();
    for granted in grants {
        *counts.entry(window(granted)).or_insert(0) += granted.n();
    }
    counts.into_iter().collect()
}

#[test]
fn exactly_n_in_each_window() {
    for offset in [0, 1, 4000] {
        let windows = FixedWindow::new(quota()).expect("a quota");
        let windows = windows.offset(Duration::from_nanos(offset));
        let grants = greedily(&gate_at(START + offset, windows));
        let counts = by_window(&grants, |granted| {
            (granted.at().as_nanos() + PERIOD - offset) / PERIOD
        });
        // The last one is not over.
        let over = &counts[..counts.len() - 1];
        assert!(over.len() > 25, "{counts:?}");
        for (pair, (window, n)) in over.iter().enumerate() {
            assert_eq!((*window, *n), (over[0].0 + pair as u64, N), "{counts:?}");
        }
    }
}

#[test]
fn exactly_n_in_each_window_that_is_opened_by_a_hit() {
    let windows = FixedWindow::new(quota()).expect("a quota");
    let grants = greedily(&gate(windows.opened_by_first_hit().expect("it fits")));
    // A grant tells its window by when that ends.
    let counts = by_window(&grants, |granted| {
        granted
            .at()
            .saturating_add(granted.reset_after())
            .as_nanos()
    });
    let over = &counts[..counts.len() - 1];
    assert!(over.len() > 20, "{counts:?}");
    assert!(over.iter().all(|(_, n)| *n == N), "{counts:?}");
    assert!(over.windows(2).all(|pair| pair[1].0 - pair[0].0 >= PERIOD));
}

#[test]
fn exactly_a_burst_and_all_refills() {
    let quota = quota().burst(2 * N + 1);
    let gate = gate(Intervals::new(quota).expect("a quota"));
    let granted = greedily(&gate).iter().map(Granted::n).sum::<u64>();
    let end = gate.now().saturating_add(Duration::from_nanos(SKEW));
    let rest = gate.at(end).take_up_to(u64::MAX).n();
    let refills = end.as_nanos() / PERIOD - START / PERIOD;
    assert_eq!(granted + rest, 2 * N + 1 + refills * N);
}

/// The permits of a queue, at the ticks at which they leave if all wait as they are told.
fn departures(queue: LeakyBucket) -> History {
    let mut log = Log::new();
    for granted in greedily(&gate(queue)) {
        log.grant(granted.at().saturating_add(granted.delay()), granted.n());
    }
    [log].into_iter().collect()
}

#[test]
fn a_queue_leaves_at_its_rate() {
    let quota = Quota::per(1, Duration::from_nanos(10)).burst(500);
    for (free, at_once) in [(0, 3), (2, 3), (7, 8)] {
        let queue = LeakyBucket::queue(quota).expect("a quota").free(free);
        let all = departures(queue);
        // Up to three are asked for at once, and leave with the last of them.
        let bound = Bound::of_quota(quota.burst(at_once)).expect("a quota");
        assert!(all.check(&bound).expect("the rate").granted > 5000);
        let bound = Bound::of_quota(quota.burst(2)).expect("a quota");
        assert!(all.check(&bound).is_err());
    }
}

/// Where the rate is no whole number of nanoseconds a permit, they leave at the next nanosecond, so
/// that an interval can hold what the rate makes in one nanosecond more: less than a permit.
#[test]
fn a_queue_leaves_at_its_rate_but_for_a_nanosecond() {
    let quota = Quota::per(3, Duration::from_nanos(40)).burst(500);
    let all = departures(LeakyBucket::queue(quota).expect("a quota"));
    assert!(
        all.check(&Bound::of_quota(quota.burst(4)).expect("a quota"))
            .is_ok()
    );
    assert!(
        all.check(&Bound::of_quota(quota.burst(2)).expect("a quota"))
            .is_err()
    );
}
