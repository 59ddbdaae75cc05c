//! No interval holds more than is stated.

use crate::drive::{Dice, Driven};
use crate::promise::Promise;

const RUNS: u64 = 250;
const REQUESTS: usize = 60;

/// Rates of whole nanoseconds, of small and of large numerators, and windows so short that a
/// nanosecond matters; bursts below, at and above `n`.
const BUCKETS: [&str; 8] = [
    "10/s",
    "3/s",
    "1/s burst 4",
    "7/200ns burst 3",
    "97/s burst 13",
    "997/7ms burst 40",
    "3/23ns burst 5",
    "1/1h burst 2",
];
const WINDOWS: [&str; 7] = ["10/s", "3/s", "1/s", "7/200ns", "97/s", "997/7ms", "3/23ns"];

/// Runs the algorithm with each quota, and looks at every interval.
fn check(
    name: &str,
    quotas: &[&str],
    options: &str,
    skew_ns: u64,
    promise: fn(&Driven) -> Promise,
) {
    for quota in quotas {
        let text = format!("{name} {quota} {options}");
        let mut grants = 0;
        for seed in 0..RUNS {
            let mut driven = Driven::new(&text);
            driven.run(&mut Dice::new(seed), REQUESTS, skew_ns);
            grants += driven.taken.len();
            let broken = promise(&driven).broken(driven.rate, &driven.taken);
            assert_eq!(broken, None, "{text}, seed {seed}: {:?}", driven.taken);
        }
        assert!(grants as u64 > 5 * RUNS, "{text}: only {grants} grants");
    }
}

/// Ticks of threads that differ, by more than the shortest periods and less than the others.
const SKEW_NS: u64 = 50_000_000;

#[test]
fn buckets_keep_burst_and_rate() {
    let steady = |driven: &Driven| Promise::Steady {
        burst: driven.burst,
    };
    for name in ["token-bucket", "gcra", "leaky-meter", "leaky-queue"] {
        check(name, &BUCKETS, "", 0, steady);
        check(name, &BUCKETS, "", SKEW_NS, steady);
    }
}

#[test]
fn windows_keep_n_in_each() {
    check("fixed-window", &WINDOWS, "", 0, |_| Promise::Windows);
    check("fixed-window", &WINDOWS, "offset 3ns", SKEW_NS, |_| {
        Promise::Windows
    });
}

#[test]
fn windows_opened_by_the_first_hit_keep_one_less() {
    let first_hit = "first-hit";
    check("fixed-window", &WINDOWS, first_hit, 0, |_| {
        Promise::FirstHit { skew_ns: 0 }
    });
    check("fixed-window", &WINDOWS, first_hit, SKEW_NS, |driven| {
        Promise::FirstHit {
            skew_ns: driven.quantum_ns,
        }
    });
}

#[test]
fn the_sliding_window_keeps_n_and_rate() {
    let exact = |_: &Driven| Promise::Sliding { down: false };
    let down = |_: &Driven| Promise::Sliding { down: true };
    for skew_ns in [0, SKEW_NS] {
        check("sliding-window", &WINDOWS, "", skew_ns, exact);
        check("sliding-window", &WINDOWS, "rounding down", skew_ns, down);
    }
}

#[test]
fn intervals_keep_burst_and_refills() {
    let refills = |driven: &Driven| Promise::Refills {
        burst: driven.burst,
    };
    check("intervals", &BUCKETS, "", 0, refills);
    check("intervals", &BUCKETS, "", SKEW_NS, refills);
    check("intervals", &BUCKETS, "greedy", 0, |driven| {
        Promise::Greedy {
            burst: driven.burst,
            skew_ns: 0,
        }
    });
    check("intervals", &BUCKETS, "greedy", SKEW_NS, |driven| {
        Promise::Greedy {
            burst: driven.burst,
            skew_ns: driven.quantum_ns,
        }
    });
}

#[test]
fn what_leaves_a_queue_keeps_its_rate() {
    for quota in BUCKETS {
        for free in [0, 1, 5] {
            let text = format!("leaky-queue {quota} free {free}");
            for seed in 0..RUNS {
                let skew_ns = SKEW_NS * (seed % 2);
                let mut driven = Driven::new(&text);
                driven.run(&mut Dice::new(seed), REQUESTS, skew_ns);
                let largest = driven.largest;
                let broken =
                    Promise::Departures { free, largest }.broken(driven.rate, &driven.left);
                assert_eq!(broken, None, "{text}, seed {seed}: {:?}", driven.left);
            }
        }
    }
}

/// The check itself finds one permit too many.
#[test]
fn a_single_permit_more_is_found() {
    for (text, promise) in [
        ("token-bucket 10/s", Promise::Steady { burst: 9 }),
        (
            "sliding-window 10/s rounding down",
            Promise::Sliding { down: false },
        ),
        ("fixed-window 10/s", Promise::FirstHit { skew_ns: 0 }),
        (
            "intervals 10/s burst 12",
            Promise::Greedy {
                burst: 12,
                skew_ns: 0,
            },
        ),
        (
            "leaky-queue 10/s free 3",
            Promise::Departures {
                free: 2,
                largest: 1,
            },
        ),
    ] {
        let is_broken = |seed| {
            let mut driven = Driven::new(text);
            driven.run(&mut Dice::new(seed), REQUESTS, 0);
            let moments = match promise {
                Promise::Departures { .. } => &driven.left,
                _ => &driven.taken,
            };
            promise.broken(driven.rate, moments).is_some()
        };
        assert!((0..RUNS).any(is_broken), "{text}: {promise:?} was kept");
    }
}
