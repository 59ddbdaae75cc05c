//! Limits in parts keep the bound of the whole, whatever threads do: requests that need several parts,
//! give-backs and resets among it.

use std::fmt::Debug;
use std::time::Duration;

use tollgate::history::{Bounded, Summary};
use tollgate::{
    AnyAlgorithm, Debt, FixedWindow, Gcra, Intervals, LeakyBucket, ManualClock, Quota, Rounding,
    Sharded, SlidingWindow, Split, TokenBucket,
};

use crate::verbs::{ByTheClock, Stopping, Verbs};
use crate::work::{EVERYTHING, Mix, START, TAKING, record_of};

const TURNS: u64 = 8_000;

/// Windows that are shorter than the threads' skew, longer, much longer; primes and powers of two; and
/// limits near to what the narrowest word can hold.
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

/// How many shards, threads, and permits in a request at most: of which the larger ones never come from
/// one part.
const SHAPES: [(usize, u64, u64); 4] = [(3, 2, 4), (8, 16, 12), (16, 4, 40), (5, 8, 300)];

fn sharded<A: Split>(algorithm: A, shards: usize) -> Sharded<Stopping<A>, ManualClock> {
    Sharded::with_shards(Stopping(algorithm), shards, ManualClock::at(START)).expect("it splits")
}

fn keeps<A>(algorithms: [A; 4])
where
    A: Bounded + Split + Debt + Copy + Debug + Send + Sync,
{
    let mut all = Summary::default();
    for (algorithm, shape) in algorithms.into_iter().zip(SHAPES) {
        let told = |mix| take(&algorithm, &sharded(algorithm, shape.0), shape, mix);
        let asked = |mix| {
            take(
                &algorithm,
                &ByTheClock(sharded(algorithm, shape.0)),
                shape,
                mix,
            )
        };
        told(TAKING.up_to(2));
        told(TAKING.up_to(shape.2));
        asked(TAKING.up_to(shape.2));
        let back = EVERYTHING.resetting_often().up_to(shape.2);
        let others = [told(back), asked(back), asked(back.without_charges())];
        for summary in others {
            all.gave_back += summary.gave_back;
            all.charged += summary.charged;
            all.resets += summary.resets;
        }
    }
    assert!(all.gave_back > 1000 && all.charged > 1000, "{all:?}");
    assert!(all.resets > 10, "{all:?}");
}

/// A debt is that of single parts: while one is in debt, another may grant what came to it or came back to
/// it. Of all grants the bound is the whole's.
fn take<A, G>(algorithm: &A, gate: &G, shape: (usize, u64, u64), mix: Mix) -> Summary
where
    A: Bounded + Debug,
    G: Verbs,
{
    let (_, threads, _) = shape;
    let all = record_of(gate, threads, TURNS / threads, mix);
    match all.check(&algorithm.bound().forgetting_debt()) {
        Ok(summary) => {
            assert!(summary.granted > 100, "{algorithm:?}: {summary:?}");
            summary
        }
        Err(excess) => panic!("{algorithm:?}, {shape:?}, {mix:?}: {excess}"),
    }
}

#[test]
fn token_bucket() {
    keeps(bursts().map(|quota| TokenBucket::new(quota).expect("a quota")));
}

/// Whose permits come every so many whole nanoseconds.
#[test]
fn token_bucket_exact() {
    let quota = |interval| Quota::per(1, Duration::from_nanos(interval));
    let quotas = [(3, 40), (10, 57), (25, 170), (100, 1501)];
    keeps(quotas.map(|(ns, burst)| TokenBucket::new(quota(ns).burst(burst)).expect("a quota")));
}

#[test]
fn gcra() {
    keeps(bursts().map(|quota| Gcra::new(quota).expect("a quota")));
}

#[test]
fn gcra_with_a_tolerance_that_is_no_multiple() {
    let spaced = |(interval, tolerance)| {
        let (interval, tolerance) = (
            Duration::from_nanos(interval),
            Duration::from_nanos(tolerance),
        );
        Gcra::from_interval(interval, tolerance).expect("it fits")
    };
    keeps([(70, 333), (3, 100), (41, 1000), (100, 3456)].map(spaced));
}

#[test]
fn leaky_meter() {
    keeps(bursts().map(|quota| LeakyBucket::meter(quota).expect("a quota")));
}

#[test]
fn fixed_window() {
    keeps(quotas().map(|quota| {
        let windows = FixedWindow::new(quota).expect("a quota");
        windows.offset(Duration::from_nanos(29))
    }));
}

#[test]
fn fixed_window_opened_by_the_first_hit() {
    keeps(quotas().map(|quota| {
        let windows = FixedWindow::new(quota).expect("a quota");
        windows.opened_by_first_hit().expect("it fits")
    }));
}

#[test]
fn sliding_window() {
    keeps(quotas().map(|quota| SlidingWindow::new(quota).expect("a quota")));
}

#[test]
fn sliding_window_rounded_down() {
    keeps(quotas().map(|quota| {
        let windows = SlidingWindow::new(quota).expect("a quota");
        windows.rounding(Rounding::Down)
    }));
}

#[test]
fn intervals() {
    keeps(bursts().map(|quota| {
        let intervals = Intervals::new(quota).expect("a quota");
        intervals.offset(Duration::from_nanos(7))
    }));
}

#[test]
fn intervals_greedy() {
    keeps(bursts().map(|quota| {
        let intervals = Intervals::new(quota).expect("a quota");
        intervals.greedy().expect("it fits")
    }));
}

#[test]
fn any_algorithm() {
    let [a, b, c, d] = quotas();
    keeps([
        FixedWindow::new(a).expect("a quota").into(),
        LeakyBucket::meter(b).expect("a quota").into(),
        Intervals::new(c).expect("a quota").into(),
        AnyAlgorithm::from(SlidingWindow::new(d).expect("a quota")),
    ]);
}
