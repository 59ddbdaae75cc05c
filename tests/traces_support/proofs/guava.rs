//! Whatever is changed of Guava's traces fails, by a microsecond or by the last bit of a double; and so does each
//! class where its condition does not hold.

use serde_json::{Value, json};
use tollgate_replay::Direction::{OtherValue, TheyAdmitMore};

use super::{Cut, add, fails_if};

const BURSTY: &str = "guava_smooth_bursty";
const WARMING_UP: &str = "guava_smooth_warming_up";
const NO_WARM_UP: &str = "guava_smooth_warming_up_zero_period";

/// The first call that is so, changed so: it must fail there.
fn fails(cuts: &[Cut], is_it: impl Fn(&Value) -> bool, edit: impl Fn(&mut Value)) {
    let found = cuts
        .iter()
        .find_map(|cut| Some((cut, cut.ops.iter().position(&is_it)?)));
    let (cut, position) = found.expect("such a call");
    let mut cut = cut.first(position + 1);
    assert_eq!(cut.run().failures, [], "before the change");
    edit(&mut cut.ops[position]);
    let failures = cut.run().failures;
    assert_eq!(failures.len(), 1, "{}", cut.ops[position]);
    assert_eq!(failures[0].op, position as u64 + 1, "{}", failures[0]);
}

fn let_in(op: &Value) -> bool {
    op["result"]["ok"] == true
}

fn refused(op: &Value) -> bool {
    op["result"]["ok"] == false
}

fn waits(op: &Value) -> bool {
    op["result"]["wait_us"].as_u64() > Some(1)
}

fn stores(op: &Value) -> bool {
    op["result"]["stored"].as_f64() > Some(0.1)
}

fn sets(op: &Value) -> bool {
    op["op"] == "set_rate"
}

#[test]
fn a_changed_answer_fails() {
    for file in [BURSTY, WARMING_UP] {
        let cuts = &Cut::all(file);
        fails(cuts, let_in, |op| op["result"]["ok"] = json!(false));
        fails(cuts, refused, |op| op["result"]["ok"] = json!(true));
        for by in [-1, 1] {
            fails(cuts, waits, |op| add(op, "wait_us", by));
            fails(cuts, let_in, |op| add(op, "next_free", by));
            fails(cuts, refused, |op| add(op, "next_free", by));
        }
        for change in [f64::next_up, f64::next_down] {
            fails(cuts, stores, |op| {
                let stored = &mut op["result"]["stored"];
                *stored = json!(stored.as_f64().map(change));
            });
        }
        for key in ["get_rate", "max"] {
            let more = |op: &mut Value| {
                let value = &mut op["result"][key];
                *value = json!(value.as_f64().map(|value| value * 1.01));
            };
            fails(cuts, sets, more);
        }
    }
}

#[test]
fn a_changed_configuration_fails() {
    for (file, key) in [
        (BURSTY, "rate"),
        (BURSTY, "max_burst_seconds"),
        (WARMING_UP, "rate"),
        (WARMING_UP, "cold_factor"),
        (WARMING_UP, "warmup_us"),
    ] {
        let mut cut = Cut::nth(file, 1);
        let value = &mut cut.header["config"][key];
        *value = match value.as_u64() {
            Some(value) => json!(value * 2),
            None => json!(value.as_f64().map(|value| value * 2.0)),
        };
        let failures = cut.run().failures;
        assert_eq!(failures.len(), 1, "{key}");
        // What it begins with says so.
        assert_eq!(failures[0].op, 0, "{}", failures[0]);
    }
}

#[test]
fn none_is_an_error_for_none_alone() {
    let class = "none is an error there, and nothing here";
    for file in [BURSTY, WARMING_UP] {
        let has_one = |cut: &&Cut| cut.run().divergences.contains_key(&(class, OtherValue));
        let cuts = Cut::all(file);
        let cut = cuts.iter().find(has_one).expect("an error");
        let edits: [fn(&mut Value); 3] = [
            |op| op["n"] = json!(1),
            |op| add(op, "next_free", 1),
            |op| op["result"]["error"] = json!("NullPointerException"),
        ];
        fails_if(cut, class, OtherValue, &edits);
    }
}

#[test]
fn free_for_ever_is_who_has_no_warm_up_alone() {
    let class = "a warm-up of 0: free for ever there, the steady rate here";
    let cuts = Cut::all(NO_WARM_UP);
    for cut in &cuts {
        // Who is free waits for nothing, pays for nothing, and stores no number.
        let edits: [fn(&mut Value); 4] = [
            |op| op["result"]["wait_us"] = json!(1),
            |op| add(op, "next_free", 1),
            |op| add(op, "next_free", -1),
            |op| op["result"]["stored"] = json!(0.5),
        ];
        fails_if(cut, class, TheyAdmitMore, &edits);
    }
    // Where it warms up, be it for a microsecond, the same is a failure.
    let mut cut = cuts[0].clone();
    cut.header["config"]["warmup_us"] = json!(1);
    cut.header["initial"]["stored"] = json!(0.000_001_5);
    cut.header["initial"]["max"] = json!(0.000_001_5);
    assert_eq!(cut.run().failures.len(), 1);
}
