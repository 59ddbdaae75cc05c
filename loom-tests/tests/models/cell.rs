//! The word and its retry loop: exactly the burst is granted at one tick, and no reset is lost. On
//! broken words the same models fail.

use tollgate_loom_tests::words::{self, MakeWord};
use tollgate_loom_tests::{Run, Verb, broken, model, samples, suite};

fn burst(run: &mut Run, place: MakeWord) {
    suite::exactly_the_burst_at_one_tick(&samples::bucket(place), run);
}

#[test]
fn never_grants_more_than_the_burst() {
    let name = "cell::never_grants_more_than_the_burst";
    model(name, None, |run| burst(run, words::cell));
}

#[test]
fn never_grants_more_where_exchanges_fail_without_a_reason() {
    let name = "cell::never_grants_more_where_exchanges_fail_without_a_reason";
    model(name, Some(3), |run| burst(run, words::hesitant));
}

#[test]
fn the_burst_is_exceeded_or_lost_in_broken_cells() {
    let cells: [(_, MakeWord, _); 5] = [
        (
            "cell::burst, compares and stores",
            words::stores,
            "granted twice",
        ),
        (
            "cell::burst, exchanges whatever is there",
            words::insists,
            "granted twice",
        ),
        (
            "cell::burst, says it exchanged",
            words::boasts,
            "granted twice",
        ),
        (
            "cell::burst, says it failed after it exchanged",
            words::denies,
            "exchanges were lost",
        ),
        (
            "cell::burst, does not look again",
            words::dreams,
            "a loop does not end",
        ),
    ];
    for (name, place, why) in cells {
        broken(name, why, None, |run| burst(run, place));
    }
}

/// A reset against every verb that changes the word, on an empty bucket and on one in debt.
fn resets(run: &mut Run, place: MakeWord) {
    let subject = samples::bucket(place);
    let now = subject.tick();
    let others = [
        Verb::acquire(1),
        Verb::take_up_to(2),
        Verb::charge(3),
        Verb::undo(),
        Verb::refund(1),
        Verb::reset(),
    ];
    for before in [Verb::acquire(2), Verb::charge(4)] {
        for other in &others {
            let actors: [&[_]; 2] = [
                &[(Verb::reset(), now), (Verb::acquire(1), now)],
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
    model("cell::reset_is_not_lost", None, |run| {
        resets(run, words::cell)
    });
}

#[test]
fn resets_are_lost_in_broken_cells() {
    let cells: [(_, MakeWord, _); 3] = [
        (
            "cell::reset, gives up if somebody comes between",
            words::gives_up,
            "no order",
        ),
        (
            "cell::reset, overwritten by who compares and stores",
            words::stores,
            "no order",
        ),
        (
            "cell::reset, overwritten by who insists",
            words::insists,
            "no order",
        ),
    ];
    for (name, place, why) in cells {
        broken(name, why, None, |run| resets(run, place));
    }
}
