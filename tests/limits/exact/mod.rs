//! The limiter is exact: a million random operations and more, every verb, compared with a
//! textbook's bucket in rational numbers. Where permits are due at whole parts of a nanosecond
//! there is no difference at all. Elsewhere no permit is granted before its time and none is
//! denied a nanosecond after it, and every value is right for a bucket that is full again up to
//! one nanosecond later than the textbook's; whether it is in debt (which admits nothing) may be
//! told a nanosecond too early as well. After 50 simulated years as in the first second.
//!
//! The model follows the limiter's decisions, so that a permit that came late once, as it may, is
//! late for both, and what follows is compared again.

mod model;
mod quotas;
mod saturated;

use std::time::Duration;

use tollgate::{Gcra, Limiter, ManualClock, Quota, Tick, TokenBucket};

use crate::support::driver::Run;
use self::model::{FIFTY_YEARS, Model};
use crate::support::random::Random;
use crate::support::reference::Reference;
use crate::support::seen::Seen;
use crate::support::subject::Every;

/// All that a test that tries everything must have met.
const MUST_SEE: [&str; 32] = [
    "acquire",
    "acquire before its time",
    "take_up_to",
    "undo",
    "refund",
    "charge",
    "available",
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
    "charge cut",
    "idle",
    "busy",
    "start at 0",
    "start after 50 years",
    "start anywhere",
    "initial",
];

fn model(quota: Quota) -> Model {
    let period = u64::try_from(quota.period().as_nanos()).expect("a period");
    Model::from_quota(quota.permits(), period, quota.burst_size())
}

/// One run: a limiter that starts at `start`.
fn run<A: Every>(
    algorithm: A,
    (mut model, initial): (Model, u64),
    (seed, start): (u64, u64),
    moments: u64,
) -> Seen {
    let label = format!("seed {seed:#x}, start {start}, {algorithm:?}");
    let gate = Limiter::with_clock(algorithm, ManualClock::at(Tick::from_nanos(start)));
    model.start(start, initial);
    let mut run = Run::new(&gate, model, seed, start, label);
    if initial < run.model.limit() {
        run.seen.note("initial");
    }
    run.operate(moments);
    run.seen
}

/// Runs of both algorithms, with a full start and with another, from three moments.
fn runs(quota: Quota, random: &mut Random, moments: u64, seen: &mut Seen) {
    let burst = quota.burst_size();
    let starts = [
        ("start at 0", 0),
        (
            "start after 50 years",
            FIFTY_YEARS - random.upto(FIFTY_YEARS / 50),
        ),
        ("start anywhere", random.upto(FIFTY_YEARS)),
    ];
    for (name, start) in starts {
        let initial = match random.below(2) {
            0 => burst,
            _ => random.below(burst + 1),
        };
        let quota = quota.initial(initial);
        let (model, case) = ((model(quota), initial), (random.next(), start));
        seen.note(name);
        seen.add(&match random.below(2) {
            0 => run(
                TokenBucket::new(quota).expect("a bucket"),
                model,
                case,
                moments,
            ),
            _ => run(Gcra::new(quota).expect("a gcra"), model, case, moments),
        });
    }
}

#[test]
fn no_difference_where_the_interval_is_whole() {
    let (mut random, mut seen) = (Random(0x0070_11a7_e001), Seen::default());
    for quota in quotas::exact() {
        assert!(model(quota).exact, "{quota}");
        runs(quota, &mut random, 1000, &mut seen);
    }
    seen.check(500_000, &[&MUST_SEE, &["level"]]);
    assert_eq!(seen.count("a nanosecond late"), 0);
}

#[test]
fn at_most_a_nanosecond_late_elsewhere() {
    let (mut random, mut seen) = (Random(0x0070_11a7_e002), Seen::default());
    for quota in quotas::elsewhere() {
        assert!(!model(quota).exact, "{quota}");
        runs(quota, &mut random, 2500, &mut seen);
    }
    seen.check(400_000, &[&MUST_SEE]);
    assert!(seen.count("a nanosecond late") > 0);
}

#[test]
fn any_quota_that_is_accepted_keeps_the_promise() {
    let (mut random, mut seen) = (Random(0x0070_11a7_e003), Seen::default());
    for _ in 0..150 {
        runs(quotas::any(&mut random), &mut random, 250, &mut seen);
    }
    seen.check(200_000, &[&MUST_SEE]);
}

#[test]
fn no_difference_with_a_tolerance_of_any_length() {
    let (mut random, mut seen) = (Random(0x0070_11a7_e004), Seen::default());
    for _ in 0..40 {
        let interval = Duration::from_nanos(1 + random.upto(365 * 86_400_000_000_000 - 1));
        let tolerance = Duration::from_nanos(random.upto(20 * 365 * 86_400_000_000_000));
        let Ok(gcra) = Gcra::from_interval(interval, tolerance) else {
            // More than 2^40 at once.
            continue;
        };
        let model = Model::from_interval(interval, tolerance);
        let start = random.upto(FIFTY_YEARS);
        let (full, case) = ((model.clone(), model.limit()), (random.next(), start));
        seen.add(&run(gcra, full, case, 1500));
    }
    seen.check(100_000, &[&["later", "granted"]]);
}

#[test]
fn permit_k_is_due_k_intervals_after_the_bucket_ran_dry() {
    let mut random = Random(0x0070_11a7_e005);
    let mut all = |quotas: Vec<Quota>| {
        let (mut probes, mut late) = (0, 0);
        for quota in quotas {
            for start in [0, 7, random.upto(FIFTY_YEARS / 2)] {
                let found = saturated::fifty_years(quota, start, random.next());
                probes += found.0;
                late += found.1;
            }
        }
        println!("{late} of {probes} permits were a nanosecond late");
        (probes, late)
    };
    let (exact, never) = all(quotas::exact());
    assert!(exact > 40_000 && never == 0);
    let (elsewhere, sometimes) = all(quotas::elsewhere());
    assert!(elsewhere > 20_000 && sometimes > 0);
}

/// 27 permits a second: one every 37 037 037.04 ns, so that a part of a nanosecond tells.
fn odd(burst: u64) -> Limiter<TokenBucket, ManualClock> {
    let quota = Quota::per_second(27).burst(burst);
    Limiter::with_clock(
        TokenBucket::new(quota).expect("a bucket"),
        ManualClock::new(),
    )
}

#[test]
fn a_grant_undone_in_part_brings_no_permit_forward() {
    let gate = odd(2);
    let first = gate.try_acquire().expect("full");
    gate.charge(1);
    // About half of the first is refilled by then; the other half comes back.
    let now = gate.at(Tick::from_nanos(20_000_000));
    assert_eq!(now.undo(first), 1);
    let wait = now.time_until(2).expect("in time").as_nanos();
    assert!((37_037_038..=37_037_039).contains(&wait), "{wait}");
}

#[test]
fn a_refund_is_no_more_than_was_taken() {
    let gate = odd(27);
    for taken in 1..=27 {
        gate.charge(taken);
        assert_eq!(gate.refund(100), taken);
    }
}
