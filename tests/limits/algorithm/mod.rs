//! Every algorithm answers exactly as its definition says. Random operations, every verb and every
//! returned value are compared with models that share no arithmetic with the crate. Ticks go back,
//! stand still, hit window boundaries, jump by years and go beyond the end of the clock.
//!
//! Windows, intervals and buckets whose permits are due at whole parts of a nanosecond agree
//! exactly. Any other bucket grants no permit a unit early, which is at most a quarter of a
//! nanosecond, and denies none a nanosecond after it is due. Every value is right for a bucket that
//! is full again less than one unit earlier or up to one nanosecond later than the textbook's. This
//! holds after 50 simulated years as in the first second.
//!
//! The model follows the limiter's decisions. If a permit is late or early once, as allowed, it is
//! so for both, and later answers are compared again.

mod bounds;
mod carry;
mod cases;
pub(crate) mod counted;
mod departures;
mod examples;
mod fifty_years;
mod first;
mod grid;
pub(crate) mod known_failures;
pub(crate) mod quotas;
mod refilled;
pub(crate) mod rounding;
mod settled;
mod stuck;
pub(crate) mod text;
mod used;
pub(crate) mod words;

use crate::support::driver::Run;
use crate::support::reference::{Reference, bucket::Bucket};
use crate::support::*;

/// The number of operations for each kind of limit. A build with overflow checks runs fewer, so
/// that the tests stay fast.
const OPERATIONS: u64 = debug_or_release(20_000, 1_000_000);

/// The events that the comparisons together must cover.
const MUST_SEE: &str = "acquire; acquire before its time; take_up_to; undo; refund; charge; available; \
    time_until; is_idle; reset; granted; granted 0; later; in debt; never; stuck; some of \
    them taken; all or none taken; none undone; some undone; all undone; refund whole; \
    refund cut; charged; into debt; idle; busy";

/// Runs one history with this many moments, on a limiter that starts with `missing` permits below
/// its maximum.
fn run<M: Reference>(
    algorithm: AnyAlgorithm,
    (mut model, missing): (M, u64),
    random: &mut Random,
    moments: u64,
) -> Seen {
    let (seed, start) = (random.next(), any_start(random));
    let label = format!("seed {seed:#x}, start {start}, {algorithm:?}");
    let limiter = Limiter::with_clock(algorithm, ManualClock::at(tick(start)));
    model.take(start, missing);
    let mut run = Run::new(&limiter, model, seed, start, label);
    run.operate(moments);
    run.seen
}

/// Runs all these cases repeatedly, until there are enough operations.
fn runs<M: Reference + Clone>(cases: &[cases::Case<M>], seed: u64, must_see: &str) {
    let (mut random, mut seen) = (Random(seed), Seen::default());
    while seen.count("operation") < OPERATIONS {
        for (algorithm, model) in cases {
            seen.add(&run(*algorithm, model.clone(), &mut random, 100));
        }
    }
    seen.check(OPERATIONS, &[MUST_SEE, "level; far away", must_see]);
}

/// Returns a random bucket with this quota, and the number of permits that it lacks at first.
fn bucket(quota: Quota, random: &mut Random) -> cases::Case<Bucket> {
    let missing = match random.below(3) {
        0 => random.below(quota.burst_size() + 1),
        _ => 0,
    };
    let quota = quota.initial(quota.burst_size() - missing);
    let free = match random.below(4) {
        0 => random.below(2),
        1 => random.upto(quota.burst_size()),
        _ => random.upto(u64::MAX),
    };
    let model = Bucket::from_quota(quota);
    let (algorithm, model) = match random.below(4) {
        0 => (TokenBucket::new(quota).map(AnyAlgorithm::from), model),
        1 => (Gcra::new(quota).map(AnyAlgorithm::from), model),
        2 => (LeakyBucket::meter(quota).map(AnyAlgorithm::from), model),
        _ => {
            let queue = LeakyBucket::queue(quota).map(|queue| queue.free(free).into());
            (queue, model.queue(free))
        }
    };
    (algorithm.expect("a bucket"), (model, missing))
}

/// Runs buckets with these quotas repeatedly, until there are enough operations.
fn bucket_runs(mut quotas: impl FnMut(&mut Random) -> Vec<Quota>, seed: u64) -> Seen {
    let (mut random, mut seen) = (Random(seed), Seen::default());
    while seen.count("operation") < 4 * OPERATIONS {
        for quota in quotas(&mut random) {
            let (algorithm, model) = bucket(quota, &mut random);
            seen.add(&run(algorithm, model, &mut random, 300));
        }
    }
    seen
}

#[test]
fn a_bucket_is_exact_where_its_interval_is_whole() {
    let quotas = quotas::exact();
    assert!(quotas.iter().all(|quota| Bucket::from_quota(*quota).exact));
    let seen = bucket_runs(|_| quotas.clone(), 0x0070_11a7_e001);
    let also = "level; a fraction of a permit; charge cut; never cleared; delayed; far away";
    seen.check(4 * OPERATIONS, &[MUST_SEE, also]);
    assert_eq!(seen.count("not the earliest"), 0);
}

#[test]
fn a_bucket_is_less_than_a_unit_early_and_at_most_a_nanosecond_late_elsewhere() {
    let quotas = quotas::elsewhere();
    assert!(quotas.iter().all(|quota| !Bucket::from_quota(*quota).exact));
    let seen = bucket_runs(|_| quotas.clone(), 0x0070_11a7_e002);
    seen.check(4 * OPERATIONS, &[MUST_SEE, "not the earliest; delayed"]);
}

#[test]
fn any_accepted_quota_keeps_its_precision() {
    let any = |random: &mut Random| vec![quotas::any(random)];
    bucket_runs(any, 0x0070_11a7_e003).check(4 * OPERATIONS, &[MUST_SEE]);
}

#[test]
fn a_tolerance_of_any_length_is_kept_exactly() {
    let mut random = Random(0x0070_11a7_e004);
    let cases = (0..40).filter_map(|_| {
        let interval = Duration::from_nanos(1 + random.upto(YEAR - 1));
        let tolerance = Duration::from_nanos(random.upto(20 * YEAR));
        // More than 2^40 permits at once are refused.
        let gcra = Gcra::from_interval(interval, tolerance).ok()?;
        Some((gcra.into(), (Bucket::from_interval(interval, tolerance), 0)))
    });
    runs(
        &cases.collect::<Vec<_>>(),
        0x0070_11a7_e005,
        "a fraction of a permit",
    );
}

#[test]
fn an_aligned_fixed_window_matches_its_definition() {
    let seen = "charge cut; counted ahead";
    runs(&cases::fixed(), 0x0070_11a7_e103, seen);
}

#[test]
fn a_fixed_window_from_the_first_hit_matches_its_definition() {
    let seen = "charge cut; counted ahead";
    runs(&cases::first_hit(), 0x0070_11a7_e104, seen);
}

#[test]
fn a_sliding_window_matches_its_definition() {
    let seen = "charge cut; counted ahead; a fraction of a permit";
    runs(&cases::sliding(), 0x0070_11a7_e105, seen);
}

#[test]
fn aligned_intervals_match_their_definition() {
    let seen = "charge cut; never cleared";
    runs(&cases::intervals(), 0x0070_11a7_e106, seen);
}

#[test]
fn greedy_intervals_match_their_definition() {
    let seen = "charge cut; counted ahead";
    runs(&cases::greedy(), 0x0070_11a7_e107, seen);
}
