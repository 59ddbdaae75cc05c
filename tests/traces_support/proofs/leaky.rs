//! Each class of the leaky buckets fails where its condition does not hold.

use serde_json::{Value, json};
use tollgate_replay::Direction::{OtherValue, TheyAdmitLess, TheyAdmitMore};

use super::{Cut, add, fails_if};

#[test]
fn nginx_drifts_by_a_thousandth_and_upwards() {
    let class = "thousandths are cut at each admitted request";
    let file = "nginx_limit_req_virtual";
    let cut = Cut::named(file, "100rm-b4-nodelay");
    let edits: [fn(&mut Value); 3] = [
        |op| add(op, "excess_milli", 1),
        |op| add(op, "excess_milli", -2),
        |op| op["result"]["ok"] = json!(op["result"]["ok"] == false),
    ];
    let taken_over = fails_if(&cut, class, OtherValue, &edits);
    // What they have is taken over then, so that nothing is cut before the next.
    let mut next = cut.first(taken_over + 2);
    add(&mut next.ops[taken_over + 1], "excess_milli", 1);
    assert_eq!(next.run().failures.len(), 1);
    // It refuses at a thousandth above the burst, and at no other.
    fails_if(
        &cut,
        class,
        TheyAdmitLess,
        &[
            |op| add(op, "excess_milli", -1),
            |op| add(op, "excess_milli", 1),
        ],
    );
    // Whoever was admitted with less could not have been refused.
    for position in 0..cut.ops.len() {
        let result = &cut.ops[position]["result"];
        if result["ok"] == true && result["excess_milli"].as_u64() < Some(4000) {
            let mut cut = cut.first(position + 1);
            cut.ops[position]["result"]["ok"] = json!(false);
            assert_eq!(cut.run().failures.len(), 1, "{}", cut.ops[position]);
        }
    }
    // Where the rate is whole there is no such drift.
    let mut whole = Cut::named(file, "5rs-b3-nodelay").first(9);
    add(&mut whole.ops[8], "excess_milli", 1);
    assert_eq!(whole.run().failures.len(), 1);
}

#[test]
fn nginx_may_be_a_nanosecond_early_and_no_more() {
    let class = "a nanosecond late at a rate of no whole nanoseconds";
    let file = "nginx_limit_req_virtual";
    let cut = Cut::named(file, "333rs-b20-nodelay");
    fails_if(
        &cut,
        class,
        TheyAdmitMore,
        &[|op| add(op, "excess_milli", 1)],
    );
    // A millisecond earlier it is refused.
    let cut = Cut::named(file, "100rm-b4-nodelay");
    let burst_is_gone = |op: &Value| op["result"]["ok"] == false;
    let position = cut.ops.iter().position(burst_is_gone).expect("a refusal");
    let mut early = cut.first(position + 1);
    early.ops[position]["result"]["ok"] = json!(true);
    assert_eq!(early.run().failures.len(), 1);
}

/// The times that others measured fit the limiter's clock and its delays.
#[test]
fn nginx_in_real_time_fits_the_clocks() {
    let cut = Cut::named("nginx_limit_req_realtime", "5rs-b5-delay-run0");
    let delayed = |op: &Value| op["result"]["delay_ms"].as_u64() > Some(50);
    let position = cut.ops.iter().position(delayed).expect("a delay");
    let edits: [fn(&mut Value); 6] = [
        |op| add(op, "t", 2),
        |op| add(op, "t", -3),
        |op| op["sent"] = json!(op["t"].as_f64().map(|t| t + 2.0)),
        |op| op["done"] = json!(op["t"].as_u64().map(|t| t + 48)),
        |op| op["result"]["latency_ms"] = json!(48.0),
        |op| op["result"]["status"] = json!("PASSED"),
    ];
    for edit in edits {
        let mut cut = cut.first(position + 1);
        edit(&mut cut.ops[position]);
        let failures = cut.run().failures;
        assert_eq!(failures.len(), 1, "{}", cut.ops[position]);
        assert_eq!(failures[0].op, position as u64 + 1);
    }
}

#[test]
fn shenyus_bucket_leaks_twice_where_time_went_back() {
    let class = "time went back: the seconds since leak twice";
    let cut = Cut::named(
        "redis_shenyu_leaky_bucket",
        "leaky_bucket-r10-c20-backwards",
    );
    let edits: [fn(&mut Value); 2] = [|op| add(op, "level", 1), |op| add(op, "level", -2)];
    let at = fails_if(&cut, class, OtherValue, &edits);
    // Not before time goes back, and not in a trace in which it does not.
    let refused = |op: &Value| op["result"]["ok"] == false;
    let early = cut.ops.iter().position(refused).expect("a refusal");
    let went_back = |ops: &[Value]| ops[0]["t"].as_u64() > ops[1]["t"].as_u64();
    assert!(!cut.ops[..=early].windows(2).any(went_back));
    let mut before = cut.first(early + 1);
    // Admitted, as if nothing else were wrong with that.
    let (t, level) = (
        before.ops[early]["t"].clone(),
        &before.ops[early]["result"]["level"],
    );
    before.ops[early]["result"] =
        json!({ "ok": true, "level": level, "stored": level, "stored_t": t });
    assert_eq!(before.run().failures.len(), 1);
    let mut elsewhere = cut.first(at + 1);
    elsewhere.header["variant"] = json!("frozen");
    assert_eq!(elsewhere.run().failures.len(), 1);
    // What it stores must be what it held.
    let admitted = fails_if(&cut, class, TheyAdmitMore, &[]);
    for change in [-0.5, 0.5] {
        let mut cut = cut.first(admitted + 1);
        let stored = &mut cut.ops[admitted]["result"]["stored"];
        *stored = json!(stored.as_f64().map(|level| level + change));
        assert_eq!(cut.run().failures.len(), 1);
    }
}

#[test]
fn shenyus_bucket_is_cut_off_either_way_at_a_tie_alone() {
    let cuts = Cut::all("redis_shenyu_leaky_bucket");
    let ties = cuts.iter().filter(|cut| {
        let counted = cut.run().divergences;
        counted.contains_key(&("doubles at a tie", OtherValue))
    });
    let mut found = 0;
    for cut in ties {
        let edits: [fn(&mut Value); 2] = [
            |op| add(op, "level", 2),
            |op| op["result"]["stored"] = json!(op["result"]["stored"].as_f64().map(|it| it + 0.1)),
        ];
        fails_if(cut, "doubles at a tie", OtherValue, &edits);
        found += 1;
    }
    assert!(found > 0);
    // At a rate of whole permits doubles are exact: there is no tie at the capacity.
    let whole = Cut::named("redis_shenyu_leaky_bucket", "leaky_bucket-r1-c10-virtual");
    let full = |op: &Value| op["result"]["ok"] == true && op["result"]["level"] == 10;
    let position = whole.ops.iter().position(full).expect("a full bucket");
    let mut refused = whole.first(position + 1);
    refused.ops[position]["result"]["ok"] = json!(false);
    assert_eq!(refused.run().failures.len(), 1);
}
