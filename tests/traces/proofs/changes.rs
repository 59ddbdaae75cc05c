//! Changes of single calls and headers that must fail. `changes.txt` lists and describes them.

use serde_json::json;
use tollgate_replay::{Direction, proof};

use super::{cuts, run};
use crate::{OWN_COPY, own_copy, sources};

#[test]
fn each_change_fails() {
    let changes = include_str!("changes.txt");
    proof::each_change_fails(&own_copy(), &OWN_COPY, sources::all(), changes);
}

/// At rates of whole nanoseconds, no level lies between the units of our limiter.
#[test]
fn levels_are_not_rounded_at_simple_rates() {
    let simple = [
        "l10-b5-fixed",
        "l1-b100-fixed",
        "l1000-b1000-fixed",
        "l3e+09-b100-fixed",
    ];
    let xtime = OWN_COPY
        .files
        .iter()
        .filter(|report| report.file.starts_with("go_xtime"));
    for it in xtime.flat_map(|report| &report.differences) {
        let went_back = it.class.starts_with("time went back");
        assert!(!went_back || it.trace.ends_with("-backwards"), "{it:?}");
        let is_rounded = it.class.starts_with("ours rounds levels");
        let holds = !is_rounded || !simple.contains(&it.trace.as_str());
        assert!(holds, "{it:?}");
    }
}

/// For a request for one, both limiters take one.
#[test]
fn a_request_for_one_is_not_in_the_class_of_several() {
    let mut seen = 0;
    for trace in cuts("redis_shenyu_sliding_window.jsonl.gz") {
        let found = run(&trace).differences;
        for way in [Direction::TheyAdmitMore, Direction::OtherValue] {
            let mut all = found
                .iter()
                .filter(|it| it.class == SEVERAL && it.direction == way);
            let Some(it) = all.next() else { continue };
            let mut one = trace.first(it.op as usize);
            one.change(it.op as usize, |line| line["n"] = json!(1));
            let report = run(&one);
            assert_eq!(report.failures, []);
            let mut differs = report.differences.iter();
            assert!(!differs.any(|other| (other.op, &other.class) == (it.op, &it.class)));
            seen += 1;
        }
    }
    assert!(seen > 0);
}

const SEVERAL: &str = "theirs takes one permit for a request for several";

/// Without the reward that opens a window, the next call is in no window.
#[test]
fn a_reward_opens_the_window_of_the_next_call() {
    let mut cut = cuts("rate_limiter_flexible_memory.jsonl.gz").remove(0);
    cut.0.remove(1);
    let ops = cut.0.len() - 1;
    cut.change(0, |header| header["ops"] = json!(ops));
    assert_eq!(run(&cut).failures[0].op, 1);
}

#[test]
fn a_window_other_than_capacity_over_rate_is_refused() {
    for key in ["rate", "capacity", "window_s"] {
        let mut cut = cuts("redis_shenyu_sliding_window.jsonl.gz").remove(2);
        cut.change(0, |header| header["config"][key] = json!(11));
        assert!(run(&cut).failures[0].what.contains("`window_s`"), "{key}");
    }
}
