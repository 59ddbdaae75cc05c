//! The leaky bucket, the windows, the intervals, and any of them: over a million operations on each.

use std::fmt::Debug;
use std::time::Duration;

use tollgate::history::{Bounded, Summary};
use tollgate::{
    AnyAlgorithm, Debt, FixedWindow, GiveBack, Intervals, LeakyBucket, Quota, Requota, Rounding,
    SlidingWindow,
};

use crate::work::{EVERYTHING, TAKING, kept, record};

const TURNS: u64 = 30_000;

/// Windows that are shorter than the threads' skew, longer, much longer; primes and powers of two;
/// and limits near to what the narrowest word can hold.
fn quotas() -> [Quota; 4] {
    [
        Quota::per(3, Duration::from_nanos(64)),
        Quota::per(40, Duration::from_nanos(1000)),
        Quota::per(100, Duration::from_nanos(4096)),
        Quota::per(1000, Duration::from_nanos(100_003)),
    ]
}

/// The same for buckets, with bursts that are no multiples.
fn bursts() -> [Quota; 4] {
    let [a, b, c, d] = quotas();
    [a, b.burst(57), c.burst(170), d.burst(1501)]
}

/// For each quota, how many threads only take, and how many do everything.
const THREADS: [(u64, u64); 4] = [(2, 3), (8, 4), (2, 4), (8, 3)];

/// What is made of each quota keeps its own promise.
fn keeps<A>(algorithms: [A; 4])
where
    A: Bounded + Requota + GiveBack + Debt + Copy + Debug + Send + Sync,
{
    let mut operations = 0;
    for (algorithm, (takers, others)) in algorithms.into_iter().zip(THREADS) {
        let (bound, quota) = (algorithm.bound(), algorithm.quota());
        let most = u128::from(quota.permits().max(quota.burst_size()));
        let summary = kept(&record(algorithm, takers, TURNS, TAKING), &bound);
        assert!(summary.granted > most, "{algorithm:?}: {summary:?}");
        let summary = kept(&record(algorithm, others, TURNS, EVERYTHING), &bound);
        let Summary { charged, .. } = summary;
        assert!(summary.granted > most, "{algorithm:?}: {summary:?}");
        assert!(summary.gave_back > 50 && charged > 1000, "{summary:?}");
        assert!(summary.resets > 0, "{algorithm:?}: {summary:?}");
        operations += (takers + others) * TURNS;
    }
    assert!(operations > 1_000_000, "{operations}");
}

#[test]
fn leaky_meter() {
    let make = |quota| LeakyBucket::meter(quota).expect("a quota");
    keeps(bursts().map(make));
}

#[test]
fn leaky_queue() {
    let make = |quota| LeakyBucket::queue(quota).expect("a quota").free(2);
    keeps(bursts().map(make));
}

#[test]
fn fixed_window() {
    let make = |quota| FixedWindow::new(quota).expect("a quota");
    keeps(quotas().map(make));
}

#[test]
fn fixed_window_elsewhere_on_the_clock() {
    let origin = Duration::from_nanos(1_700_000_000_000_000_017);
    let make = |quota| {
        let windows = FixedWindow::new(quota).expect("a quota");
        windows
            .aligned_to_unix(origin)
            .offset(Duration::from_nanos(29))
    };
    keeps(quotas().map(make));
}

#[test]
fn fixed_window_opened_by_the_first_hit() {
    let make = |quota| {
        let windows = FixedWindow::new(quota).expect("a quota");
        windows.opened_by_first_hit().expect("it fits")
    };
    keeps(quotas().map(make));
}

#[test]
fn sliding_window() {
    let make = |quota| SlidingWindow::new(quota).expect("a quota");
    keeps(quotas().map(make));
}

#[test]
fn sliding_window_rounded_down() {
    let make = |quota| {
        let windows = SlidingWindow::new(quota).expect("a quota");
        windows
            .rounding(Rounding::Down)
            .offset(Duration::from_nanos(31))
    };
    keeps(quotas().map(make));
}

#[test]
fn intervals() {
    let make = |quota| {
        let intervals = Intervals::new(quota).expect("a quota");
        intervals.offset(Duration::from_nanos(7))
    };
    keeps(bursts().map(make));
}

#[test]
fn intervals_greedy() {
    let make = |quota| {
        let intervals = Intervals::new(quota).expect("a quota");
        intervals.greedy().expect("it fits")
    };
    keeps(bursts().map(make));
}

#[test]
fn any_algorithm() {
    let [a, b, c, d] = quotas();
    keeps([
        FixedWindow::new(a).expect("a quota").into(),
        LeakyBucket::queue(b).expect("a quota").into(),
        Intervals::new(c).expect("a quota").into(),
        AnyAlgorithm::from(SlidingWindow::new(d).expect("a quota")),
    ]);
}
