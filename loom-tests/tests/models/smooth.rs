//! The smooth limiters: threads take turns and change the rate concurrently, and the outcome is
//! that of some sequential order of the same verbs. A thread that stops while setting a rate stops
//! no decision. The models find faults in this.

use tollgate_loom_tests::prelude::*;
use tollgate_smooth::{SmoothBursty, SmoothReservation, SmoothWarmingUp};

/// A limiter that warms up, so that the stored permits affect the cost of a turn.
type Tested = SmoothWarmingUp<NoClock>;
type Action = Any<Tested, ()>;
type Scenario = AnyScenario<Tested, ()>;

const SECOND: u64 = 1_000_000_000;
const NO_ORDER: &str = "no order";

/// Two permits a second, warm after four seconds. It starts cold, with eight permits stored.
fn limiter() -> Tested {
    SmoothWarmingUp::started_at(2.0, Duration::from_secs(4), NoClock, Tick::ZERO).expect("a rate")
}

fn tick(seconds: u64) -> Tick {
    Tick::from_nanos(seconds * SECOND)
}

fn answer(turn: Result<SmoothReservation, Denied>) -> Answer {
    match turn {
        Ok(turn) => Answer::Wait(Some(turn.delay())),
        Err(denied) => Answer::Denied(denied),
    }
}

/// An answer with the bits of a double.
fn double(value: f64) -> Answer {
    Answer::Count(value.to_bits())
}

fn take(n: u64, at: u64) -> Action {
    Action::new(format!("take {n} at {at}"), move |limiter, ()| {
        answer(limiter.reserve_at(n, tick(at)))
    })
}

fn try_take(n: u64, at: u64) -> Action {
    Action::new(format!("try {n} at {at}"), move |limiter, ()| {
        answer(limiter.try_acquire_n_at(n, tick(at)))
    })
}

fn try_within(seconds: u64, at: u64) -> Action {
    let name = format!("try 1 within {seconds} at {at}");
    Action::new(name, move |limiter, ()| {
        answer(limiter.reserve_within_at(1, Duration::from_secs(seconds), tick(at)))
    })
}

fn set(rate: f64, at: u64) -> Action {
    Action::new(format!("set {rate} at {at}"), move |limiter, ()| {
        limiter.set_rate_at(rate, tick(at)).expect("a rate");
        Answer::Done
    })
}

fn rate() -> Action {
    Action::new("rate", |limiter: &Arc<Tested>, ()| double(limiter.rate()))
}

fn stored_at(at: u64) -> Action {
    Action::new(format!("stored at {at}"), move |limiter, ()| {
        double(limiter.stored_at(tick(at)))
    })
}

fn next_free(at: u64) -> Action {
    Action::new(format!("next free at {at}"), move |limiter, ()| {
        Answer::Count(limiter.next_free_at(tick(at)).as_nanos())
    })
}

/// A scenario that asks for the complete state at its end.
fn scenario() -> Scenario {
    Scenario::at(limiter).after(|limiter, _| {
        vec![
            Answer::Count(limiter.next_free_at(Tick::ZERO).as_nanos()),
            double(limiter.stored_at(Tick::ZERO)),
            double(limiter.rate()),
        ]
    })
}

fn verbs(at: u64) -> [Action; 9] {
    [
        take(1, at),
        take(9, at),
        try_take(2, at),
        try_within(2, at),
        set(1.0, at),
        set(4.0, at),
        rate(),
        stored_at(at),
        next_free(at),
    ]
}

/// Each verb against each other: cold, between cold and warm, with nothing stored and a turn still
/// to come, and after another rate; at one tick and at two.
fn each_verb_against_each_other(run: &mut Run) {
    let states: [&[Action]; 4] = [
        &[],
        &[take(3, 0)],
        &[take(12, 0)],
        &[set(3.0, 0), take(2, 0)],
    ];
    for state in states {
        for (one, other) in pairs(verbs, 1, &[1, 30]) {
            let scenario = scenario().actor_after(state, &[one]);
            scenario.actor(&[other]).explore(run);
        }
    }
}

/// Both actors do two things; one of them sets the rate once or twice.
fn two_after_two() -> impl Iterator<Item = Scenario> {
    let casts: [[&[Action]; 2]; 7] = [
        [&[take(1, 1), take(2, 1)], &[take(3, 1), take(1, 2)]],
        [&[set(4.0, 1), take(1, 1)], &[take(1, 1), take(1, 9)]],
        [&[set(4.0, 1), set(1.0, 2)], &[take(1, 1), take(2, 9)]],
        [&[set(4.0, 1), set(1.0, 2)], &[try_take(1, 1), rate()]],
        [&[set(4.0, 1), set(1.0, 2)], &[set(3.0, 1), take(1, 1)]],
        [&[set(4.0, 1), set(1.0, 2)], &[stored_at(4), rate()]],
        [&[set(4.0, 1), set(1.0, 2)], &[rate(), rate()]],
    ];
    let scenarios =
        casts.map(|[one, other]| scenario().actor_after(&[take(3, 0)], one).actor(other));
    scenarios.into_iter()
}

fn three_threads() -> impl Iterator<Item = Scenario> {
    let casts: [[Action; 3]; 3] = [
        [set(4.0, 1), set(1.0, 1), take(2, 1)],
        [set(4.0, 1), take(1, 1), take(2, 2)],
        [set(4.0, 1), try_within(2, 1), rate()],
    ];
    let scenarios = casts.map(|[one, other, third]| {
        let scenario = scenario().actor_after(&[take(2, 0)], &[one]);
        scenario.actor(&[other]).actor(&[third])
    });
    scenarios.into_iter()
}

/// Sets rates until the version wraps around to 0, while another actor takes a turn. If that actor
/// has seen the last rate, its turn is at that rate.
fn round_the_versions() -> impl Iterator<Item = Scenario> {
    let sets = (1..=16).map(|set_to| set(f64::from(set_to) / 4.0, 0));
    let sets: Vec<_> = sets.chain([next_free(0)]).collect();
    // Nothing is stored, and a turn is still to come: only the version tells the states apart.
    let scenario = scenario().actor_after(&[take(12, 0)], &sets);
    std::iter::once(scenario.actor(&[take(1, 0)]))
}

/// Each outcome is that of some order, and each order occurs.
fn all<P: Iterator<Item = Scenario>>(scenarios: impl Fn() -> P) -> impl Fn(&mut Run) {
    move |run| scenarios().for_each(|scenario| scenario.explore(run))
}

/// Each outcome is that of some order.
fn any<P: Iterator<Item = Scenario>>(scenarios: impl Fn() -> P) -> impl Fn(&mut Run) {
    move |run| scenarios().for_each(|scenario| scenario.explore_any(run))
}

/// An actor that sets a rate, or takes a turn, stops forever, before each of its operations in
/// turn.
fn one_stops_anywhere(run: &mut Run) {
    let casts: [[&[Action]; 2]; 5] = [
        [&[set(4.0, 1)], &[take(1, 1), take(2, 9)]],
        [&[set(4.0, 1)], &[try_take(1, 1), rate()]],
        [&[set(4.0, 1)], &[try_within(1, 1), stored_at(1)]],
        [&[take(2, 1)], &[set(4.0, 1), take(1, 1)]],
        [&[take(2, 1)], &[take(1, 1), next_free(1)]],
    ];
    for [stops, goes_on] in casts {
        let scenario = scenario().actor_after(&[take(2, 0)], stops);
        scenario.actor(goes_on).explore_stopping_or_done(run, 0);
    }
}

#[test]
fn each_against_each() {
    let name = "smooth::each_against_each";
    model(name, None, each_verb_against_each_other);
}

#[test]
fn each_after_another() {
    let name = "smooth::each_after_another";
    model(name, Some(3), all(two_after_two));
    on_broken(name, Some(3), any(two_after_two)).stored(NO_ORDER);
}

#[test]
fn three_at_once() {
    model("smooth::three_at_once", Some(2), all(three_threads));
}

#[test]
fn versions_wrap_around() {
    let name = "smooth::versions_wrap_around";
    model(name, Some(2), all(round_the_versions));
}

#[test]
fn a_stopped_thread_stops_no_other() {
    let name = "smooth::a_stopped_thread_stops_no_other";
    model(name, None, one_stops_anywhere);
}

/// Stored permits are free. The expected answers are derived by hand, and not from the limiter
/// itself.
#[test]
fn turns_match_answers_derived_by_hand() {
    type Action = Any<SmoothBursty<NoClock>, ()>;
    let take = |n: u64, at: u64| {
        Action::new("take", move |limiter: &Arc<SmoothBursty<NoClock>>, ()| {
            answer(limiter.reserve_at(n, tick(at)))
        })
    };
    let set = |rate: f64, at: u64| {
        Action::new("set", move |limiter: &Arc<SmoothBursty<NoClock>>, ()| {
            Answer::Is(limiter.set_rate_at(rate, tick(at)).is_ok())
        })
    };
    let at = |rate: f64| {
        AnyScenario::at(move || {
            SmoothBursty::started_at(rate, NoClock, Tick::ZERO).expect("a rate")
        })
    };
    model("smooth::turns_match_answers_derived_by_hand", None, |run| {
        // Two are stored. Taking three leaves half a second to wait, unless another actor has taken
        // the two before.
        let both = at(2.0).actor(&[take(3, 5)]).actor(&[take(2, 5)]);
        let after_three = "0 to wait | 500000000 to wait";
        both.explore_to(run, &[after_three, "0 to wait | 0 to wait"]);
        // Two permits at two a second become four at four a second. Then no actor waits; otherwise
        // one waits a second.
        let sets = at(2.0).actor(&[set(4.0, 5)]);
        let sets = sets.actor(&[take(4, 5), take(1, 5)]);
        let set_first = "true | 0 to wait, 0 to wait";
        sets.explore_to(run, &[set_first, "true | 0 to wait, 1000000000 to wait"]);
    });
}

#[test]
fn faults_and_weaker_orderings_are_found() {
    let sites = Source(&["../crates/tollgate-smooth/src/rates.rs"]).sites([
        "self.state.load(Ordering::Acquire)",
        "match self.state.compare_exchange_weak(",
        "f64::from_bits(self.place_of(state.version).load",
        ".swap(rate.to_bits()",
    ]);
    let faults = [
        Fault::Of("OverwritesTheRate"),
        // Returns a rate without checking the state again.
        Fault::Of("TellsWithoutALook"),
    ];
    on_broken("smooth", Some(2), any(two_after_two))
        .finds(faults, NO_ORDER)
        .relaxed(sites, NO_ORDER);
    // Two threads set rates at the same time.
    on_broken("smooth", Some(2), any(three_threads)).finds([Fault::Of("SetsTogether")], NO_ORDER);
    // The next turn does not move when the version numbers start again at 0.
    on_broken("smooth", Some(2), any(round_the_versions))
        .finds([Fault::Of("KeepsTheTurn")], NO_ORDER);
}
