//! Reservations of a sliding window, which counts them in the window in which they are due.
//! Concurrent calls have the outcome of some sequential order, the bound holds at the ticks at
//! which permits are used, and no caller is due before one that reserved earlier.

use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::{Action as Any, Scenario as AnyScenario};

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

/// Checks the bound on used permits, where actors cancel only their last grant, completely.
fn keeps_the_bound(played: &ScenarioOutcome) {
    let mut goes: Vec<(u64, u64)> = Vec::new();
    for (before, answers) in played.before.iter().zip(&played.answers) {
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
    for answer in &played.after {
        if let Answer::Granted(last) = answer {
            let last = (last.due().as_nanos(), last.n());
            let is_last = goes.iter().all(|(due, _)| *due <= last.0);
            assert!(is_last, "the last caller overtakes: {goes:?}, {last:?}");
            goes.push(last);
        }
    }
    for &(from, _) in &goes {
        for &(to, _) in goes.iter().filter(|(to, _)| *to >= from) {
            let inside = goes.iter().filter(|(due, _)| (from..=to).contains(due));
            let sum: u64 = inside.map(|(_, n)| n).sum();
            let allowed = LIMIT + (to - from) * LIMIT / PERIOD_NS;
            assert!(sum <= allowed, "{sum} go early, from {from} to {to}");
        }
    }
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
