//! Compares each algorithm that can be split, in few and many shards, with its model.

mod bad_input;
mod interrupted;
mod older_ticks;
mod run;
mod service;
mod shards;
mod sums;
mod whole;
mod words_at_other_ticks;

use tollgate::algorithm::Split;

use crate::algorithm::text::any_algorithm;
use crate::support::*;

/// The events that all runs together must cover.
const MUST_SEE: &str = "acquire; acquire at its time; take_up_to; charge; undo; refund; time_until; available; \
    level; reset; from the own shard; from another shard; from several; taken from one; \
    taken from several; in debt; later; never; stuck; into debt; charged; charge cut; none \
    undone; undone; several undone; none refunded; refunded; far away";

/// Returns each kind with each of the quotas that it accepts.
fn with_quotas(kinds: &[&str], quotas: &[&str]) -> Vec<Vec<AnyAlgorithm>> {
    let with = |kind: &&str| {
        let texts = quotas.iter().map(|quota| kind.replace("QUOTA", quota));
        let taken: Vec<_> = texts.filter_map(|text| text.parse().ok()).collect();
        // Kinds whose period begins with a permit do not accept the longest.
        assert!(taken.len() > quotas.len() / 2, "{kind}");
        taken
    };
    kinds.iter().map(with).collect()
}

/// Runs each kind in few and many shards, repeatedly.
fn runs(kinds: Vec<Vec<AnyAlgorithm>>, seed: u64, must_see: &'static str) {
    let operations = debug_or_release(6_000, 1_000_000);
    deadline("a sharded limiter", move || {
        let (mut random, mut all) = (Random(seed), Seen::default());
        for algorithms in kinds {
            let mut seen = Seen::default();
            while seen.count("operation") < operations {
                for algorithm in &algorithms {
                    let shards = 1 + random.below(algorithm.most_shards().min(16)) as usize;
                    let clock = ManualClock::at(tick(any_start(&mut random)));
                    if let Ok(limiter) = Sharded::with_shards(*algorithm, shards, clock) {
                        seen.add(&run::run(&limiter, &mut random));
                    }
                }
            }
            all.add(&seen);
        }
        all.check(operations, &[MUST_SEE, must_see]);
    });
}

/// Even and uneven rates, with bursts from small to the largest that fits.
const BURSTS: [&str; 12] = [
    "1/s",
    "10/s",
    "1000/s burst 40",
    "97/s burst 64",
    "9999999999/s burst 100",
    "7/min burst 5 initial 3",
    "13/s burst 30 initial 11",
    "1/d burst 1000",
    "1/1ns burst 100",
    "10/1ns burst 68719476736",
    "1/365d burst 16",
    "11/1000000007ns burst 3",
];

const PERIODS: [&str; 10] = [
    "1/s",
    "10/s",
    "40/s",
    "64/s",
    "100/s",
    "5/min",
    "30/s",
    "1000/d",
    "16/365d",
    "3/1000000007ns",
];

#[test]
fn sharded_buckets_match_their_model() {
    let kinds = ["token-bucket QUOTA", "gcra QUOTA", "leaky-meter QUOTA"];
    runs(with_quotas(&kinds, &BURSTS), 0x0070_11a7_e501, "acquire");
}

#[test]
fn sharded_windows_match_their_model() {
    let kinds = [
        "fixed-window QUOTA",
        "fixed-window QUOTA offset 77777ns",
        "fixed-window QUOTA first-hit",
        "sliding-window QUOTA",
        "sliding-window QUOTA rounding down",
    ];
    let kinds = with_quotas(&kinds, &PERIODS);
    runs(kinds, 0x0070_11a7_e504, "from several, ahead");
}

#[test]
fn sharded_intervals_match_their_model() {
    let kinds = ["intervals QUOTA", "intervals QUOTA greedy"];
    runs(with_quotas(&kinds, &BURSTS), 0x0070_11a7_e507, "acquire");
}

/// Tolerances that are no multiple of the interval, a queue in one shard, the largest limits that
/// fit, and random others.
#[test]
fn any_sharded_algorithm_matches_its_model() {
    let mut random = Random(0x0070_11a7_e510);
    let any = [(); 100].map(|()| any_algorithm(&mut random));
    let all = algorithms().into_iter().chain(any).collect();
    runs(vec![all], 0x0070_11a7_e509, "acquire");
}
