//! Reservations: one exchange each, due in the order in which they were made. A sliding window
//! counts them in the window in which they are due. Concurrent calls of reserve, cancel, settle and
//! acquire have the outcome of some sequential order, used permits keep the bound at the ticks at
//! which they are due, and no caller is due before one that reserved earlier. The models find
//! faults in this.

use tollgate::traits::ReserveLimiter;
use tollgate_loom_tests::Limits;
use tollgate_loom_tests::calls::{
    Call, cancel, charge, reserve, reserve_until, take_and_use as take,
};
use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::rules::each_interval;

type Bucket = Limiter<TokenBucket, NoClock>;
type Window = Limiter<SlidingWindow, NoClock>;
type Scenario<G> = AnyScenario<G, Option<Granted>>;

const BURST: u64 = 2;
const INTERVAL_NS: u64 = 10;
const NOW: u64 = 50;

/// Two permits at once, and one every 10 ns.
fn bucket() -> Bucket {
    let quota = Quota::per(1, Duration::from_nanos(INTERVAL_NS)).burst(BURST);
    Limiter::unstarted(TokenBucket::new(quota).expect("a quota"), NoClock)
}

const LIMIT: u64 = 4;
const PERIOD_NS: u64 = 40;

fn window() -> Window {
    let quota = Quota::per(LIMIT, Duration::from_nanos(PERIOD_NS));
    Limiter::unstarted(SlidingWindow::new(quota).expect("a quota"), NoClock)
}

/// Returns the due ticks and the permits that are used: grants, except those that are cancelled.
/// All actors act at one tick, the first. They cancel only their last grant, completely, and before
/// it is due.
fn ticks_of_use(played: &ScenarioOutcome) -> Vec<(u64, u64)> {
    let mut goes: Vec<(u64, u64)> = Vec::new();
    let none = Vec::new();
    let before = played.before.iter().chain([&none]);
    for (before, answers) in before.zip(played.answers.iter().chain([&played.after])) {
        let mut own: Vec<(u64, u64)> = Vec::new();
        for answer in before.iter().chain(answers) {
            match answer {
                Answer::Granted(granted) => own.push((granted.due().as_nanos(), granted.n())),
                Answer::Returned(_) => drop(own.pop()),
                _ => {}
            }
        }
        goes.extend(own);
    }
    goes
}

/// Checks that any interval has at most what is allowed in its length in nanoseconds.
fn assert_allowed(goes: &[(u64, u64)], allowed: impl Fn(u64) -> u64) {
    each_interval(goes, |from, to, sum| {
        let allowed = allowed(to - from);
        assert!(sum <= allowed, "{sum} go early, from {from} to {to}");
    });
}

/// A scenario at whose end a last caller reserves.
fn scenario<G: ReserveLimiter + Limits>(make: fn() -> G) -> Scenario<G> {
    AnyScenario::at(make).after(|limiter, _| {
        let last = limiter.reserve_until_at(1, Tick::MAX, Tick::from_nanos(NOW));
        vec![Answer::Granted(last.expect("it will be there"))]
    })
}

/// The same on a bucket, for reservations that are cancelled only completely and before they are
/// due.
fn on_a_bucket() -> Scenario<Bucket> {
    scenario(bucket).rule(|played| {
        assert_allowed(&ticks_of_use(played), |ns| BURST + ns / INTERVAL_NS);
    })
}

/// The same on a window.
fn on_a_window() -> Scenario<Window> {
    scenario(window).rule(|played| {
        let goes = ticks_of_use(played);
        // The last caller comes after all others.
        if let Some((last, before)) = goes.split_last() {
            let is_last = before.iter().all(|(due, _)| *due <= last.0);
            assert!(is_last, "the last caller overtakes: {before:?}, {last:?}");
        }
        assert_allowed(&goes, |ns| LIMIT + ns * LIMIT / PERIOD_NS);
    })
}

/// Each action against each other, in the middle of the line and at its end.
fn each_against_each(run: &mut Run) {
    let states: [&[Call<Bucket>]; 3] = [
        &[reserve(1, NOW)],
        &[take(2, NOW), reserve(1, NOW)],
        &[take(2, NOW), reserve(2, NOW)],
    ];
    let verbs = [
        take(1, NOW),
        reserve(1, NOW),
        reserve(2, NOW),
        reserve_until(1, NOW + INTERVAL_NS, NOW),
        cancel(1, NOW),
        cancel(2, NOW),
        charge(1, NOW),
    ];
    for state in states {
        for one in &verbs {
            for other in &verbs {
                let then = std::slice::from_ref(other);
                let scenario = scenario(bucket).actor_after(state, std::slice::from_ref(one));
                scenario.actor(then).explore(run);
            }
        }
    }
}

/// A caller that reserved `n` gives up while others arrive.
fn gives_up<G: ReserveLimiter + Limits>(
    run: &mut Run,
    scenario: fn() -> Scenario<G>,
    before: &[Call<G>],
    n: u64,
) {
    let arrive = [
        vec![reserve(1, NOW)],
        vec![reserve(2, NOW), cancel(2, NOW)],
        vec![reserve(1, NOW), reserve(1, NOW)],
        vec![take(1, NOW), reserve(1, NOW)],
    ];
    for others in arrive {
        let gives_up = scenario().actor_after(before, &[cancel(n, NOW), reserve(1, NOW)]);
        gives_up.actor(&others).explore(run);
    }
}

/// The caller that reserved first gives up.
fn one_gives_up(run: &mut Run) {
    gives_up(run, on_a_bucket, &[take(2, NOW), reserve(1, NOW)], 1);
}

fn one_of_a_window_gives_up(run: &mut Run) {
    for taken in [LIMIT, LIMIT - 1] {
        let before = [take(taken, NOW), reserve(2, NOW)];
        gives_up(run, on_a_window, &before, 2);
    }
}

/// Three arrive at once, and two of them give up.
fn three_at_once(run: &mut Run) {
    let gives_up = [reserve(1, NOW), cancel(1, NOW)];
    let two = on_a_bucket().actor_after(&[take(2, NOW)], &gives_up);
    let three = two.actor(&gives_up).actor(&[reserve(2, NOW)]);
    three.explore(run);
}

#[test]
fn each_of_two() {
    model("reservations::each_against_each", None, each_against_each);
}

#[test]
fn giving_up() {
    model("reservations::three_at_once", Some(2), three_at_once);
    let (name, why) = ("reservations::one_gives_up", "go early | no order");
    model(name, None, one_gives_up)
        .finds([Fault::CancelsInTheMiddle], why)
        .stored(why);
    let name = "window_reservations::one_gives_up";
    model(name, None, one_of_a_window_gives_up)
        .finds([Fault::CancelsInTheMiddle], "overtakes | no order");
}
