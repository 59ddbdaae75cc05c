//! Each class of the logs fails where its condition does not hold.

use serde_json::{Value, json};
use tollgate_replay::Direction::{OtherValue, TheyAdmitLess, TheyAdmitMore};

use super::{Cut, add, fails_if};

const LIMITS: &str = "limits_moving_window";
const SHENYU: &str = "redis_shenyu_sliding_window";

/// Refused at exactly a window's age, and neither a microsecond later nor for less than what is so old.
#[test]
fn what_is_a_window_old_counts_at_a_hit_alone() {
    let class = "at a hit, what is exactly a window old still counts";
    let edits: [fn(&mut Value); 5] = [
        |op| add(op, "t", 1),
        |op| op["op"] = json!("test"),
        |op| add(op, "in_window", 1),
        |op| add(op, "remaining", -1),
        |op| add(op, "reset", 1),
    ];
    let mut found = 0;
    for cut in Cut::all(LIMITS) {
        if !cut.run().divergences.contains_key(&(class, TheyAdmitLess)) {
            continue;
        }
        fails_if(&cut, class, TheyAdmitLess, &edits);
        found += 1;
    }
    assert!(found >= 5, "{found}");
}

/// Of the first hit of all, and only while there is nothing in the window.
#[test]
fn a_reset_is_that_of_the_first_hit_while_the_window_is_empty() {
    let class = "with nothing in the window its reset is that of the first hit of all";
    let edits: [fn(&mut Value); 3] = [
        |op| add(op, "reset", 1),
        |op| add(op, "reset", -1),
        |op| add(op, "in_window", 1),
    ];
    for trace in ["moving-window-1/1hour", "moving-window-3/2minute"] {
        fails_if(&Cut::named(LIMITS, trace), class, OtherValue, &edits);
    }
    let cut = Cut::named(LIMITS, "moving-window-1/1hour");
    fails_if(&cut, class, TheyAdmitLess, &edits);
    // Not while there is something in it.
    let first = cut.ops[0]["t"].as_u64().expect("a time");
    let position = cut.ops.iter().position(|op| {
        let (reset, inside) = (&op["result"]["reset"], &op["result"]["in_window"]);
        inside == 1 && reset.as_u64() > Some(first + 2 * 3_600_000_000)
    });
    let position = position.expect("such an op");
    let mut early = cut.first(position + 1);
    early.ops[position]["result"]["reset"] = json!(first + 3_600_000_000);
    assert_eq!(early.run().failures.len(), 1);
}

/// What it counts is exactly what the call before left.
#[test]
fn a_call_counts_what_the_last_one_left_and_nothing_else() {
    let class = "counts before it forgets";
    for trace in [
        "sliding_window-r5-c5-frozen",
        "sliding_window-r2-c10-virtual",
        "sliding_window-r0.5-c3-virtual",
    ] {
        let cut = Cut::named(SHENYU, trace);
        let edits: [fn(&mut Value); 4] = [
            |op| add(op, "remain_before", 2),
            |op| add(op, "remain_before", -1),
            |op| add(op, "zcard_after", 1),
            |op| op["result"]["ok"] = json!(op["result"]["ok"] == false),
        ];
        let at = fails_if(&cut, class, TheyAdmitLess, &edits);
        fails_if(&cut, class, OtherValue, &edits);
        // The next call finds what this one left.
        let mut next = cut.first(at + 2);
        add(&mut next.ops[at], "zcard_after", 1);
        assert_eq!(next.run().failures[0].op, at as u64 + 1);
    }
}

/// A set that redis has forgotten is counted by nobody.
#[test]
fn a_set_that_has_expired_counts_no_more() {
    let frozen = Cut::named(SHENYU, "sliding_window-r1-c10-frozen");
    let mut virtually = frozen.clone();
    virtually.header["variant"] = json!("virtual");
    let failures = virtually.run().failures;
    assert_eq!(failures.len(), 1);
    // It was a call after more than a window.
    let op = failures[0].op as usize - 1;
    let t = |op: usize| frozen.ops[op]["t"].as_u64().expect("a second");
    assert!(t(op) > t(op - 1) + 10, "{}", failures[0]);
}

#[test]
fn several_are_taken_for_one_and_for_nothing_else() {
    let class = "takes one permit for several";
    let edits: [fn(&mut Value); 2] = [
        |op| add(op, "zcard_after", 1),
        |op| add(op, "remain_before", -1),
    ];
    let mut found = 0;
    for (cut, way) in Cut::all(SHENYU)
        .iter()
        .flat_map(|cut| [(cut, TheyAdmitMore), (cut, OtherValue)])
    {
        if !cut.run().divergences.contains_key(&(class, way)) {
            continue;
        }
        let at = fails_if(cut, class, way, &edits);
        // Asked for one, it took one, and we do the same.
        let mut one = cut.first(at + 1);
        let before = one.run().divergences[&(class, way)];
        one.ops[at]["n"] = json!(1);
        let report = one.run();
        assert_eq!(report.failures, []);
        let after = report.divergences.get(&(class, way));
        assert_eq!(before, after.unwrap_or(&0) + 1);
        found += 1;
    }
    assert!(found >= 10, "{found}");
}

#[test]
fn a_window_that_is_not_capacity_by_rate_is_refused() {
    for key in ["rate", "capacity", "window_s"] {
        let mut cut = Cut::nth(SHENYU, 2);
        let value = &mut cut.header["config"][key];
        *value = json!(value.as_f64().expect("a number") as u64 + 1);
        let failures = cut.run().failures;
        assert_eq!(failures.len(), 1, "{key}");
        assert!(failures[0].what.contains("`window_s`"), "{}", failures[0]);
    }
}
