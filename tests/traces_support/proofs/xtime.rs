//! Each class of x/time/rate fails where its condition does not hold.

use serde_json::{Value, json};
use tollgate_replay::Direction::{self, OtherValue, TheyAdmitMore};

use super::{Cut, add, fails_if};

const FILES: [&str; 2] = ["go_xtime_rate_2b4e439", "go_xtime_rate_v0.3.0"];

/// The first trace of each file in which the class is counted.
fn with(class: &'static str, way: Direction) -> Vec<Cut> {
    let counted = |cut: &Cut| cut.run().divergences.contains_key(&(class, way));
    let first = |file: &&str| Cut::all(file).into_iter().find(counted);
    let found: Vec<Cut> = FILES.iter().filter_map(first).collect();
    assert!(!found.is_empty(), "nothing is counted as {class}");
    found
}

fn tokens(op: &mut Value, more: f64) {
    let tokens = &mut op["result"]["tokens"];
    *tokens = json!(tokens.as_f64().expect("a level") + more);
}

/// The levels are those that it gets by going on as it does, to less than a billionth.
const OTHER_LEVELS: [fn(&mut Value); 2] = [|op| tokens(op, 1e-9), |op| tokens(op, -1e-9)];

const OTHER_DECISION: fn(&mut Value) = |op| op["result"]["ok"] = json!(op["result"]["ok"] == false);

#[test]
fn waits_are_cut_by_less_than_a_nanosecond() {
    let class = "waits are cut to whole nanoseconds";
    for cut in with(class, OtherValue) {
        fails_if(&cut, class, OtherValue, &OTHER_LEVELS);
        let waits: [fn(&mut Value); 2] =
            [|op| add(op, "delay_ns", -1), |op| add(op, "delay_ns", 2)];
        fails_if(&cut, class, OtherValue, &waits);
    }
    for cut in with(class, TheyAdmitMore) {
        fails_if(&cut, class, TheyAdmitMore, &OTHER_LEVELS);
        // Two nanoseconds before it is due nobody is admitted.
        let position = cut.first_counted(class, TheyAdmitMore);
        let mut early = cut.first(position + 1);
        add(&mut early.ops[position], "t", -2);
        assert_eq!(early.run().failures.len(), 1);
    }
}

#[test]
fn time_that_goes_back_is_credited_twice_there_and_then() {
    let class = "time went back: the time since is credited twice";
    for way in [OtherValue, TheyAdmitMore] {
        for cut in with(class, way) {
            assert_eq!(cut.header["config"]["variant"], "backwards");
            fails_if(&cut, class, way, &OTHER_LEVELS);
        }
    }
}

#[test]
fn what_comes_back_of_what_is_cancelled_is_what_it_says() {
    for class in [
        "one in the middle of the line is cancelled, and something comes back",
        "cancelled past its time, nothing comes back",
        "cancelled, more comes back than was reserved",
        "cancelled, and what was cancelled before counts as reserved still",
        "reserved before the quota changed and cancelled since, it comes back",
    ] {
        for cut in with(class, OtherValue) {
            fails_if(&cut, class, OtherValue, &OTHER_LEVELS);
        }
    }
}

/// Nothing but a level that is between the units of ours is rounded.
#[test]
fn rounded_is_what_lies_between_units() {
    let class = "levels are rounded to a part of a nanosecond here";
    for cut in with(class, OtherValue) {
        // Nearer to ours would be no difference, so it is far.
        let far: [fn(&mut Value); 2] = [|op| tokens(op, 1e-3), |op| tokens(op, -1e-3)];
        fails_if(&cut, class, OtherValue, &far);
    }
    let whole = [
        "l10-b5-fixed",
        "l1-b100-fixed",
        "l1000-b1000-fixed",
        "l3e+09-b100-fixed",
    ];
    for (file, trace) in FILES
        .iter()
        .flat_map(|file| whole.map(|trace| (file, trace)))
    {
        let counted = Cut::named(file, trace).run().divergences;
        assert!(!counted.contains_key(&(class, OtherValue)), "{trace}");
    }
}

#[test]
fn where_there_is_no_bucket_their_answers_are_still_theirs() {
    for class in [
        "a limit of 0: refused when it is built here",
        "a limit of 0: its burst is handed out once, refused when it is built here",
        "a limit without an end: refused when it is built here",
        "less than a token a year: refused when it is built here",
        "less than a token a year: a wait overflows and is none, refused when it is built here",
        "a burst of 0: refused when it is built here",
    ] {
        for cut in with(class, OtherValue) {
            fails_if(&cut, class, OtherValue, &OTHER_LEVELS);
            let position = cut.first_counted(class, OtherValue);
            if cut.ops[position]["result"].get("ok").is_some() {
                fails_if(&cut, class, OtherValue, &[OTHER_DECISION]);
            }
        }
    }
}
