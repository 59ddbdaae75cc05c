//! Every verb of the crate's algorithms against every other: the answers and the word's final value
//! are those of some sequential order of the same verbs.

use tollgate_loom_tests::prelude::*;

#[test]
fn each_verb_against_each_other() {
    let name = "verbs::each_against_each_other, token bucket";
    model(name, None, |run| {
        suite::each_verb_against_each_other(&samples::bucket(words::cell), run);
    });
    model("verbs::each_against_each_other, GCRA", None, |run| {
        suite::each_verb_against_each_other(&samples::spaced(words::cell), run);
    });
    let name = "verbs::each_against_each_other, rounding bucket";
    model(name, None, |run| {
        suite::each_verb_against_each_other(&samples::rounding_bucket(words::cell), run);
    });
}

#[test]
fn each_verb_after_a_grant() {
    model("verbs::each_after_a_grant, token bucket", None, |run| {
        suite::each_verb_after_a_grant(&samples::bucket(words::cell), run);
    });
}

#[test]
fn each_verb_among_three() {
    model("verbs::each_among_three, token bucket", Some(3), |run| {
        suite::each_verb_among_three(&samples::bucket(words::cell), run);
    });
}

#[test]
fn each_verb_if_exchanges_fail_spuriously() {
    let name = "verbs::each_where_exchanges_fail_without_a_reason";
    model(name, None, |run| {
        suite::each_verb_against_each_other(&samples::bucket(words::fails_spuriously), run);
    });
}

#[test]
fn verbs_fail_on_broken_cells() {
    let (twice, no_order) = ("granted twice", "no order");
    broken("verbs::pairs, compares and stores", twice, None, |run| {
        suite::each_verb_against_each_other(&samples::bucket(words::stores), run);
    });
    let name = "verbs::after a grant, compares and stores";
    broken(name, no_order, None, |run| {
        suite::each_verb_after_a_grant(&samples::bucket(words::stores), run);
    });
    let name = "verbs::among three, compares and stores";
    broken(name, "more than was promised", Some(3), |run| {
        suite::each_verb_among_three(&samples::bucket(words::stores), run);
    });
    let name = "verbs::pairs, GCRA, exchanges unconditionally";
    broken(name, twice, None, |run| {
        suite::each_verb_against_each_other(&samples::spaced(words::overwrites), run);
    });
    let name = "verbs::pairs, rounding bucket, always reports success";
    broken(name, no_order, None, |run| {
        suite::each_verb_against_each_other(&samples::rounding_bucket(words::claims_success), run);
    });
}
