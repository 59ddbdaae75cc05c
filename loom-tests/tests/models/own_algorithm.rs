//! An algorithm from outside the crate gets all models that apply to it by implementing the traits.
//! This one is the algorithm of `examples/own_algorithm`, included from the same file.

#[path = "../../../examples/own_algorithm/daily.rs"]
mod daily;

use daily::{DAY_NS, Daily};
use tollgate_audit::Bound;
use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::suite::Suite;

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
    daily().holds(name, None, suite::each_verb_against_each_other);
    let name = "own_algorithm::at_different_ticks";
    daily().holds(name, Some(3), suite::the_bound_at_different_ticks);
    let name = "own_algorithm::it_starts_once";
    daily().holds(name, None, suite::each_verb_starts);
}

/// The same suites of a token bucket cover the loop itself (`verbs.rs`, `cell.rs`).
#[test]
fn it_gets_the_longer_models() {
    let longer: [(_, _, Suite<Daily>); 3] = [
        ("each_after_a_grant", None, suite::each_verb_after_a_grant),
        ("each_among_three", Some(3), suite::each_verb_among_three),
        (
            "exactly_the_burst_at_one_tick",
            None,
            suite::exactly_the_burst_at_one_tick,
        ),
    ];
    for (name, bound, suite) in longer {
        deep_model(&format!("own_algorithm::{name}"), bound, |run| {
            suite(&daily(), run)
        });
    }
}

#[test]
fn it_fails_in_a_broken_cell() {
    let (name, why) = ("own_algorithm::compares and stores", "granted twice");
    let on_stores = daily().on(words::stores);
    on_stores.fails(name, why, None, suite::each_verb_against_each_other);
}

/// A bound of one permit less than two adjacent days grant.
#[test]
fn a_smaller_promise_is_broken() {
    let quota = Quota::per_day(2).burst(3);
    let bound = Bound::of_quota(quota).expect("a quota");
    let (name, why) = ("own_algorithm::a permit too many", "more than was promised");
    let promising = daily().promising(bound);
    promising.fails(name, why, Some(3), suite::the_bound_at_different_ticks);
}
