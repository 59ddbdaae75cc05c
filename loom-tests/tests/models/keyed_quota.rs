//! A quota that changes for all keys of a table. No decision mixes two quotas, whichever keys are
//! inserted meanwhile and however many changes a late thread misses. Keys move between plans. A
//! thread that stops in the middle of a change stops no decision. The models find faults in this.
//!
//! In a model, a slot can tell only four versions apart, so the fourth change repeats the first
//! version.

use tollgate::Keyed;
use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::tables::{
    self, A, B, FrozenClock, IdentityState, TableOf, available, forget, refund, take, take_by, undo,
};
use tollgate_loom_tests::total::Lenient as Total;

type Action = tables::Action<Total>;
type Scenario = tables::Scenario<Total>;

const LIMIT: u64 = 3;
const NOW: u64 = 5;

fn two_slots() -> TableOf<Total> {
    tables::table(Total::of(LIMIT), 2)
}

/// A table of two plans.
fn two_plans() -> TableOf<Total> {
    let plans = [LIMIT, 2 * LIMIT].map(Total::of);
    let table = Keyed::with_plans(plans, 2, FrozenClock).expect("two plans");
    table.with_hasher(IdentityState::default())
}

/// A scenario on such a table, in which no answer comes from another quota's word.
fn scenario_at(make: fn() -> TableOf<Total>, keys: &'static [u64]) -> Scenario {
    unmixed(tables::scenario(make, keys, NOW))
}

fn unmixed(scenario: Scenario) -> Scenario {
    tables::unmixed(scenario, "quota")
}

fn scenario(keys: &'static [u64]) -> Scenario {
    scenario_at(two_slots, keys)
}

fn set_by(plan: usize, limit: u64, keep: Keep) -> Action {
    tables::set_plan(plan, limit, keep, NOW)
}

fn set(limit: u64, keep: Keep) -> Action {
    set_by(0, limit, keep)
}

fn as_is(limit: u64) -> Action {
    set(limit, Keep::AsIs)
}

fn one(key: u64) -> Action {
    take(key, 1, NOW)
}

fn by(plan: usize, key: u64) -> Action {
    let name = format!("take 1 of {key:#x} by plan {plan}");
    take_by(plan, key, 1, NOW, name)
}

/// One actor changes the quota. The other does each other action on a key that is tracked, or is
/// not.
fn against_each_verb(run: &mut Run) {
    let states: [&[Action]; 2] = [&[], &[one(A)]];
    for state in states {
        for (limit, keep) in [(1, Keep::AsIs), (6, Keep::Scaled), (6, Keep::Fresh)] {
            for verb in [
                one(A),
                take(A, 3, NOW),
                undo(A, NOW),
                refund(A, 1, NOW),
                available(A, NOW),
                forget(A),
                one(B),
            ] {
                let sets = scenario(&[A, B]).actor(&[set(limit, keep)]);
                sets.actor_after(state, &[verb]).explore(run);
            }
        }
    }
}

/// Two changes against two decisions.
fn against_two(run: &mut Run) {
    let sets = scenario(&[A]).actor(&[as_is(1), as_is(4)]);
    sets.actor_after(&[one(A)], &[take(A, 2, NOW), one(A)])
        .explore(run);
    // The first change allocates what changes need, behind a lock of the standard library. So it
    // is made before the actors begin.
    let two_set = scenario(&[A]).actor_after(&[as_is(5)], &[as_is(4)]);
    two_set.actor_after(&[one(A)], &[as_is(2)]).explore(run);
}

/// Enough changes that versions repeat.
fn many() -> [Action; 5] {
    [4, 5, 6, 7, 8].map(as_is)
}

/// An actor that inserts a key is late by some or all of these changes.
fn late(run: &mut Run) {
    let sets = scenario(&[A]).actor(&many());
    sets.actor(&[one(A)]).explore_rules(run);
}

/// An actor that decides on a tracked key is late by them.
fn late_with_a_key(run: &mut Run) {
    let sets = scenario(&[A]).actor_after(&[one(A)], &many());
    sets.actor(&[one(A)]).explore_rules(run);
}

/// The actor that changes the quota migrates a key, and the other one finds it migrated.
fn carried(run: &mut Run) {
    let sets = scenario(&[A]).actor_after(&[one(A)], &[as_is(4), one(A)]);
    sets.actor(&[one(A)]).explore(run);
}

/// The key is migrated by a query, which decides nothing.
fn migrated(run: &mut Run) {
    let sets = scenario(&[A]).actor_after(&[one(A)], &[as_is(4), available(A, NOW)]);
    sets.actor(&[one(A)]).explore(run);
}

/// A key that is not used during several changes.
fn untouched(run: &mut Run) {
    let sets = scenario(&[A]).actor_after(&[one(A)], &many());
    sets.explore(run);
}

/// A key moves from one plan to the other while one of them changes.
fn between_plans(run: &mut Run) {
    for plan in [0, 1] {
        let sets = scenario_at(two_plans, &[A]);
        let sets = sets.actor_after(&[one(A)], &[set_by(plan, 8, Keep::AsIs)]);
        sets.actor(&[by(1, A), by(0, A)]).explore(run);
    }
    let two = scenario_at(two_plans, &[A]);
    two.actor(&[by(0, A)]).actor(&[by(1, A)]).explore(run);
}

/// A key moves between plans, late by several changes. The version of the last change has the same
/// bits as the first. (With one more change, an unused key's slot would look as it did before.)
fn late_between_plans(run: &mut Run) {
    let many = [8, 9, 10, 11].map(|limit| set_by(1, limit, Keep::AsIs));
    let sets = scenario_at(two_plans, &[A]).actor_after(&[one(A)], &many);
    sets.actor(&[by(1, A)]).explore_rules(run);
}

/// An actor that changes the quota or decides stops forever, before each of its operations in turn.
fn one_stops(run: &mut Run) {
    let casts: [[&[Action]; 2]; 3] = [
        [&[as_is(6)], &[one(A), one(B)]],
        [&[one(A)], &[as_is(2), one(A)]],
        [&[one(B)], &[as_is(2), one(B)]],
    ];
    for [stops, goes_on] in casts {
        let scenario = unmixed(tables::stopped_scenario(two_slots, &[A, B], NOW));
        let scenario = scenario.actor_after(&[one(A)], stops).actor(goes_on);
        scenario.explore_stopping_or_done(run, 0);
    }
}

const SOURCE: Source = Source(&[
    "keyed/plans/mod.rs",
    "keyed/plans/set.rs",
    "keyed/find/table/transitions.rs",
]);
const MIXED: &str = "two quotas are mixed | another quota | overflow";

#[test]
fn a_change_reaches_every_key() {
    let name = "keyed_quota::a_change_reaches_every_key";
    model(name, Some(2), migrated);
    model(name, Some(2), against_each_verb);
    model(name, Some(2), against_two);
    model(name, None, carried);
    model(name, None, untouched).finds([Fault::Idle(source::migrate())], MIXED);
}

#[test]
fn weaker_orderings_are_found() {
    let name = "keyed_quota";
    let for_ever = "exceeded maximum number of branches";
    let why = format!("mixed | another quota | overflow | Causality violation | {for_ever}");
    let decide = "self.exchange(at, live, next)";
    let sites = SOURCE.sites(["self.version.load", "self.version.store", decide]);
    on_broken(name, Some(2), carried).relaxed(sites, &why);
    on_broken(name, Some(2), migrated).relaxed([source::migrate()], &why);
}

#[test]
fn a_thread_late_by_many_changes_mixes_nothing() {
    let name = "keyed_quota::a_thread_late_by_many_changes_mixes_nothing";
    let longer = "keyed_quota::a_thread_late_by_many_changes, of two preemptions";
    model(name, Some(1), late_with_a_key);
    deep_model(longer, Some(2), late);
    model(name, Some(1), late)
        .bound(Some(2))
        .finds([Fault::ReadsTheVersionFirst], MIXED)
        .finds([Fault::Idle(source::release())], MIXED)
        .relaxed([source::change_of_table()], MIXED);
}

#[test]
fn a_key_goes_to_another_plan() {
    let name = "keyed_quota::a_key_goes_to_another_plan";
    model(name, Some(2), between_plans);
    model(name, Some(2), late_between_plans).finds([Fault::Idle(source::migrate())], MIXED);
}

#[test]
fn a_stopped_thread_stops_no_other() {
    let name = "keyed_quota::a_stopped_thread_stops_no_other";
    model(name, Some(1), one_stops);
}
