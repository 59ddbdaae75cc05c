//! Proofs that a replay can fail: every change of a recorded value is noticed, and the changes of a
//! list fail where they are made.

use std::collections::BTreeSet;
use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::format::read_text;
use crate::report::{FileReport, Report};
use crate::runner::{Source, run_folder, run_text};

/// The lines of a trace: the header, then its ops from 1.
///
/// ```
/// use tollgate_replay::proof::Cut;
///
/// let mut cut = Cut(vec![
///     r#"{"source":"s 1","algorithm":"a","trace":"two","config":{},"ops":2}"#.to_owned(),
///     r#"{"t":0,"op":"go","result":{"ok":true}}"#.to_owned(),
///     r#"{"t":1,"op":"go","result":{"ok":true}}"#.to_owned(),
/// ]);
/// assert_eq!((cut.name().as_str(), cut.first(1).0.len()), ("two", 2));
/// cut.change(2, |op| op["t"] = 7.into());
/// assert_eq!(cut.line(2)["t"], 7);
/// ```
#[derive(Debug, Clone)]
pub struct Cut(pub Vec<String>);

impl Cut {
    /// Returns all traces of a recorded file.
    #[must_use]
    pub fn all(file: &Path) -> Vec<Self> {
        let mut cuts: Vec<Self> = Vec::new();
        let text = read_text(file).expect("a recorded file");
        for line in text.lines() {
            match cuts.last_mut() {
                Some(cut) if !line.starts_with(r#"{"source""#) => cut.0.push(line.to_owned()),
                _ => cuts.push(Self(vec![line.to_owned()])),
            }
        }
        cuts
    }

    /// Returns the name of the trace.
    #[must_use]
    pub fn name(&self) -> String {
        let header: Value = self.line(0);
        header["trace"].as_str().expect("a name").to_owned()
    }

    /// Returns the header, or an op.
    #[must_use]
    pub fn line(&self, number: usize) -> Value {
        self.0[number].parse().expect("a recorded line")
    }

    /// Returns the trace with only its first `ops` ops.
    #[must_use]
    pub fn first(&self, ops: usize) -> Self {
        let mut cut = Self(self.0[..=ops].to_vec());
        cut.change(0, |header| header["ops"] = ops.into());
        cut
    }

    /// Changes the header, or an op.
    pub fn change(&mut self, number: usize, change: impl FnOnce(&mut Value)) {
        let mut line = self.line(number);
        change(&mut line);
        self.0[number] = line.to_string();
    }

    /// Replays the trace.
    #[must_use]
    pub fn run(&self, sources: &[&dyn Source]) -> FileReport {
        run_text("cut.jsonl", &self.0.join("\n"), sources)
    }
}

/// A recorded file, its traces, and the report on it.
struct File<'r>(Vec<Cut>, &'r FileReport);

impl<'r> File<'r> {
    fn read(folder: &Path, report: &'r Report, name: &str) -> Self {
        let name = format!("{name}.jsonl.gz");
        let report = report.files.iter().find(|report| report.file == name);
        Self(
            Cut::all(&folder.join(&name)),
            report.expect("a recorded file"),
        )
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

/// Replays the folder that an environment variable names, or else the project's own recordings,
/// whose report is `own`. Prints the report, in which nothing may have failed.
pub fn recorded_decisions_are_reproduced(own: &LazyLock<Report>, sources: &[&dyn Source]) {
    let other = env::var_os("TOLLGATE_TRACES").map(PathBuf::from);
    let other = other.map(|folder| run_folder(&folder, sources).expect("TOLLGATE_TRACES"));
    let report = other.as_ref().unwrap_or_else(|| &**own);
    // Not with println, whose output the test harness hides when a test passes.
    write!(io::stdout().lock(), "\n{report}").expect("standard output");
    let failures = report.failures().len();
    assert_eq!(failures, 0, "{failures} failures, see above");
}

/// Compares the printed report with the expected one: every file with its calls and answers, and
/// the exact count of each class of differences. So no new difference can hide in an existing
/// class, and no call is left out.
pub fn the_differences_are_exactly_the_expected_ones(own: &Report, expected: &str) {
    for file in &own.files {
        let is_expected = expected.contains(&format!("\n{file}\n"));
        assert!(is_expected, "not expected: {file}");
    }
    let lines = expected.lines();
    let files = lines.filter(|line| line.ends_with(" answers compared"));
    assert_eq!(files.count(), own.files.len());
}

/// Asserts that each change in a list fails at its op, and nothing else does. The list names the
/// files, below them the places, and what to change there. `tests/traces/proofs/changes.txt`
/// describes the format.
pub fn each_change_fails(folder: &Path, report: &Report, sources: &[&dyn Source], changes: &str) {
    let (mut files, mut places, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    let lines = changes.lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("//")) {
        if let Some(names) = line.strip_prefix("# ") {
            let names = names.split(' ');
            files = names.map(|name| File::read(folder, report, name)).collect();
            continue;
        }
        let mut changes = line;
        if let Some((place, rest)) = line.split_once(" ->") {
            let (trace, place) = place.split_once(", ").expect("a trace");
            places = files
                .iter()
                .flat_map(|file: &File<'_>| file.places(trace, place))
                .collect();
            assert!(!places.is_empty(), "no such place: {line}");
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
                let failures = changed.run(sources).failures;
                if failures.len() != 1 || *op > 0 && failures[0].op != *op as u64 {
                    wrong.push(format!("{}, op {op}, {changes}: {failures:?}", cut.name()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
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

/// Changes every result of some ops of every trace, one at a time, and asserts that either the run
/// fails, or the change shows in the accepted differences. In every file, each kind of result also
/// fails somewhere in each direction at the op that was changed. Returns how many results were
/// changed, and how many of these runs failed.
#[must_use]
pub fn changed_results_are_noticed(
    folder: &Path,
    report: &Report,
    sources: &[&dyn Source],
) -> (usize, usize) {
    let (mut changed, mut failed) = (0, 0);
    for report in report.files.iter().filter(|file| file.ops > 0) {
        let (mut kinds, mut failing) = (BTreeSet::new(), BTreeSet::new());
        for (index, trace) in Cut::all(&folder.join(&report.file)).iter().enumerate() {
            for op in [21 + index % 50, 61 + 2 * (index % 50)] {
                let cut = trace.first(op + 9);
                let before = cut.run(sources);
                let result = &cut.line(op)["result"];
                for key in result.as_object().expect("an object").keys() {
                    // Measured by a client: the only known fact is that it waited.
                    if key == "latency_ms" || before.ops == 0 {
                        continue;
                    }
                    let mut cut = cut.clone();
                    cut.change(op, |line| change(&mut line["result"][key]));
                    let after = cut.run(sources);
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
    (changed, failed)
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
