//! The class of the concurrent limit fails where its condition does not hold.

use serde_json::{Value, json};
use tollgate_replay::Direction::OtherValue;

use super::{Cut, add, fails_if};

const FILE: &str = "redis_shenyu_concurrent";

/// Of an id that is inside, by one, and with the same count.
#[test]
fn an_id_that_is_inside_takes_no_place() {
    let class = "an id that is inside already needs a place and takes none";
    let edits: [fn(&mut Value); 6] = [
        |op| op["id"] = json!("another"),
        |op| op["op"] = json!("release"),
        |op| add(op, "zcard_after", -1),
        |op| add(op, "count", 1),
        |op| add(op, "count", -1),
        |op| op["result"]["ok"] = json!(false),
    ];
    let mut found = 0;
    for cut in Cut::all(FILE) {
        if cut.run().divergences.contains_key(&(class, OtherValue)) {
            fails_if(&cut, class, OtherValue, &edits);
            found += 1;
        }
    }
    assert!(found >= 2, "{found}");
}

/// A guard that was dropped is not there any more, and one that was not is.
#[test]
fn a_release_is_of_an_id_that_is_inside() {
    let cut = Cut::nth(FILE, 1);
    let position = cut.ops.iter().position(|op| op["op"] == "release");
    let position = position.expect("a release");
    for edit in [
        (|op: &mut Value| op["id"] = json!("another")) as fn(&mut Value),
        |op| add(op, "removed", -1),
        |op| add(op, "zcard_after", 1),
    ] {
        let mut cut = cut.first(position + 1);
        edit(&mut cut.ops[position]);
        assert_eq!(cut.run().failures.len(), 1);
    }
}
