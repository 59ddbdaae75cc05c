//! The word and its retry loop: exactly the burst is granted at one tick, and no reset is lost. On
//! broken words the same models fail.

use tollgate_loom_tests::prelude::*;

#[test]
fn never_grants_more_than_the_burst() {
    let name = "cell::never_grants_more_than_the_burst";
    samples::bucket(words::cell).holds(name, None, suite::exactly_the_burst_at_one_tick);
}

#[test]
fn never_grants_more_if_exchanges_fail_spuriously() {
    let name = "cell::never_grants_more_if_exchanges_fail_spuriously";
    let bucket = samples::bucket(words::fails_spuriously);
    bucket.holds(name, Some(3), suite::exactly_the_burst_at_one_tick);
}

#[test]
fn the_burst_is_exceeded_or_lost_in_broken_cells() {
    let twice = "granted twice";
    let cells: [(_, MakeWord, _); 5] = [
        ("compares and stores", words::stores, twice),
        ("exchanges unconditionally", words::overwrites, twice),
        ("always reports success", words::claims_success, twice),
        (
            "reports failure after success",
            words::reports_failure,
            "exchanges were lost",
        ),
        (
            "does not load again",
            words::loads_stale,
            "a loop does not end",
        ),
    ];
    for (name, make_word, why) in cells {
        let name = format!("cell::burst, {name}");
        let bucket = samples::bucket(make_word);
        bucket.fails(&name, why, None, suite::exactly_the_burst_at_one_tick);
    }
}

/// A reset against every verb that changes the word, on an empty bucket and on one in debt.
fn resets(subject: &Subject<TokenBucket>, run: &mut Run) {
    let now = subject.tick();
    let others = [
        Verb::take(1),
        Verb::take_up_to(2),
        Verb::charge(3),
        Verb::undo(),
        Verb::refund(1),
        Verb::reset(),
    ];
    for before in [Verb::take(2), Verb::charge(4)] {
        for other in &others {
            let actors: [&[_]; 2] = [
                &[(Verb::reset(), now), (Verb::take(1), now)],
                &[(other.clone(), now), (other.clone(), now)],
            ];
            subject
                .scenario(&[(before.clone(), now)], &actors)
                .explore(run);
        }
    }
}

#[test]
fn reset_is_not_lost() {
    samples::bucket(words::cell).holds("cell::reset_is_not_lost", None, resets);
}

#[test]
fn resets_are_lost_in_broken_cells() {
    let cells: [(_, MakeWord); 3] = [
        ("gives up if another thread intervenes", words::gives_up),
        ("overwritten by a compare and a store", words::stores),
        (
            "overwritten by an unconditional exchange",
            words::overwrites,
        ),
    ];
    for (name, make_word) in cells {
        let name = format!("cell::reset, {name}");
        samples::bucket(make_word).fails(&name, "no order", None, resets);
    }
}
