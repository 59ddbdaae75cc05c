//! Reservations: one exchange each, due in the order in which they were made. Concurrent calls of
//! reserve, cancel, settle and acquire have the outcome of some sequential order, and used permits
//! keep the bound at the ticks at which they are due. The models find faults in this.

use tollgate::traits::ReserveLimiter;
use tollgate_loom_tests::Scenario as AnyScenario;
use tollgate_loom_tests::calls::{
    Call, cancel, charge, reserve, reserve_until, take_and_use as take,
};
use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::rules::each_interval;

type Tested = Limiter<TokenBucket, NoClock>;
type Action = Call<Tested>;
type Scenario = AnyScenario<Tested, Option<Granted>>;

const BURST: u64 = 2;
const INTERVAL_NS: u64 = 10;
pub(super) const NOW: u64 = 50;

/// Two permits at once, and one every 10 ns.
fn limiter() -> Tested {
    let quota = Quota::per(1, Duration::from_nanos(INTERVAL_NS)).burst(BURST);
    Limiter::unstarted(TokenBucket::new(quota).expect("a quota"), NoClock)
}

/// All actors act at one tick, the first, and cancel completely before permits are due.
fn keeps_the_bound(played: &ScenarioOutcome) {
    let goes = ticks_of_use(played);
    assert_allowed(&goes, |ns| BURST + ns / INTERVAL_NS);
}

/// Returns the due ticks and the permits that are used: grants, except those that are cancelled.
/// Actors cancel only their last grant, completely.
pub(super) fn ticks_of_use(played: &ScenarioOutcome) -> Vec<(u64, u64)> {
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
pub(super) fn assert_allowed(goes: &[(u64, u64)], allowed: impl Fn(u64) -> u64) {
    each_interval(goes, |from, to, sum| {
        let allowed = allowed(to - from);
        assert!(sum <= allowed, "{sum} go early, from {from} to {to}");
    });
}

/// A scenario at whose end a last caller reserves.
pub(super) fn last_reserves<G>(make: fn() -> G) -> AnyScenario<G, Option<Granted>>
where
    G: ReserveLimiter + Send + Sync + 'static,
{
    AnyScenario::at(make).after(|limiter, _| {
        let last = limiter.reserve_until_at(1, Tick::MAX, Tick::from_nanos(NOW));
        vec![Answer::Granted(last.expect("it will be there"))]
    })
}

/// What others do while a caller that reserved gives up.
pub(super) fn arrive<G: ReserveLimiter>() -> [Vec<Call<G>>; 4] {
    [
        vec![reserve(1, NOW)],
        vec![reserve(2, NOW), cancel(2, NOW)],
        vec![reserve(1, NOW), reserve(1, NOW)],
        vec![take(1, NOW), reserve(1, NOW)],
    ]
}

fn scenario() -> Scenario {
    last_reserves(limiter)
}

/// The same, for reservations that are cancelled only completely and before they are due.
fn bounded() -> Scenario {
    scenario().rule(keeps_the_bound)
}

/// Each action against each other, in the middle of the line and at its end.
fn each_against_each(run: &mut Run) {
    let states: [&[Action]; 3] = [
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
                let scenario = scenario().actor_after(state, std::slice::from_ref(one));
                scenario.actor(then).explore(run);
            }
        }
    }
}

/// The caller that reserved first gives up while others arrive.
fn one_gives_up(run: &mut Run) {
    for others in arrive() {
        let full: [Action; 2] = [take(2, NOW), reserve(1, NOW)];
        let gives_up = bounded().actor_after(&full, &[cancel(1, NOW), reserve(1, NOW)]);
        gives_up.actor(&others).explore(run);
    }
}

/// Three arrive at once, and two of them give up.
fn three_at_once(run: &mut Run) {
    let full: [Action; 1] = [take(2, NOW)];
    let gives_up = [reserve(1, NOW), cancel(1, NOW)];
    let scenario = bounded().actor_after(&full, &gives_up);
    scenario
        .actor(&gives_up)
        .actor(&[reserve(2, NOW)])
        .explore(run);
}

#[test]
fn each_of_two() {
    model("reservations::each_against_each", None, each_against_each);
}

#[test]
fn giving_up() {
    model("reservations::one_gives_up", None, one_gives_up);
    model("reservations::three_at_once", Some(2), three_at_once);
}

#[test]
fn faults_are_found() {
    let (name, why) = ("reservations", "go early | no order");
    with_faults(name, [Fault::CancelsInTheMiddle], why, None, one_gives_up);
    stored(name, why, None, one_gives_up);
}
