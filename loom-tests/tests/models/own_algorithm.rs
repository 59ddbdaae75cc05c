//! An algorithm from outside the crate gets all models that apply to it by implementing the traits.
//! This one is the algorithm of `examples/own_algorithm`, included from the same file.

#[path = "../../../examples/own_algorithm/daily.rs"]
mod daily;

use daily::{DAY_NS, Daily};
use tollgate_audit::Bound;
use tollgate_loom_tests::prelude::*;

/// Two permits a day, with midnight between the threads' ticks. A caller that takes all permits
/// before midnight and all after it gets four almost at once.
fn daily() -> Subject<Daily> {
    let quota = Quota::per_day(2).burst(4);
    let bound = Bound::of_quota(quota).expect("a quota");
    Subject::new(|| Daily::new(2))
        .at(2 * DAY_NS - 1, 2 * DAY_NS)
        .with_give_back()
        .with_forecast()
        .promising(bound)
}

#[test]
fn it_gets_the_models() {
    let name = "own_algorithm::each_against_each_other";
    model(name, None, |run| {
        suite::each_verb_against_each_other(&daily(), run)
    });
    let name = "own_algorithm::at_different_ticks";
    model(name, Some(3), |run| {
        suite::the_bound_at_different_ticks(&daily(), run)
    });
    let name = "own_algorithm::it_starts_once";
    model(name, None, |run| suite::each_verb_starts(&daily(), run));
}

/// The same suites of a token bucket cover the loop itself (`verbs.rs`, `cell.rs`).
#[test]
fn it_gets_the_longer_models() {
    let name = "own_algorithm::each_after_a_grant";
    deep_model(name, None, |run| {
        suite::each_verb_after_a_grant(&daily(), run)
    });
    let name = "own_algorithm::each_among_three";
    deep_model(name, Some(3), |run| {
        suite::each_verb_among_three(&daily(), run)
    });
    let name = "own_algorithm::exactly_the_burst_at_one_tick";
    deep_model(name, None, |run| {
        suite::exactly_the_burst_at_one_tick(&daily(), run)
    });
}

#[test]
fn it_fails_in_a_broken_cell() {
    let name = "own_algorithm::compares and stores";
    broken(name, "granted twice", None, |run| {
        suite::each_verb_against_each_other(&daily().on(words::stores), run);
    });
}

/// A bound of one permit less than two adjacent days grant.
#[test]
fn a_smaller_promise_is_broken() {
    let quota = Quota::per_day(2).burst(3);
    let bound = Bound::of_quota(quota).expect("a quota");
    let name = "own_algorithm::a permit too many";
    broken(name, "more than was promised", Some(3), |run| {
        suite::the_bound_at_different_ticks(&daily().promising(bound), run);
    });
}
