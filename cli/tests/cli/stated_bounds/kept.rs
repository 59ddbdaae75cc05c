//! No interval exceeds its stated bound.

use super::drive::{Dice, Driven};
use super::promise::Promise::{self, *};

const RUNS: u64 = if cfg!(debug_assertions) { 60 } else { 250 };
const REQUESTS: usize = 60;

/// Rates of whole nanoseconds, rates with small and large numerators, and windows so short that a
/// nanosecond matters; bursts below, at and above `n`.
const BUCKETS: &str = "10/s, 3/s, 1/s burst 4, 7/200ns burst 3, 97/s burst 13, 997/7ms burst 40, \
    3/23ns burst 5, 1/1h burst 2";
const WINDOWS: &str = "10/s, 3/s, 1/s, 7/200ns, 97/s, 997/7ms, 3/23ns";

/// The skew between threads: more than the shortest periods, and less than the others.
const SKEW_NS: u64 = 50_000_000;

/// Algorithms, their quotas and options, and what they promise.
const STATED: [(&str, &str, &str, Promise); 14] = [
    ("token-bucket", BUCKETS, "", Steady),
    ("gcra", BUCKETS, "", Steady),
    ("leaky-meter", BUCKETS, "", Steady),
    ("leaky-queue", BUCKETS, "", Steady),
    ("fixed-window", WINDOWS, "", Windows),
    ("fixed-window", WINDOWS, "offset 3ns", Windows),
    ("fixed-window", WINDOWS, "first-hit", FirstHit),
    ("sliding-window", WINDOWS, "", Sliding),
    ("sliding-window", WINDOWS, "rounding down", RoundedDown),
    ("intervals", BUCKETS, "", Refills),
    ("intervals", BUCKETS, "greedy", Greedy),
    ("leaky-queue", BUCKETS, "free 0", Departures(0)),
    ("leaky-queue", BUCKETS, "free 1", Departures(1)),
    ("leaky-queue", BUCKETS, "free 5", Departures(5)),
];

/// Runs each algorithm with each quota, with equal and with skewed ticks, and checks every
/// interval. A bound of one permit less must fail, so the check can detect a single extra permit.
#[test]
fn no_interval_exceeds_its_stated_bound() {
    for (name, quotas, options, promise) in STATED {
        let mut is_tight = false;
        for quota in quotas.split(", ") {
            let text = format!("{name} {quota} {options}");
            let mut grants = 0;
            for seed in 0..2 * RUNS {
                let mut driven = Driven::new(&text);
                driven.skew_ns = SKEW_NS * (seed % 2);
                driven.run(&mut Dice::new(seed / 2), REQUESTS);
                grants += driven.taken.len() as u64;
                let broken = promise.broken(&driven, 0);
                assert_eq!(broken, None, "{text}, seed {seed}: {:?}", driven.taken);
                is_tight = is_tight || promise.broken(&driven, 1).is_some();
            }
            assert!(grants > 10 * RUNS, "{text}: only {grants} grants");
        }
        assert!(
            is_tight,
            "{name} {options}: a bound of one permit less also held"
        );
    }
}
