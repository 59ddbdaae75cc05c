//! A limiter that was not started: the first caller starts it, once, at its own tick, and no other
//! caller starts it again.

use tollgate_loom_tests::prelude::*;

#[test]
fn it_starts_once() {
    let bucket = samples::empty_bucket(words::cell);
    bucket.holds("start::it_starts_once", None, suite::each_verb_starts);
}

#[test]
fn it_starts_once_if_exchanges_fail_spuriously() {
    let name = "start::it_starts_once_if_exchanges_fail_spuriously";
    let bucket = samples::empty_bucket(words::fails_spuriously);
    bucket.holds(name, None, suite::each_verb_starts);
}

#[test]
fn broken_words_start_twice() {
    let places: [(_, MakeWord); 3] = [
        ("starts a started limiter again", words::starts_over),
        ("compares and stores", words::stores),
        ("gives up a reset if another thread starts", words::gives_up),
    ];
    for (name, make_word) in places {
        let name = format!("start::{name}");
        let bucket = samples::empty_bucket(make_word);
        bucket.fails(&name, "no order", None, suite::each_verb_starts);
    }
}
