//! Every verb of the crate's algorithms against every other: the answers and the word's final value
//! are those of some sequential order of the same verbs.

use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::samples::{bucket, rounding_bucket, spaced};

#[test]
fn each_verb_against_each_other() {
    let name = "verbs::each_against_each_other, token bucket";
    bucket(words::cell).holds(name, None, suite::each_verb_against_each_other);
    let name = "verbs::each_against_each_other, GCRA";
    spaced(words::cell).holds(name, None, suite::each_verb_against_each_other);
    let name = "verbs::each_against_each_other, rounding bucket";
    rounding_bucket(words::cell).holds(name, None, suite::each_verb_against_each_other);
}

#[test]
fn each_verb_after_a_grant() {
    let name = "verbs::each_after_a_grant, token bucket";
    bucket(words::cell).holds(name, None, suite::each_verb_after_a_grant);
}

#[test]
fn each_verb_among_three() {
    let name = "verbs::each_among_three, token bucket";
    bucket(words::cell).holds(name, Some(3), suite::each_verb_among_three);
}

#[test]
fn each_verb_if_exchanges_fail_spuriously() {
    let name = "verbs::each_where_exchanges_fail_without_a_reason";
    bucket(words::fails_spuriously).holds(name, None, suite::each_verb_against_each_other);
}

#[test]
fn verbs_fail_on_broken_cells() {
    let (twice, no_order) = ("granted twice", "no order");
    let name = "verbs::pairs, compares and stores";
    bucket(words::stores).fails(name, twice, None, suite::each_verb_against_each_other);
    let name = "verbs::after a grant, compares and stores";
    bucket(words::stores).fails(name, no_order, None, suite::each_verb_after_a_grant);
    let name = "verbs::among three, compares and stores";
    let why = "more than was promised";
    bucket(words::stores).fails(name, why, Some(3), suite::each_verb_among_three);
    let name = "verbs::pairs, GCRA, exchanges unconditionally";
    spaced(words::overwrites).fails(name, twice, None, suite::each_verb_against_each_other);
    let name = "verbs::pairs, rounding bucket, always reports success";
    rounding_bucket(words::claims_success).fails(
        name,
        no_order,
        None,
        suite::each_verb_against_each_other,
    );
}
