//! A recorded result that is changed fails the run.

use serde_json::{Value, json};

use super::{COVERED, Cut};

/// Changes one result of one op of one trace; the run must fail there.
fn fails(file: &str, trace: usize, is_it: impl Fn(&Value) -> bool, key: &str, value: Value) {
    let mut cut = Cut::nth(file, trace);
    let position = cut.ops.iter().position(is_it).expect("such an op");
    assert_eq!(cut.run().failures, [], "before the change");
    assert_ne!(cut.ops[position]["result"][key], value, "no change");
    cut.ops[position]["result"][key] = value;
    let failures = cut.run().failures;
    let [failure] = &failures[..] else {
        panic!("{key} of {file}: {failures:?}");
    };
    assert_eq!(failure.op, position as u64 + 1, "{failure}");
    assert_eq!(cut.header["trace"], json!(failure.trace));
}

fn granted(op: &Value) -> bool {
    op["result"]["ok"] == true
}

fn refused(op: &Value) -> bool {
    op["result"]["ok"] == false
}

fn waits(op: &Value) -> bool {
    ["wait_ns", "retry_after_ns", "waiting_ms", "delay_ns"]
        .iter()
        .any(|key| op["result"][key].as_i64().is_some_and(|wait| wait > 1))
}

#[test]
fn a_changed_decision_fails() {
    for file in COVERED {
        fails(file, 2, granted, "ok", json!(false));
    }
    fails("go_throttled_gcra", 0, waits, "ok", json!(true));
    fails("pyrate_gcra", 0, waits, "ok", json!(true));
    fails("nginx_limit_req_virtual", 1, refused, "ok", json!(true));
    fails("nginx_limit_req_realtime", 1, refused, "ok", json!(true));
    fails("limits_fixed_window", 1, refused, "ok", json!(true));
    fails(
        "limits_sliding_window_counter",
        1,
        refused,
        "ok",
        json!(true),
    );
    fails("pyrate_fixed_window_aligned", 0, waits, "ok", json!(true));
    fails("pyrate_sliding_log", 0, waits, "ok", json!(true));
    fails(
        "rate_limiter_flexible_memory",
        0,
        refused,
        "ok",
        json!(true),
    );
    // The level says that it is no tie.
    let short = |op: &Value| !granted(op) && op["n"] == 3;
    fails("redis_shenyu_token_bucket", 12, short, "ok", json!(true));
}

#[test]
fn a_changed_value_fails() {
    fails("rust_governor_gcra", 1, waits, "wait_ns", json!(7));
    fails("go_throttled_gcra", 1, waits, "retry_after_ns", json!(7));
    fails("go_throttled_gcra", 1, waits, "retry_after_ns", json!(-1));
    fails("pyrate_gcra", 1, waits, "waiting_ms", json!(7));
    fails("pyrate_sliding_log", 1, waits, "waiting_ms", json!(7));
    fails("pyrate_sliding_log", 4, waits, "failing", json!([3, 1001]));
    fails("pyrate_sliding_log", 0, granted, "stored", json!(0));
    fails("rust_governor_gcra", 0, granted, "remaining", json!(9));
    fails("go_throttled_gcra", 0, granted, "remaining", json!(9));
    fails("go_throttled_gcra", 0, granted, "reset_after_ns", json!(9));
    fails("go_throttled_gcra", 0, granted, "tat", json!(null));
    fails("go_throttled_gcra", 0, granted, "limit", json!(5));
    fails("pyrate_gcra", 0, granted, "tat_us", json!([null]));
    fails("go_xtime_rate_2b4e439", 0, waits, "delay_ns", json!(7));
    fails("go_xtime_rate_v0.3.0", 0, granted, "tokens", json!(0.5));
    fails("npm_limiter", 1, refused, "wait_ms", json!(7));
    fails("npm_limiter", 1, granted, "content", json!(0.5));
    fails("token_bucket_pypi", 0, granted, "tokens", json!(0.5));
    // Ten times as much as a tie is wide.
    fails("token_bucket_pypi", 0, granted, "tokens", json!(1.00001));
    for file in [
        "redis_shenyu_token_bucket",
        "redis_spring_gateway_token_bucket",
    ] {
        fails(file, 2, granted, "tokens_left", json!(99));
        fails(file, 2, granted, "stored", json!(0.25));
    }
}

/// A refusal with a level that allows no refusal: the state is right, and only the tie is not.
#[test]
fn a_decision_that_is_no_tie_fails() {
    for (file, level) in [
        ("token_bucket_pypi", "tokens"),
        ("redis_shenyu_token_bucket", "stored"),
    ] {
        let mut cut = Cut::nth(file, 2);
        let some_left = |op: &Value| granted(op) && op["result"][level].as_f64() > Some(0.5);
        let position = cut.ops.iter().position(some_left).expect("such an op");
        let n = cut.ops[position]["n"].as_u64().expect("a number");
        let result = &mut cut.ops[position]["result"];
        result["ok"] = json!(false);
        result[level] = json!(result[level].as_f64().map(|left| left + n as f64));
        if let Some(left) = result.get_mut("tokens_left") {
            *left = json!(left.as_u64().map(|left| left + n));
        }
        let failures = cut.run().failures;
        assert_eq!(failures.len(), 1, "{file}");
        assert_eq!(failures[0].op, position as u64 + 1);
        assert!(
            failures[0].what.starts_with("`ok` differs"),
            "{}",
            failures[0]
        );
    }
}

/// Where time goes back the level must be the one from before, and it must be a trace in which time
/// goes back.
#[test]
fn a_level_that_time_going_back_does_not_explain_fails() {
    for file in [
        "redis_spring_gateway_token_bucket",
        "redis_shenyu_token_bucket",
    ] {
        let cut = Cut::nth(file, 4);
        assert_eq!(cut.header["variant"], "backwards");
        let goes_back = |&op: &usize| cut.ops[op]["t"].as_u64() < cut.ops[op - 1]["t"].as_u64();
        let backs: Vec<usize> = (1..cut.ops.len()).filter(goes_back).collect();

        let mut elsewhere = cut.clone();
        elsewhere.header["variant"] = json!("frozen");
        fails_at(&elsewhere, backs[0]);

        // Half a permit less than before, and still more than ours.
        let level = |op: usize| cut.ops[op]["result"]["stored"].as_f64().expect("a level");
        let back = backs.into_iter().find(|&op| level(op) >= 1.0);
        let back = back.expect("such an op");
        let mut less = cut.clone();
        less.ops[back]["result"]["stored"] = json!(level(back) - 0.5);
        less.ops[back]["result"]["tokens_left"] = json!(level(back) as u64 - 1);
        fails_at(&less, back);
    }
}

fn fails_at(cut: &Cut, position: usize) {
    let failures = cut.run().failures;
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].op, position as u64 + 1, "{}", failures[0]);
}

#[test]
fn what_differs_on_purpose_differs_in_no_other_way() {
    let spring = Cut::all("redis_spring_gateway_token_bucket");
    let of = |trace: &str| {
        let is_it = |cut: &Cut| cut.header["trace"] == trace;
        spring.iter().position(is_it).expect("such a trace")
    };
    let file = "redis_spring_gateway_token_bucket";
    // Never limited there, but not for more than the capacity, and with a full bucket each time.
    let unlimited = of("token_bucket-r10-c4-frozen");
    let above = |op: &Value| op["n"].as_u64().is_some_and(|n| n > 4);
    fails(file, unlimited, above, "ok", json!(true));
    fails(file, unlimited, granted, "tokens_left", json!(4));
    fails(file, unlimited, granted, "stored", json!(4));
    // A capacity of 0 grants nothing.
    let nothing = of("token_bucket-r5-c0-time");
    fails(file, nothing, |op| op["n"] == 1, "ok", json!(true));
    // Above the capacity throttled says one thing only.
    let above = |op: &Value| op["n"].as_u64().is_some_and(|n| n > 6);
    fails("go_throttled_gcra", 0, above, "remaining", json!(5));
    fails("go_throttled_gcra", 0, above, "reset_after_ns", json!(1));
    fails("go_throttled_gcra", 0, above, "ok", json!(true));
}

/// Every result of some ops of every trace, one by one. Either the run fails, or the change shows
/// in what is counted.
#[test]
fn no_changed_result_goes_unseen() {
    let (mut changed, mut failed) = (0, 0);
    for file in COVERED {
        let known = |cut: &Cut| cut.run().covered_traces() > 0;
        let traces: Vec<_> = Cut::all(file).into_iter().filter(known).collect();
        for (index, trace) in traces.iter().enumerate() {
            for position in [20 + index, 60 + 2 * index] {
                let cut = trace.first(position + 10);
                let before = cut.run();
                assert_eq!(before.failures, []);
                let result = cut.ops[position]["result"].as_object().expect("an object");
                // Measured by a client: all that is known is that it waited.
                for key in result.keys().filter(|key| *key != "latency_ms") {
                    let mut cut = cut.clone();
                    change(&mut cut.ops[position]["result"][key]);
                    let after = cut.run();
                    let (name, op) = (&trace.header["trace"], position + 1);
                    assert!(
                        !after.failures.is_empty() || after.divergences != before.divergences,
                        "{file}, {name}, op {op}: {key} changed unseen"
                    );
                    changed += 1;
                    failed += u32::from(!after.failures.is_empty());
                }
            }
        }
    }
    assert!(changed > 1300, "{changed} changes");
    // Nearly all fail at once: what is left is at ties, where either answer is right.
    assert!(failed * 50 > changed * 49, "{failed} of {changed}");
}

/// Another value of the same kind.
fn change(value: &mut Value) {
    *value = match value {
        Value::Bool(flag) => json!(!*flag),
        Value::Number(number) if number.is_i64() => json!(number.as_i64().map(|n| n + 1)),
        Value::Number(number) => json!(number.as_f64().map(|n| n + 1.0)),
        Value::String(text) => json!(format!("{text}?")),
        // What is null may be a time in the past.
        Value::Null => json!(1_u64 << 60),
        Value::Array(values) => {
            values.iter_mut().for_each(change);
            return;
        }
        Value::Object(_) => panic!("no result is an object"),
    };
}

/// A limiter with another configuration than the recorded one is found out.
#[test]
fn another_configuration_fails() {
    let changes = [
        ("rust_governor_gcra", "burst"),
        ("rust_governor_gcra", "replenish_interval_ns"),
        ("go_throttled_gcra", "max_burst"),
        ("go_throttled_gcra", "emission_interval_ns"),
        ("redis_spring_gateway_token_bucket", "rate"),
        ("redis_spring_gateway_token_bucket", "capacity"),
        ("redis_shenyu_token_bucket", "rate"),
        ("redis_shenyu_token_bucket", "capacity"),
        ("redis_shenyu_leaky_bucket", "rate"),
        ("redis_shenyu_leaky_bucket", "capacity"),
        ("token_bucket_pypi", "rate"),
        ("token_bucket_pypi", "capacity"),
        ("go_xtime_rate_2b4e439", "limit"),
        ("go_xtime_rate_2b4e439", "burst"),
        ("go_xtime_rate_v0.3.0", "limit"),
        ("go_xtime_rate_v0.3.0", "burst"),
        ("npm_limiter", "bucket_size"),
        ("npm_limiter", "tokens_per_interval"),
        ("npm_limiter", "interval_ms"),
        ("limits_fixed_window", "limit"),
        ("limits_fixed_window", "window_us"),
        ("limits_sliding_window_counter", "limit"),
        ("limits_sliding_window_counter", "window_us"),
        ("limits_moving_window", "limit"),
        ("limits_moving_window", "window_us"),
        ("rate_limiter_flexible_memory", "points"),
        ("rate_limiter_flexible_memory", "duration_s"),
    ];
    for (file, key) in changes {
        // Not the first traces: with a capacity of 1, whole seconds don't tell 1/s from 2/s.
        let mut cut = Cut::nth(file, 2);
        change(&mut cut.header["config"][key]);
        assert_eq!(cut.run().failures.len(), 1, "{file}: {key}");
    }
    for (file, trace, list, key) in [
        ("pyrate_gcra", 0, "rates", "limit"),
        ("pyrate_gcra", 0, "rates", "interval_ms"),
        ("pyrate_gcra", 0, "rates", "burst"),
        ("pyrate_sliding_log", 0, "rates", "limit"),
        ("pyrate_sliding_log", 0, "rates", "interval_ms"),
        ("pyrate_sliding_log", 5, "rates", "limit"),
        ("pyrate_fixed_window_aligned", 0, "rates", "limit"),
        ("pyrate_fixed_window_aligned", 0, "rates", "interval_ms"),
        ("nginx_limit_req_virtual", 3, "limits", "rate_milli_per_s"),
        ("nginx_limit_req_virtual", 3, "limits", "burst"),
        ("nginx_limit_req_virtual", 12, "limits", "burst"),
    ] {
        let mut cut = Cut::nth(file, trace);
        change(&mut cut.header["config"][list][0][key]);
        assert_eq!(cut.run().failures.len(), 1, "{file}: {key}");
    }
}

/// So is one that delays otherwise, blocks otherwise, or whose windows begin elsewhere.
#[test]
fn another_mode_or_origin_fails() {
    let mut delays = Cut::nth("nginx_limit_req_virtual", 3);
    assert_eq!(delays.header["config"]["limits"][0]["mode"], "delay=2");
    delays.header["config"]["limits"][0]["mode"] = json!("delay=3");
    assert_eq!(delays.run().failures.len(), 1);
    for (trace, key) in [(4, "block_duration_s"), (6, "exec_evenly")] {
        let mut cut = Cut::nth("rate_limiter_flexible_memory", trace);
        change(&mut cut.header["config"][key]);
        assert_eq!(cut.run().failures.len(), 1, "{key}");
    }
    for (file, key) in [
        ("pyrate_fixed_window_aligned", "t_base_unix_ms"),
        ("limits_sliding_window_counter", "t_base_unix_s"),
    ] {
        let mut cut = Cut::nth(file, 2);
        change(&mut cut.header[key]);
        assert_eq!(cut.run().failures.len(), 1, "{file}");
    }
}
