//! The exact log: threads claim one or several permits concurrently and help each other to enter
//! the claims, around the ring more than once. No period counts more than the limit. A thread that
//! stops does not hold up the others. The models find faults in this.

use tollgate::sync::model::exchanges;
use tollgate_loom_tests::logged::{Call, Rules, ask, take, take_up_to, time_until};
use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::rules::{each_interval, grants};
use tollgate_loom_tests::verbs::Verb;

type Tested = SlidingLog<NoClock>;
type Action = Any<Tested, ()>;
type Scenario = AnyScenario<Tested, ()>;

const PERIOD: u64 = 10;

/// The queries made at the end. They reveal the ticks of all permits that the log keeps and that
/// have not expired.
fn then(limit: u64) -> Vec<Call> {
    (1..=limit).map(|n| time_until(n, 0)).collect()
}

fn actions(calls: &[Call]) -> Vec<Action> {
    let action = |made: &Call| {
        let made = *made;
        Action::new(format!("{made:?}"), move |limiter: &Arc<Tested>, ()| {
            ask(limiter, made)
        })
    };
    calls.iter().map(action).collect()
}

/// A log with this limit in 10 ns.
fn log(limit: u64) -> Tested {
    let quota = Quota::per(limit, Duration::from_nanos(PERIOD));
    SlidingLog::with_clock(quota, NoClock).expect("a quota")
}

fn scenario(limit: u64, before: &[Call], actors: &[&[Call]]) -> Scenario {
    let mut scenario =
        Scenario::at(move || log(limit)).rule(move |played| never_more(limit, played));
    for (who, calls) in actors.iter().enumerate() {
        let before = if who == 0 { before } else { &[] };
        scenario = scenario.actor_after(&actions(before), &actions(calls));
    }
    scenario.after(move |limiter, _| {
        then(limit)
            .into_iter()
            .map(|made| ask(limiter, made))
            .collect()
    })
}

/// Checks that the answers have no more than the limit in any period.
fn never_more(limit: u64, played: &ScenarioOutcome) {
    let period = Duration::from_nanos(PERIOD);
    each_interval(&grants(played.all()), |from, to, sum| {
        let is_long = to.saturating_since(from) >= period;
        assert!(
            is_long || sum <= limit,
            "{sum} permits in {from:?}..={to:?}"
        );
    });
}

fn rules(limit: u64) -> Rules {
    let period = PERIOD;
    Rules { limit, period }
}

/// Checks that the answers are those of the definition in some order.
fn explore(limit: u64, before: &[Call], actors: &[&[Call]], run: &mut Run) {
    let [required, others] = rules(limit).told(before, actors, &then(limit));
    scenario(limit, before, actors).explore_among(run, required, others);
}

/// Each call against each other, from each state, at one tick and at two; with limits of one to
/// three.
fn each_call_against_each_other(run: &mut Run) {
    let states: [(u64, &[Call]); 4] = [
        (1, &[take(1, 12)]),
        (2, &[]),
        (2, &[take(1, 8), take(1, 15)]),
        (3, &[take(2, 8), take(1, 15), take(1, 19)]),
    ];
    let calls = |limit: u64, at| {
        let two = limit.min(2);
        [
            take(1, at),
            take(two, at),
            take_up_to(limit, at),
            (Verb::Available, at),
            time_until(two, at),
        ]
    };
    for (limit, state) in states {
        for (one, other) in pairs(|at| calls(limit, at), 20, &[20, 25]) {
            explore(limit, state, &[&[one], &[other]], run);
        }
    }
}

/// Claims of several permits, against claims of one and of several.
fn several(run: &mut Run) {
    let cases: [(u64, u64, [&[Call]; 2]); 4] = [
        (2, 2, [&[take(2, 20)], &[take(1, 21), take(1, 31)]]),
        (2, 1, [&[take(2, 20)], &[take(2, 21), take(1, 31)]]),
        (3, 3, [&[take(2, 20)], &[take(2, 21), take_up_to(3, 30)]]),
        (3, 3, [&[take(3, 20), take(1, 30)], &[take(1, 19)]]),
    ];
    for (limit, taken, actors) in cases {
        explore(limit, &[take(taken, 5)], &actors, run);
    }
}

/// An actor claims while another goes around the ring more than once.
fn overtaken(limit: u64, run: &mut Run) {
    let fast: &[Call] = &[take(1, 20), take(1, 30), take(limit, 41)];
    explore(limit, &[], &[&[take(1, 20)], fast], run);
}

/// Around the ring more than once: claimed places are claimed again before they were read.
fn laps(limit: u64, run: &mut Run) {
    overtaken(limit, run);
    let late: &[Call] = &[take(1, 19), take(1, 33)];
    explore(limit, &[take(limit, 5)], &[&[take(1, 21)], late], run);
}

/// An actor looks at the ring while another goes around it.
fn late_look(run: &mut Run) {
    let other: &[Call] = &[take(1, 20), take(1, 21)];
    explore(2, &[take(2, 5)], &[&[take(1, 30)], other], run);
}

/// Two claims of all permits, a period apart.
fn two_claims(run: &mut Run) {
    explore(2, &[take(2, 5)], &[&[take(2, 20)], &[take(2, 31)]], run);
}

/// Three threads: two claim, and the third makes one of these calls, the first under a limit of one
/// and the second under a limit of two.
fn three(thirds: [Call; 2], run: &mut Run) {
    for (limit, third) in (1..).zip(thirds) {
        let one: &[Call] = &[take(limit, 20)];
        let actors = [one, &[take(1, 21)], &[third]];
        explore(limit, &[take(limit, 5)], &actors, run);
    }
}

/// The first actor stops forever, before each of its operations in turn. The first case has a limit
/// of one, the second a limit of two, and so on.
fn one_stops(cases: &[[&[Call]; 3]], run: &mut Run) {
    for (limit, &[before, stops, goes_on]) in (1..).zip(cases) {
        let allowed = (0..=stops.len()).map(|done| {
            // The stopped actor's next call took effect, or it did not.
            let both = [done, (done + 1).min(stops.len())].map(|calls| {
                let actors = [&stops[..calls], goes_on];
                let [_, mut told] = rules(limit).told(before, &actors, &then(limit));
                for told in &mut told {
                    told[0].truncate(done);
                }
                told
            });
            both.concat()
        });
        let allowed = allowed.collect();
        let scenario = scenario(limit, before, &[stops, goes_on]);
        scenario.explore_stopping_among(run, 0, allowed);
    }
}

/// One call each.
fn one_stops_once(run: &mut Run) {
    let cases: [[&[Call]; 3]; 2] = [
        [&[take(1, 5)], &[take(1, 20)], &[take(1, 31)]],
        [&[take(1, 5)], &[take(2, 20)], &[take(1, 21)]],
    ];
    one_stops(&cases, run);
}

/// The other actor goes around the ring several times.
fn one_stops_on_its_way(run: &mut Run) {
    let cases: [[&[Call]; 3]; 3] = [
        [&[], &[take(1, 20)], &[take(1, 31), take(1, 41)]],
        [&[take(2, 5)], &[take(2, 20)], &[take(1, 21), take(2, 31)]],
        [
            &[take(3, 5)],
            &[take(2, 20), take(1, 21)],
            &[take_up_to(3, 18), time_until(2, 31)],
        ],
    ];
    one_stops(&cases, run);
}

/// Returns how many exchanges this call makes.
fn exchanges_of(log: &Tested, call: Call) -> u64 {
    exchanges(|| {
        ask(log, call);
    })
}

/// Two actors each take one permit: one exchange each, and one more for the actor that lost.
fn two_exchange(run: &mut Run) {
    run.explore_all(vec![[1, 1], [1, 2], [2, 1]], |layout| {
        let log = Arc::new(log(16));
        let actors = [(), ()].map(|()| {
            let log = Arc::clone(&log);
            actor(move || exchanges_of(&log, take(1, 20)))
        });
        let made = layout.act(actors.into());
        [made[0], made[1]]
    });
}

#[test]
fn one_exchange_a_permit() {
    let alone = |run: &mut Run| {
        run.explore(|_| {
            let log = log(16);
            let of_each: Vec<_> = (0..16).map(|_| exchanges_of(&log, take(1, 20))).collect();
            // Every eighth permit moves the head, which takes another exchange.
            assert_eq!(of_each, [1, 1, 1, 1, 1, 1, 1, 2].repeat(2));
            // A denial and a query make none.
            let reads = [
                take(1, 29),
                take(2, 29),
                take_up_to(1, 29),
                time_until(3, 29),
            ];
            assert_eq!(reads.map(|call| exchanges_of(&log, call)), [0; 4]);
            // The claim's tick, the claim, two more entries, the claim's own entry, and the head.
            assert_eq!(exchanges_of(&log, take(3, 30)), 6);
        });
    };
    model("log::one_exchange_a_permit, alone", None, alone);
    model(
        "log::one_exchange_a_permit, two threads",
        None,
        two_exchange,
    );
}

#[test]
fn each_against_each() {
    let name = "log::each_against_each";
    model(name, deeper(1, None), each_call_against_each_other);
}

#[test]
fn several_at_once() {
    model("log::several_at_once", deeper(1, 2), several);
}

#[test]
fn laps_of_one_and_of_two() {
    model("log::laps_of_one", Some(1), |run| laps(1, run));
    let longer = "log::laps_of_one, of two preemptions";
    deep_model(longer, Some(2), |run| laps(1, run));
    model("log::laps_of_two", deeper(1, 2), |run| laps(2, run));
    model("log::late_look", deeper(1, 2), late_look);
}

#[test]
fn three_at_once() {
    let looks = [time_until(1, 22), (Verb::Available, 31)];
    let name = "log::three_at_once, one looks";
    deep_model(name, Some(1), |run| three(looks, run));
    let longer = "log::three_at_once, one looks, of two preemptions";
    deep_model(longer, Some(2), |run| three(looks, run));
    let claims = [take(1, 32), take(1, 31)];
    model("log::three_at_once", Some(1), |run| three(claims, run));
}

#[test]
fn a_stopped_thread_stops_no_other() {
    let name = "log::a_stopped_thread_stops_no_other";
    model(name, deeper(1, 4), one_stops_once);
    let name = "log::a_stopped_thread_stops_no_other, on the way";
    model(name, Some(1), one_stops_on_its_way);
}

/// The messages if the log grants more than the limit, or if its answers match no order.
const TOO_MANY: &str = " permits in | no order";

#[test]
fn faults_and_weaker_orderings_are_found() {
    let for_ever = "exceeded maximum number of branches";
    on_broken("log", None, two_claims)
        .finds([Fault::NeverHelps], for_ever)
        .finds([Fault::TakesUnentered], TOO_MANY);
    on_broken("log", Some(2), several).finds([Fault::LapsTheHead], TOO_MANY);
    let source = Source(&["multiword/log/claim.rs"]);
    let entries = source.sites(["entry.load(", ".compare_exchange(old"]);
    on_broken("log", Some(2), |run: &mut Run| overtaken(2, run))
        .stored(TOO_MANY)
        .finds([Fault::TrustsAnOldHead], TOO_MANY)
        .relaxed(entries, TOO_MANY);
    let heads = source.sites(["self.head.load(", ".compare_exchange(head"]);
    on_broken("log", Some(2), late_look).relaxed(heads, TOO_MANY);
}
