//! A key gets its own algorithm, then another one, then none. No decision mixes two algorithms, and
//! each outcome is that of some sequential order of the same calls. A thread that stops in the
//! middle of a change stops no decision. The models find faults in this.
//!
//! In a model, a slot can tell only four override numbers apart, so that the numbers repeat.

use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::tables::{
    self, A, B, TableOf, available, forget, refund, take, take_up_to, undo,
};
use tollgate_loom_tests::total::Lenient as Total;

type Action = tables::Action<Total>;
type Scenario = tables::Scenario<Total>;

const LIMIT: u64 = 3;
const NOW: u64 = 5;

/// A table of two slots, in which one key can have its own algorithm.
fn for_one() -> TableOf<Total> {
    let table = tables::table(Total::of(LIMIT), 2);
    table.with_overrides(1).expect("one plan")
}

fn unmixed(scenario: Scenario) -> Scenario {
    tables::unmixed(scenario, "algorithm")
}

fn scenario(keys: &'static [u64]) -> Scenario {
    unmixed(tables::scenario(for_one, keys, NOW))
}

fn own(key: u64, limit: u64) -> Action {
    let name = format!("{key:#x} has {limit} of its own");
    Action::new(name, move |limiter, _| {
        let view = limiter.key(&key).at(Tick::from_nanos(NOW));
        Answer::Is(view.set_override(Total::of(limit)).is_ok())
    })
}

fn none(key: u64) -> Action {
    let name = format!("{key:#x} has none of its own");
    Action::new(name, move |limiter, _| {
        let view = limiter.key(&key).at(Tick::from_nanos(NOW));
        Answer::Is(view.remove_override())
    })
}

fn set_plan(limit: u64) -> Action {
    tables::set_plan(0, limit, Keep::AsIs, NOW)
}

fn one(key: u64) -> Action {
    take(key, 1, NOW)
}

/// The key has its own algorithm, and two of its permits are left. Every other algorithm here
/// leaves more, so the word shows which one it belongs to.
fn spent() -> [Action; 2] {
    [own(A, 6), take(A, 4, NOW)]
}

/// One actor changes the key's algorithm. The other does each other action on a key that is
/// tracked, or is not.
fn against_each_verb(run: &mut Run) {
    let changes: [(&[Action], Action); 4] = [
        (&[], own(A, 6)),
        (&[], own(A, 1)),
        (&[own(A, 6)], own(A, 2)),
        (&[own(A, 6)], none(A)),
    ];
    for (before, change) in changes {
        for is_there in [false, true] {
            for verb in [
                one(A),
                take(A, 3, NOW),
                take_up_to(A, 5, NOW),
                undo(A, NOW),
                refund(A, 1, NOW),
                available(A, NOW),
                forget(A),
                one(B),
            ] {
                let changes = scenario(&[A, B]).actor_after(before, std::slice::from_ref(&change));
                let state = if is_there { vec![one(A)] } else { vec![] };
                changes.actor_after(&state, &[verb]).explore(run);
            }
        }
    }
}

/// The key is inserted while it gets its own algorithm, another one, or none.
fn comes(run: &mut Run) {
    for (before, change) in [
        (vec![], own(A, 6)),
        (vec![own(A, 6)], own(A, 2)),
        (vec![own(A, 6)], none(A)),
    ] {
        let changes = scenario(&[A]).actor_after(&before, &[change]);
        changes.actor(&[one(A), available(A, NOW)]).explore(run);
    }
}

/// The key has its own algorithm, and gets another one or none.
fn carried(run: &mut Run) {
    for change in [own(A, 8), own(A, 1), none(A)] {
        let changes = scenario(&[A]).actor_after(&spent(), &[change, one(A)]);
        changes.actor(&[take(A, 2, NOW)]).explore(run);
    }
}

/// The key gets one algorithm after the other, and a decision on it is late by some of the changes.
fn late(run: &mut Run) {
    let changes = [own(A, 7), none(A), own(A, 8), none(A)];
    let changes = scenario(&[A]).actor_after(&spent(), &changes);
    changes.actor(&[one(A)]).explore_rules(run);
}

/// A key returns to its plan, while the plan's quota changes so often that versions repeat.
fn back_to_its_plan(run: &mut Run) {
    let sets = [7, 8, 9, 10].map(set_plan);
    let back = scenario(&[A]).actor_after(&spent(), &[none(A)]);
    back.actor(&sets).explore_rules(run);
}

/// Another key's override takes the entry that this key's override had.
fn taken(run: &mut Run) {
    let changes = [none(A), own(B, 8), one(B)];
    let changes = scenario(&[A, B]).actor_after(&spent(), &changes);
    changes.actor(&[one(A)]).explore(run);
}

/// Two threads change the algorithm, or one of them the plan's quota.
fn against_two(run: &mut Run) {
    for other in [own(A, 8), none(A), set_plan(7)] {
        let two = scenario(&[A]).actor_after(&spent(), &[none(A)]);
        two.actor(&[other, one(A)]).explore(run);
    }
    let two = scenario(&[A]).actor_after(&[one(A)], &[own(A, 6)]);
    two.actor(&[set_plan(7), one(A)]).explore(run);
}

/// A thread that changes the algorithm, or one that decides, stops forever, before each of its
/// operations in turn.
fn one_stops(run: &mut Run) {
    let casts: [[&[Action]; 3]; 4] = [
        [&[one(A)], &[own(A, 6)], &[one(A), one(B)]],
        [&[own(A, 6), one(A)], &[own(A, 2)], &[one(A), one(B)]],
        [&[own(A, 6), one(A)], &[none(A)], &[one(A), one(B)]],
        [&[own(A, 6)], &[one(A)], &[own(A, 2), one(A)]],
    ];
    for [before, stops, goes_on] in casts {
        let scenario = unmixed(tables::stopped_scenario(for_one, &[A, B], NOW));
        let scenario = scenario.actor_after(before, stops).actor(goes_on);
        scenario.explore_stopping_or_done(run, 0);
    }
}

const SOURCE: Source = Source(&["keyed/plans/overrides.rs"]);
const MIXED: &str = "no order of the verbs | another algorithm | overflow | two quotas are mixed";
const FOR_EVER: &str = "exceeded maximum number of branches";

#[test]
fn a_change_reaches_the_key() {
    let name = "keyed_overrides::a_change_reaches_the_key";
    model(name, Some(2), against_each_verb);
    let why = format!("{MIXED} | {FOR_EVER}");
    model(name, Some(2), carried).finds([Fault::Idle(source::migrate())], &why);
    model(name, deeper(1, 2), against_two);
    model(name, Some(2), taken);
}

#[test]
fn a_key_inserted_meanwhile_has_the_new_algorithm() {
    let name = "keyed_overrides::a_key_inserted_meanwhile_has_the_new_algorithm";
    let why = format!("{MIXED} | {FOR_EVER}");
    model(name, Some(2), comes)
        .finds([Fault::ReadsTheVersionFirst], &why)
        .finds([Fault::Idle(source::release())], &why)
        .relaxed([source::change_of_table()], &why);
}

#[test]
fn a_decision_that_is_late_by_several_changes_mixes_nothing() {
    let name = "keyed_overrides::a_decision_that_is_late_by_several_changes_mixes_nothing";
    model(name, Some(1), back_to_its_plan)
        .bound(Some(2))
        .finds([Fault::ChangesQuotasMeanwhile], MIXED);
    let longer = "keyed_overrides::a_decision_that_is_late";
    deep_model(longer, Some(2), late);
}

#[test]
fn a_thread_that_stops_in_a_change_stops_no_decision() {
    let name = "keyed_overrides::a_thread_that_stops_in_a_change_stops_no_decision";
    model(name, Some(1), one_stops);
}

/// All explorations that are fast.
fn all(run: &mut Run) {
    comes(run);
    carried(run);
    against_two(run);
    against_each_verb(run);
}

#[test]
fn weaker_orderings_are_found() {
    let name = "keyed_overrides::weaker_orderings_are_found";
    let why = format!("{MIXED} | {FOR_EVER}");
    let sites = SOURCE.sites([
        "key.store(hash << HASH_SHIFT | USED, ",
        "self.latest.store(number",
        "key.store(0, Ordering::Release)",
        "let mut latest = self.latest.load",
        "if !is_it(key.load(Ordering::Acquire))",
        "is_it(key.load(Ordering::Acquire)).then",
    ]);
    on_broken(name, Some(2), all).relaxed(sites, &why);
}
