//! The leaky bucket, the windows and the intervals answer exactly what their definitions say: a million
//! random operations of each and more, every verb and every returned value, compared with models that
//! remember what was taken when and share no arithmetic with the crate. Ticks go back, stand still, hit
//! the edges, leap over years and come from beyond the end of the clock. There is no difference at all.

mod bounds;
mod budget;
mod examples;
mod first;
mod fixed;
mod grid;
mod intervals;
mod known_failures;
mod leaky;
mod quotas;
mod sliding;
mod words;

use tollgate::{AnyAlgorithm, Limiter, ManualClock, Tick};

use self::budget::FIFTY_YEARS;
use crate::support::driver::Run;
use crate::support::model::Model;
use crate::support::random::Random;
use crate::support::seen::Seen;
use crate::support::subject::Every;

/// So many operations of each algorithm. A build that checks overflow as well does a share of them, so
/// that the tests stay quick.
const OPERATIONS: u64 = if cfg!(debug_assertions) {
    40_000
} else {
    1_000_000
};

/// All that each algorithm must have met.
const MUST_SEE: [&str; 28] = [
    "acquire",
    "acquire before its time",
    "take_up_to",
    "undo",
    "refund",
    "charge",
    "level",
    "time_until",
    "is_idle",
    "reset",
    "granted",
    "granted 0",
    "later",
    "in debt",
    "never",
    "stuck",
    "a part taken",
    "all or none taken",
    "none undone",
    "some undone",
    "all undone",
    "refund whole",
    "refund cut",
    "charged",
    "into debt",
    "idle",
    "busy",
    "far away",
];

/// One run of so many moments: a limiter that starts with `missing` permits less than it can have.
fn run<A: Every>(
    algorithm: A,
    (model, missing): (impl Model, u64),
    random: &mut Random,
    moments: u64,
) -> Seen {
    let (seed, mut model) = (random.next(), model);
    let start = match random.below(3) {
        0 => 0,
        1 => FIFTY_YEARS - random.upto(FIFTY_YEARS / 50),
        _ => random.upto(FIFTY_YEARS),
    };
    let label = format!("seed {seed:#x}, start {start}, {algorithm:?}");
    let gate = Limiter::with_clock(algorithm, ManualClock::at(Tick::from_nanos(start)));
    model.take(start, missing);
    let mut run = Run::new(&gate, model, seed, start, label);
    run.operate(moments);
    run.seen
}

/// Runs of all these cases, over and over, until there were enough operations.
fn runs<A: Every + Copy>(cases: &[(A, (impl Model, u64))], seed: u64, must_see: &[&str]) {
    let (mut random, mut seen) = (Random(seed), Seen::default());
    while seen.count("operation") < OPERATIONS {
        for (algorithm, model) in cases {
            seen.add(&run(*algorithm, model.clone(), &mut random, 200));
        }
    }
    seen.check(OPERATIONS, &[&MUST_SEE, must_see]);
}

#[test]
fn a_leaky_meter_is_what_its_definition_says() {
    let seen = ["charge cut", "never cleared", "a part of a permit"];
    runs(&quotas::meters(), 0x0070_11a7_e101, &seen);
}

#[test]
fn a_leaky_queue_is_what_its_definition_says() {
    let seen = ["charge cut", "delayed", "a part of a permit"];
    runs(&quotas::queues(), 0x0070_11a7_e102, &seen);
}

#[test]
fn an_aligned_fixed_window_is_what_its_definition_says() {
    let seen = ["charge cut", "counted ahead"];
    runs(&quotas::fixed(), 0x0070_11a7_e103, &seen);
}

#[test]
fn a_fixed_window_opened_by_the_first_hit_is_what_its_definition_says() {
    let seen = ["charge cut", "counted ahead"];
    runs(&quotas::first_hit(), 0x0070_11a7_e104, &seen);
}

#[test]
fn a_sliding_window_is_what_its_definition_says() {
    let seen = ["charge cut", "counted ahead", "a part of a permit"];
    runs(&quotas::sliding(), 0x0070_11a7_e105, &seen);
}

#[test]
fn aligned_intervals_are_what_their_definition_says() {
    let seen = ["charge cut", "never cleared"];
    runs(&quotas::intervals(), 0x0070_11a7_e106, &seen);
}

#[test]
fn greedy_intervals_are_what_their_definition_says() {
    let seen = ["charge cut", "counted ahead"];
    runs(&quotas::greedy(), 0x0070_11a7_e107, &seen);
}

/// Each of the algorithms, behind the enum.
#[test]
fn any_algorithm_is_what_it_stands_for() {
    let (mut random, mut seen) = (Random(0x0070_11a7_e108), Seen::default());
    macro_rules! some_of {
        ($cases:expr) => {{
            let cases = $cases;
            for _ in 0..4 {
                let (algorithm, model) = &cases[random.below(cases.len() as u64) as usize];
                let any = AnyAlgorithm::from(*algorithm);
                seen.add(&run(any, model.clone(), &mut random, 200));
            }
        }};
    }
    while seen.count("operation") < OPERATIONS {
        some_of!(quotas::meters());
        some_of!(quotas::queues());
        some_of!(quotas::fixed());
        some_of!(quotas::first_hit());
        some_of!(quotas::sliding());
        some_of!(quotas::intervals());
        some_of!(quotas::greedy());
    }
    let any = ["delayed", "counted ahead", "a part of a permit"];
    seen.check(OPERATIONS, &[&MUST_SEE, &any]);
}
