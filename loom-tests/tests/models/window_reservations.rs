//! Reservations of a sliding window, which counts them in the window in which they are due.
//! Concurrent calls have the outcome of some sequential order, the bound holds at the ticks at
//! which permits are used, and no caller is due before one that reserved earlier.

use tollgate_loom_tests::Scenario as AnyScenario;
use tollgate_loom_tests::calls::{Call, cancel, reserve, take_and_use as take};
use tollgate_loom_tests::prelude::*;

use super::reservations::{NOW, arrive, assert_allowed, last_reserves, ticks_of_use};

type Tested = Limiter<SlidingWindow, NoClock>;
type Action = Call<Tested>;
type Scenario = AnyScenario<Tested, Option<Granted>>;

const LIMIT: u64 = 4;
const PERIOD_NS: u64 = 40;

fn limiter() -> Tested {
    let quota = Quota::per(LIMIT, Duration::from_nanos(PERIOD_NS));
    Limiter::unstarted(SlidingWindow::new(quota).expect("a quota"), NoClock)
}

fn keeps_the_bound(played: &ScenarioOutcome) {
    let goes = ticks_of_use(played);
    // The last caller comes after all others.
    if let Some((last, before)) = goes.split_last() {
        let is_last = before.iter().all(|(due, _)| *due <= last.0);
        assert!(is_last, "the last caller overtakes: {before:?}, {last:?}");
    }
    assert_allowed(&goes, |ns| LIMIT + ns * LIMIT / PERIOD_NS);
}

/// A scenario at whose end a last caller reserves.
fn scenario() -> Scenario {
    last_reserves(limiter).rule(keeps_the_bound)
}

/// A caller that reserved gives up while others arrive.
fn one_gives_up(run: &mut Run) {
    let states: [&[Action]; 2] = [
        &[take(LIMIT, NOW), reserve(2, NOW)],
        &[take(LIMIT - 1, NOW), reserve(2, NOW)],
    ];
    for before in states {
        for others in arrive() {
            let gives_up = scenario().actor_after(before, &[cancel(2, NOW), reserve(1, NOW)]);
            gives_up.actor(&others).explore(run);
        }
    }
}

#[test]
fn giving_up() {
    model("window_reservations::one_gives_up", None, one_gives_up);
}

#[test]
fn faults_are_found() {
    let (name, why) = ("window_reservations", "overtakes | no order");
    with_faults(name, [Fault::CancelsInTheMiddle], why, None, one_gives_up);
}
