//! Every change of a recorded result is noticed.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Cut;
use crate::OWN_COPY;

/// Changes every result of some ops of every trace, one at a time. Either the run fails, or the
/// change shows in the accepted differences. In every file, each kind of result also fails
/// somewhere in each direction at the op that was changed.
#[test]
fn every_changed_result_is_noticed() {
    let (mut changed, mut failed) = (0, 0);
    for report in OWN_COPY.files.iter().filter(|file| file.ops > 0) {
        let (mut kinds, mut failing) = (BTreeSet::new(), BTreeSet::new());
        for (index, trace) in Cut::all(&report.file).iter().enumerate() {
            for op in [21 + index % 50, 61 + 2 * (index % 50)] {
                let cut = trace.first(op + 9);
                let before = cut.run();
                let result = &cut.line(op)["result"];
                for key in result.as_object().expect("an object").keys() {
                    // Measured by a client: the only known fact is that it waited.
                    if key == "latency_ms" || before.ops == 0 {
                        continue;
                    }
                    let mut cut = cut.clone();
                    cut.change(op, |line| change(&mut line["result"][key]));
                    let after = cut.run();
                    let name = format!("{}, {}, op {op}: {key}", report.file, trace.name());
                    let is_seen = !after.failures.is_empty() || after.counts() != before.counts();
                    assert!(is_seen, "{name} changed unseen");
                    let kind = (key.clone(), result[key] == true);
                    kinds.insert(kind.clone());
                    changed += 1;
                    if let Some(failure) = after.failures.first() {
                        failed += 1;
                        if failure.op == op as u64 {
                            failing.insert(kind);
                        }
                    }
                }
            }
        }
        assert_eq!(kinds, failing, "{}", report.file);
    }
    assert!(changed > 2000, "{changed} changes");
    // Nearly all fail at once. The rest are ties, where either answer is right.
    assert!(failed * 50 > changed * 49, "{failed} of {changed}");
}

/// Replaces a value with another of the same type.
fn change(value: &mut Value) {
    *value = match value {
        Value::Bool(flag) => json!(!*flag),
        Value::Number(number) if number.is_i64() => json!(number.as_i64().map(|n| n + 1)),
        Value::Number(number) => json!(number.as_f64().map(|n| n + 1.0)),
        Value::String(text) => json!(format!("{text}?")),
        // A null value may stand for a time in the past.
        Value::Null => json!(1_u64 << 60),
        Value::Array(values) => return values.iter_mut().for_each(change),
        Value::Object(_) => panic!("no result is an object"),
    };
}
