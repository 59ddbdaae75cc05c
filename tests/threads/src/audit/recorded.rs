//! Recorded grants of threads on one-word limiters, shards, slots and logs.

use tollgate_audit::Summary;

use super::stopping::Stopping;
use super::work::{EVERYTHING, Mix, START, TAKING, Verbs, kept};
use super::{BUCKETS, TOLERANCES, WINDOWS, all};
use crate::support::*;

fn every_algorithm() -> impl Iterator<Item = [AnyAlgorithm; 4]> {
    let tolerances = TOLERANCES.map(algorithm);
    all(&BUCKETS).chain(all(&WINDOWS)).chain([tolerances])
}

/// Adds up the summaries of many recordings. The threads' choices are the same in each run, so
/// every kind of event occurs under every schedule.
fn add(sum: &mut Summary, summary: Summary) {
    sum.granted += summary.granted;
    sum.gave_back += summary.gave_back;
    sum.charged += summary.charged;
    sum.resets += summary.resets;
}

#[test]
fn limiters_of_one_word_keep_their_bounds() {
    deadline("threads on a limiter", || {
        let (mut sum, turns) = (Summary::default(), scaled(10, 2000, 30_000));
        // For each quota, the number of threads that only take, and of threads that use all verbs.
        let threads = [(2, 3), (8, 4), (3, 4), (8, 2)];
        for (algorithm, (takers, others)) in
            every_algorithm().flat_map(|a| a.into_iter().zip(threads))
        {
            let bound = algorithm.bound();
            for (threads, mix) in [(takers, TAKING), (others, EVERYTHING)] {
                let limiter = Limiter::with_clock(algorithm, ManualClock::at(START));
                let reset = || limiter.reset();
                let verbs = Verbs::of(&limiter).with_reset(&reset);
                let history = verbs.record(threads, turns, mix);
                let summary = kept(&history, &bound, &format!("{algorithm}, {mix:?}"));
                // The limiter started full, and callers asked for more than it granted.
                let taken = summary.granted + summary.charged;
                assert!(taken + 3 >= bound.allows(Duration::ZERO), "{summary:?}");
                add(&mut sum, summary);
            }
        }
        assert!(
            sum.gave_back > 0 && sum.charged > 0 && sum.resets > 0,
            "{sum:?}"
        );
    });
}

/// Single shards can be in debt: while one is, another may grant permits that were refilled or
/// returned to it. The bound of all grants together is that of the whole.
#[test]
fn shards_keep_the_bound_of_the_whole() {
    /// The number of shards, of threads, and of permits in a request at most. The larger requests
    /// never fit in one shard.
    const SHAPES: [(usize, u64, u64); 4] = [(3, 2, 4), (8, 16, 12), (16, 4, 40), (5, 8, 300)];
    deadline("threads on shards", || {
        let (mut sum, turns) = (Summary::default(), scaled(10, 1000, 8000));
        let cases = every_algorithm().flat_map(|algorithms| algorithms.into_iter().zip(SHAPES));
        for (algorithm, (shards, threads, most)) in cases {
            let clock = ManualClock::at(START);
            let Ok(limiter) = Sharded::with_shards(Stopping(algorithm), shards, clock) else {
                // A queue is not split.
                continue;
            };
            let bound = algorithm.bound().forgetting_debt();
            let few = Mix { most: 2, ..TAKING };
            let many = Mix { most, ..TAKING };
            let all = Mix {
                rare: Some(2),
                most,
                ..EVERYTHING
            };
            let no_debt = Mix {
                charge: false,
                ..all
            };
            for mix in [few, many, all, no_debt] {
                limiter.reset();
                let reset = || limiter.reset();
                let verbs = Verbs::of(&limiter).with_reset(&reset);
                let history = verbs.record(threads, turns / threads, mix);
                let of = format!("{algorithm} in {shards} for {threads}, {mix:?}");
                add(&mut sum, kept(&history, &bound, &of));
            }
        }
        assert!(
            sum.gave_back > 0 && sum.charged > 0 && sum.resets > 0,
            "{sum:?}"
        );
    });
}

/// The number of threads, of permits in a request at most, and of each thread's turns.
const SHAPES: [(u64, u64, u64); 4] = [
    (2, 2, scaled(10, 1500, 30_000)),
    (3, 5, scaled(10, 1000, 20_000)),
    (8, 30, scaled(10, 400, 8_000)),
    (16, 4, scaled(10, 200, 4_000)),
];

fn per(n: u64, period: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(period))
}

/// Slots as long as a step of the clock, much longer, and longer than the threads' skew; a single
/// slot, and more slots than permits.
#[test]
fn slots_keep_their_bound() {
    const SLOTTED: [(u64, u64, usize); 6] = [
        (3, 64, 64),
        (7, 60, 3),
        (40, 1000, 10),
        (100, 4096, 4),
        (50, 777, 1),
        (1000, 100_000, 5),
    ];
    deadline("threads on slots", || {
        for (n, period, slots) in SLOTTED {
            let (quota, mut sum) = (per(n, period), Summary::default());
            let bound = Bound::of_slots(quota, slots).expect("a quota");
            for (threads, most, turns) in SHAPES {
                for mix in [TAKING, EVERYTHING] {
                    let limiter = SlottedWindow::with_clock(quota, slots, ManualClock::at(START));
                    let limiter = limiter.expect("slots");
                    let history = Verbs::of(&limiter).record(threads, turns, Mix { most, ..mix });
                    let of = format!("{quota} in {slots}, {most}");
                    add(&mut sum, kept(&history, &bound, &of));
                }
            }
            assert!(sum.granted > u128::from(n), "{sum:?}");
            assert!(sum.gave_back > 0 && sum.charged > 0, "{sum:?}");
        }
    });
}

#[test]
fn logs_keep_their_bound() {
    const LOGS: [(u64, u64); 6] = [
        (1, 20),
        (3, 64),
        (7, 60),
        (40, 1000),
        (100, 4096),
        (1000, 20_000),
    ];
    deadline("threads on a log", || {
        for (n, period) in LOGS {
            let (quota, mut sum) = (per(n, period), Summary::default());
            let bound = Bound::of_log(quota).expect("a quota");
            for (threads, most, turns) in SHAPES {
                for most in [2, most] {
                    let limiter = SlidingLog::with_clock(quota, ManualClock::at(START));
                    let limiter = limiter.expect("a log");
                    let verbs = Verbs {
                        limiter: &limiter,
                        back: None,
                        reset: None,
                    };
                    let history = verbs.record(threads, turns, Mix { most, ..TAKING });
                    let of = format!("{quota}, {most}");
                    add(&mut sum, kept(&history, &bound, &of));
                }
            }
            assert!(sum.granted > u128::from(n), "{sum:?}");
        }
    });
}
