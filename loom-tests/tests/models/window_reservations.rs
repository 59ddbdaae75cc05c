//! Reservations of a sliding window, which counts them in the window in which they are due.
//! Concurrent calls have the outcome of some sequential order, the bound holds at the ticks at
//! which permits are used, and no caller is due before one that reserved earlier.

use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::{Action as Any, Scenario as AnyScenario};

use super::reservations::{assert_allowed, ticks_of_use};

type Tested = Limiter<SlidingWindow, NoClock>;
type Action = Any<Tested, Option<Granted>>;
type Scenario = AnyScenario<Tested, Option<Granted>>;

const LIMIT: u64 = 4;
const PERIOD_NS: u64 = 40;
const NOW: Tick = Tick::from_nanos(50);

fn limiter() -> Tested {
    let quota = Quota::per(LIMIT, core::time::Duration::from_nanos(PERIOD_NS));
    Limiter::unstarted(SlidingWindow::new(quota).expect("a quota"), NoClock)
}

/// Takes permits that the caller uses at once.
fn take(n: u64) -> Action {
    Action::new(format!("take {n}"), move |limiter, _| {
        match limiter.at(NOW).try_acquire_n(n) {
            Ok(granted) => Answer::Granted(granted),
            Err(denied) => Answer::Denied(denied),
        }
    })
}

fn reserve(n: u64) -> Action {
    Action::new(format!("reserve {n}"), move |limiter, memory| match limiter
        .at(NOW)
        .reserve_until(n, Tick::MAX)
    {
        Ok(granted) => {
            *memory = Some(granted);
            Answer::Granted(granted)
        }
        Err(denied) => Answer::Denied(denied),
    })
}

fn cancel(n: u64) -> Action {
    Action::new(format!("cancel {n}"), move |limiter, memory| {
        match memory.take() {
            Some(granted) => Answer::Returned(limiter.at(NOW).cancel(granted, n).1),
            None => Answer::Done,
        }
    })
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
    let scenario = Scenario::at(limiter).after(|limiter, _| {
        let last = limiter.at(NOW).reserve_until(1, Tick::MAX);
        vec![Answer::Granted(last.expect("it will be there"))]
    });
    scenario.rule(keeps_the_bound)
}

/// A caller that reserved gives up while others arrive.
fn one_gives_up(run: &mut Run) {
    let others: [&[Action]; 4] = [
        &[reserve(1)],
        &[reserve(2), cancel(2)],
        &[reserve(1), reserve(1)],
        &[take(1), reserve(1)],
    ];
    let states: [&[Action]; 2] = [&[take(LIMIT), reserve(2)], &[take(LIMIT - 1), reserve(2)]];
    for before in states {
        for others in others {
            let gives_up = scenario().actor_after(before, &[cancel(2), reserve(1)]);
            gives_up.actor(others).explore(run);
        }
    }
}

#[test]
fn giving_up() {
    model("window_reservations::one_gives_up", None, one_gives_up);
}

#[test]
fn faults_are_found() {
    with_fault(
        "window_reservations",
        Fault::CancelsInTheMiddle,
        "overtakes | no order",
        None,
        one_gives_up,
    );
}
