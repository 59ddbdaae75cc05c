//! The quota of all keys of a map. Once it is set, no key gets more than the new quota allows, not
//! even a key inserted meanwhile. Each key is carried over once. If two threads set the quota, all
//! keys end up with the same one of the two. A thread that stops while it sets the quota stops no
//! decision.

use tollgate::Overflow;
use tollgate::adjustable::Keep;
use tollgate::sync::model::Fault;
use tollgate_loom_tests::{Answer, Run, ScenarioOutcome, Site, model, relaxed, with_fault};

use crate::keyed_map::{
    Action, Scenario, TOO_MUCH, count, counting_loads, give, granted, purge, quota, remove,
    scenario, scenario_of, take, tick, visit,
};

fn set(burst: u64, keep: Keep) -> Action {
    let name = format!("set {burst}, {keep:?}");
    Action::new(name, move |limiter, _| {
        Answer::Is(limiter.set_quota_at(quota(burst), keep, tick(0)).is_ok())
    })
}

fn unset(key: u64) -> Action {
    Action::new(format!("unset {key}"), move |limiter, _| {
        Answer::Is(limiter.unset_algorithm_at(&key, tick(0)))
    })
}

/// Asks at the end how many permits key 1 has, while the clock stands still.
fn with_remaining_permits(scenario: Scenario) -> Scenario {
    scenario.after(|limiter, _| vec![Answer::Count(limiter.key(&1).at(tick(0)).available())])
}

/// Checks that after the first actor has set a quota of one permit, this actor and later callers
/// get at most one permit.
fn one_at_most(scenario: Scenario) -> Scenario {
    with_remaining_permits(scenario).rule(|played| {
        let after: u64 = granted(&played.answers[0]) + played.after.iter().map(count).sum::<u64>();
        assert!(after <= 1, "{TOO_MUCH}: {after}");
    })
}

/// Another thread inserts a key, and takes a permit of it, while the quota is set.
fn a_new_key(run: &mut Run) {
    let sets = one_at_most(scenario_of(3, 2, Overflow::Deny));
    let sets = sets.actor(&[set(1, Keep::AsIs), take(1, 1, 0), take(1, 1, 0)]);
    sets.actor(&[take(1, 1, 0)]).explore_rules(run);
}

/// The same, with counted loads and another key that the inserting thread visits first.
fn a_new_key_with_counted_loads(run: &mut Run) {
    let sets = one_at_most(scenario_of(3, 2, Overflow::Deny));
    let sets = sets.actor(&[set(1, Keep::AsIs), take(1, 2, 0)]);
    let comes = sets.actor(&[visit(2), take(1, 1, 0)]);
    counting_loads(run, |run| comes.explore_rules(run));
}

/// Checks that the permits taken and those left add up: a key is carried over once.
fn adds_up(scenario: Scenario) -> Scenario {
    with_remaining_permits(scenario).rule(|played: &ScenarioOutcome| {
        let there: u64 = played.after.iter().map(count).sum();
        let taken = granted(played.all());
        assert_eq!(taken + there, 2, "{TOO_MUCH}, or less");
    })
}

fn a_known_key(run: &mut Run) {
    let known = || adds_up(scenario(2, Overflow::Deny));
    let sets = known().actor_after(&[take(1, 1, 0)], &[set(3, Keep::AsIs)]);
    sets.actor(&[take(1, 1, 0)]).explore_rules(run);
    let twice = known().actor_after(&[take(1, 1, 0)], &[set(3, Keep::AsIs), set(4, Keep::AsIs)]);
    twice
        .actor(&[take(1, 1, 0), purge(1, 0)])
        .explore_rules(run);
}

/// Checks that at the end all keys without their own algorithm have the same burst, which is one of
/// those that were set.
fn agrees(scenario: Scenario) -> Scenario {
    let after = |limiter: &std::sync::Arc<crate::keyed_map::Tested>, _: &mut [()]| {
        let bursts = [1, 2].map(|key| limiter.key(&key).at(tick(1_000)).available());
        let all = bursts.into_iter().chain([limiter.quota().burst_size()]);
        all.map(Answer::Count).collect()
    };
    scenario.after(after).rule(|played| {
        let bursts: Vec<u64> = played.after.iter().map(count).collect();
        let same = bursts.windows(2).all(|two| two[0] == two[1]);
        assert!(same && bursts[0] < 3, "{TOO_MUCH}: {bursts:?}");
    })
}

fn two_threads_set_it(run: &mut Run) {
    let first = agrees(scenario_of(3, 2, Overflow::Deny));
    let first = first.actor_after(&[take(1, 1, 0)], &[set(1, Keep::AsIs)]);
    first.actor(&[set(2, Keep::Scaled)]).explore_rules(run);
}

/// A key gets its own algorithm, and loses it.
fn another_algorithm_meanwhile(run: &mut Run) {
    let sets = agrees(scenario_of(3, 2, Overflow::Deny));
    let sets = sets.actor_after(&[take(1, 1, 0)], &[set(1, Keep::AsIs)]);
    sets.actor(&[give(1, 5, 0), unset(1)]).explore_rules(run);
}

/// A key is removed and inserted again.
fn a_removal_meanwhile(run: &mut Run) {
    let sets = agrees(scenario_of(3, 2, Overflow::Deny));
    let sets = sets.actor_after(&[take(1, 1, 0)], &[set(1, Keep::AsIs)]);
    sets.actor(&[remove(1), take(1, 1, 0)]).explore_rules(run);
}

/// A thread stops forever while it sets the quota: others finish, and get no more than both quotas
/// together allow.
fn one_stops(run: &mut Run) {
    let sets = scenario(2, Overflow::Deny).rule(|played| {
        let taken = granted(played.all());
        assert!(taken <= 2, "{TOO_MUCH}: {taken}");
    });
    let sets = sets.actor_after(&[take(1, 1, 0)], &[set(3, Keep::AsIs)]);
    let takes = sets.actor(&[take(1, 1, 0), take(1, 1, 0)]);
    takes.explore_stopping(run, 0);
}

/// A thread that inserts a key stops forever.
fn a_newcomer_stops(run: &mut Run) {
    let sets = scenario_of(3, 2, Overflow::Deny).rule(|played| {
        let after = granted(&played.answers[1]);
        assert!(after <= 1, "{TOO_MUCH}: {after}");
    });
    let comes = sets.actor(&[take(1, 1, 0)]);
    let sets = comes.actor(&[set(1, Keep::AsIs), take(1, 1, 0), take(1, 1, 0)]);
    sets.explore_stopping(run, 0);
}

#[test]
fn a_quota_is_set_for_all_keys() {
    let name = "keyed_map_quota::a_quota_is_set_for_all_keys";
    model(name, Some(2), a_new_key);
    model(
        &format!("{name}, counted loads"),
        Some(2),
        a_new_key_with_counted_loads,
    );
    for fault in [Fault::TrustsItsBirth, Fault::WalksFirst] {
        with_fault("keyed_map_quota", fault, TOO_MUCH, Some(2), a_new_key);
    }
}

#[test]
fn a_key_is_carried_over_once() {
    let name = "keyed_map_quota::a_key_is_carried_over_once";
    model(name, Some(2), a_known_key);
    for fault in [Fault::TakesOutMoving, Fault::CarriesUnretired] {
        with_fault("keyed_map_quota", fault, TOO_MUCH, Some(2), a_known_key);
    }
}

#[test]
fn after_two_changes_all_keys_have_one_quota() {
    let name = "keyed_map_quota::after_two_changes_all_keys_have_one_quota";
    model(name, Some(1), two_threads_set_it);
}

#[test]
fn a_key_that_changes_meanwhile_has_the_new_quota() {
    let name = "keyed_map_quota::a_key_that_changes_meanwhile_has_the_new_quota";
    model(name, Some(2), another_algorithm_meanwhile);
    model(&format!("{name}, removed"), Some(2), a_removal_meanwhile);
}

#[test]
fn a_thread_that_stops_stops_no_decision() {
    let name = "keyed_map_quota::a_thread_that_stops_stops_no_decision";
    model(name, Some(1), one_stops);
    model(&format!("{name}, new"), Some(1), a_newcomer_stops);
}

#[test]
fn weaker_orderings_are_found() {
    let walk = Site {
        file: "keyed_map/quota.rs",
        text: include_str!("../../../src/keyed_map/quota.rs"),
        operation: "// before the walk",
    };
    let begin = Site {
        file: "keyed_map/entry.rs",
        text: include_str!("../../../src/keyed_map/entry.rs"),
        operation: "// after it was found",
    };
    for site in [walk, begin] {
        let name = "keyed_map_quota";
        relaxed(name, site, TOO_MUCH, Some(2), a_new_key_with_counted_loads);
    }
}
