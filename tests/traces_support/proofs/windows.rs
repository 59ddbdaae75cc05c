//! Each class of the windows fails where its condition does not hold.

use serde_json::{Value, json};
use tollgate_replay::Direction::{OtherValue, TheyAdmitMore};

use super::{Cut, add, fails_if};

const FLEXIBLE: &str = "rate_limiter_flexible_memory";

#[test]
fn counts_beyond_the_word_are_what_was_refused() {
    let class = "counts what it refuses beyond what fits the word";
    for (file, trace, key) in [
        ("limits_fixed_window", "fixed-window-5/10second", "count"),
        (FLEXIBLE, "rlf-p5-d10-b0-e0", "consumed"),
    ] {
        let cut = Cut::named(file, trace);
        let at = fails_if(&cut, class, OtherValue, &[]);
        // One less is as much as we count.
        for n in [-2, 1] {
            let mut cut = cut.first(at + 1);
            add(&mut cut.ops[at], key, n);
            assert_eq!(cut.run().failures.len(), 1, "{file}: {n}");
        }
    }
}

/// A new window at the old one's end, but not a microsecond or a millisecond before it, and with
/// nothing of the old one in it.
#[test]
fn a_window_is_over_at_its_end_and_not_before() {
    let class = "at a window's very end it is open for two quanta more";
    let limits = Cut::named("limits_fixed_window", "fixed-window-5/10second");
    let edits: [fn(&mut Value); 4] = [
        |op| {
            add(op, "t", -1);
            add(op, "reset", -1);
        },
        |op| add(op, "reset", -1),
        |op| add(op, "count", 1),
        |op| add(op, "remaining", -1),
    ];
    for way in [TheyAdmitMore, OtherValue] {
        fails_if(&limits, class, way, &edits);
    }
    let flexible = Cut::named(FLEXIBLE, "rlf-p3-d5-b30-e0");
    let edits: [fn(&mut Value); 4] = [
        |op| add(op, "t", -1),
        |op| add(op, "ms_before_next", -1),
        |op| add(op, "consumed", 1),
        |op| op["result"]["first"] = json!(false),
    ];
    for way in [TheyAdmitMore, OtherValue] {
        fails_if(&flexible, class, way, &edits);
    }
}

#[test]
fn a_hit_of_0_opens_a_window_of_the_whole_length() {
    let cut = Cut::named("limits_fixed_window", "fixed-window-3/2minute");
    let edits: [fn(&mut Value); 3] = [
        |op| add(op, "reset", 1),
        |op| add(op, "count", 1),
        |op| add(op, "remaining", -1),
    ];
    fails_if(&cut, "a hit of 0 opens a window", OtherValue, &edits);
}

#[test]
fn a_window_with_nothing_taken_goes_on_as_it_was() {
    let class = "a window with nothing taken, or less than nothing, stays open";
    let cut = Cut::named(FLEXIBLE, "rlf-p10-d1-b0-e0");
    let edits: [fn(&mut Value); 5] = [
        |op| add(op, "consumed", 1),
        |op| add(op, "remaining", 1),
        |op| add(op, "ms_before_next", -1),
        |op| op["result"]["first"] = json!(op["result"]["first"] == false),
        |op| add(op, "n", 1),
    ];
    let opened = fails_if(&cut, class, OtherValue, &edits);
    let mut later = cut.clone();
    // The next call is in that window too.
    later.ops.drain(..=opened);
    later.header["ops"] = json!(later.ops.len());
    assert_eq!(later.run().failures[0].op, 1);
}

#[test]
fn hits_are_spread_as_it_was_told_and_not_otherwise() {
    let class = "spreads hits evenly by delays";
    let cut = Cut::named(FLEXIBLE, "rlf-p6-d30-b0-e1");
    let edits: [fn(&mut Value); 3] = [
        |op| add(op, "delay_ms", 1),
        |op| add(op, "ms_before_next", 1),
        |op| op["result"]["first"] = json!(true),
    ];
    fails_if(&cut, class, OtherValue, &edits);
}

#[test]
fn a_sliding_windows_tie_is_recorded_as_one() {
    let cut = Cut::named(
        "limits_sliding_window_counter",
        "sliding-window-counter-7/3second",
    );
    let edits: [fn(&mut Value); 5] = [
        |op| op["result"]["exact_ok"] = json!(true),
        |op| {
            let result = op["result"].as_object_mut().expect("an object");
            result.remove("exact_ok");
        },
        |op| op["result"]["weighted"] = json!(6.9999),
        |op| add(op, "cur", -1),
        |op| add(op, "reset", 2),
    ];
    fails_if(&cut, "doubles at a tie", TheyAdmitMore, &edits);
    let edits: [fn(&mut Value); 2] = [|op| add(op, "remaining", 1), |op| add(op, "reset", -2)];
    let cut = Cut::named(
        "limits_sliding_window_counter",
        "sliding-window-counter-3/2minute",
    );
    fails_if(&cut, "doubles at a tie", OtherValue, &edits);
    // At a window's beginning doubles are exact.
    let cut = Cut::named(
        "limits_sliding_window_counter",
        "sliding-window-counter-1/1hour",
    );
    let full = |op: &Value| op["result"]["weighted"] == 1.0 && op["result"]["cur"] == 0;
    let position = cut.ops.iter().position(full).expect("a beginning");
    let mut beginning = cut.first(position + 1);
    add(&mut beginning.ops[position], "remaining", 1);
    assert_eq!(beginning.run().failures.len(), 1);
}

#[test]
fn a_sliding_windows_reset_differs_by_a_microsecond_or_is_now() {
    let file = "limits_sliding_window_counter";
    let cut = Cut::named(file, "sliding-window-counter-50/1day");
    let class = "doubles of a quarter of a microsecond";
    let edits: [fn(&mut Value); 2] = [|op| add(op, "reset", 2), |op| add(op, "reset", -2)];
    fails_if(&cut, class, OtherValue, &edits);
    // Now, but not where the window began; and where it did, at another time.
    let class = "at a window's beginning its reset is now";
    let cut = Cut::named(file, "sliding-window-counter-7/3second");
    let edits: [fn(&mut Value); 2] = [|op| add(op, "reset", 2), |op| add(op, "remaining", 1)];
    let at = fails_if(&cut, class, OtherValue, &edits);
    let mut inside = cut.first(1);
    assert_ne!(inside.ops[0]["t"], cut.ops[at]["t"]);
    inside.ops[0]["result"]["reset"] = inside.ops[0]["t"].clone();
    assert_eq!(inside.run().failures.len(), 1);
}
