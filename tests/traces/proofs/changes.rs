//! Changes of single calls and headers that must fail. `changes.txt` lists and describes them.

use serde_json::{Value, json};
use tollgate_replay::{Direction, FileReport};

use super::Cut;
use crate::OWN_COPY;

/// A recorded file, its traces, and the report on it.
struct File(Vec<Cut>, &'static FileReport);

impl File {
    fn read(name: &str) -> Self {
        let name = format!("{name}.jsonl.gz");
        let report = OWN_COPY.files.iter().find(|report| report.file == name);
        Self(Cut::all(&name), report.expect("a recorded file"))
    }

    /// Returns the traces cut after the op to change, with the number of that op. For the header,
    /// returns the whole trace and 0.
    fn places(&self, trace: &str, place: &str) -> Vec<(Cut, usize)> {
        let op = match (place, place.strip_prefix("op ")) {
            ("header", _) => Some(0),
            (_, op) => op.map(|op| op.parse().expect("a number")),
        };
        if let Some(op) = op {
            let named = self.0.iter().filter(|cut| cut.name() == trace);
            let ops = |cut: &Cut| if op > 0 { op } else { cut.0.len() - 1 };
            return named.map(|cut| (cut.first(ops(cut)), op)).collect();
        }
        let mut counted = self.1.differences.clone();
        counted.retain(|it| {
            let is_it = ["*", "?", &it.trace].contains(&trace);
            is_it && place == format!("{} ({})", it.class, it.direction)
        });
        counted.dedup_by(|next, it| next.trace == it.trace);
        counted.truncate(if trace == "?" { 1 } else { usize::MAX });
        let firsts = counted.iter().map(|it| {
            let cut = self.0.iter().find(|cut| cut.name() == it.trace);
            (cut.expect("a trace").first(it.op as usize), it.op as usize)
        });
        firsts.collect()
    }
}

#[test]
fn each_change_fails() {
    let (mut files, mut places, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    let lines = include_str!("changes.txt").lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("//")) {
        if let Some(names) = line.strip_prefix("# ") {
            // The adapters for Guava need the feature `wide`.
            let is_known = |name: &&str| cfg!(feature = "wide") || !name.starts_with("guava");
            files = names.split(' ').filter(is_known).map(File::read).collect();
            continue;
        }
        let mut changes = line;
        if let Some((place, rest)) = line.split_once(" ->") {
            let (trace, place) = place.split_once(", ").expect("a trace");
            places = files
                .iter()
                .flat_map(|file| file.places(trace, place))
                .collect();
            assert!(
                files.is_empty() || !places.is_empty(),
                "no such place: {line}"
            );
            changes = rest;
        }
        for changes in changes
            .trim()
            .split(", ")
            .filter(|changes| !changes.is_empty())
        {
            for (cut, op) in &places {
                let mut changed = cut.clone();
                changes
                    .split('&')
                    .for_each(|change| make(&mut changed, *op, change));
                let failures = changed.run().failures;
                if failures.len() != 1 || *op > 0 && failures[0].op != *op as u64 {
                    wrong.push(format!("{}, op {op}, {changes}: {failures:?}", cut.name()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
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
        assert!(
            !is_rounded || !simple.contains(&it.trace.as_str()),
            "{it:?}"
        );
    }
}

/// For a request for one, both limiters take one.
#[test]
fn a_request_for_one_is_not_in_the_class_of_several() {
    let mut seen = 0;
    for trace in Cut::all("redis_shenyu_sliding_window.jsonl.gz") {
        let found = trace.run().differences;
        for way in [Direction::TheyAdmitMore, Direction::OtherValue] {
            let mut all = found
                .iter()
                .filter(|it| it.class == SEVERAL && it.direction == way);
            let Some(it) = all.next() else { continue };
            let mut one = trace.first(it.op as usize);
            one.change(it.op as usize, |line| line["n"] = json!(1));
            let report = one.run();
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
    let mut cut = Cut::all("rate_limiter_flexible_memory.jsonl.gz").remove(0);
    cut.0.remove(1);
    let ops = cut.0.len() - 1;
    cut.change(0, |header| header["ops"] = json!(ops));
    assert_eq!(cut.run().failures[0].op, 1);
}

#[cfg(feature = "wide")]
#[test]
fn the_initial_state_of_guava_depends_on_its_configuration() {
    for file in [
        "guava_smooth_bursty.jsonl.gz",
        "guava_smooth_warming_up.jsonl.gz",
    ] {
        let mut cut = Cut::all(file).remove(1);
        cut.change(0, |header| header["config"]["rate"] = json!(2));
        assert_eq!(cut.run().failures[0].op, 0);
    }
}

#[test]
fn a_window_other_than_capacity_over_rate_is_refused() {
    for key in ["rate", "capacity", "window_s"] {
        let mut cut = Cut::all("redis_shenyu_sliding_window.jsonl.gz").remove(2);
        cut.change(0, |header| header["config"][key] = json!(11));
        assert!(cut.run().failures[0].what.contains("`window_s`"), "{key}");
    }
}

/// Changes an op or the header.
fn make(cut: &mut Cut, op: usize, change: &str) {
    let (number, change) = match change.strip_prefix("header.") {
        Some(change) => (0, change),
        None => (op, change),
    };
    let (key, change) = change.split_at(change.find(['!', '=', '+', '-']).expect("a change"));
    cut.change(number, |line| {
        let key = format!("/{}", key.replace('.', "/"));
        let result = format!("/result{key}");
        let is_result = line.pointer(&result).is_some();
        let value = line.pointer_mut(if is_result { &result } else { &key });
        let value = value.unwrap_or_else(|| panic!("no {key} in op {op}"));
        *value = match change.strip_prefix('=') {
            Some(new) => new.parse().expect("a value"),
            None if change == "!" => json!(!value.as_bool().expect("yes or no")),
            None => more(value, change),
        };
    });
}

fn more(value: &Value, by: &str) -> Value {
    match (value.as_i64(), by.parse::<i64>()) {
        (Some(value), Ok(by)) => json!(value + by),
        _ => json!(value.as_f64().expect("a number") + by.parse::<f64>().expect("a number")),
    }
}
