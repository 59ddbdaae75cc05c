//! A limiter that was not started: the first caller starts it, once, at its own tick, and no other
//! caller starts it again.

use tollgate_loom_tests::prelude::*;

fn starts(run: &mut Run, make_word: MakeWord) {
    suite::each_verb_starts(&samples::empty_bucket(make_word), run);
}

#[test]
fn it_starts_once() {
    model("start::it_starts_once", None, |run| {
        starts(run, words::cell)
    });
}

#[test]
fn it_starts_once_if_exchanges_fail_spuriously() {
    let name = "start::it_starts_once_if_exchanges_fail_spuriously";
    model(name, None, |run| starts(run, words::fails_spuriously));
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
        broken(&name, "no order", None, |run| starts(run, make_word));
    }
}
