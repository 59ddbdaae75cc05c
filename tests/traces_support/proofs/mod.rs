//! Proofs that the runner itself can fail, reads what it should, and skips nothing.

mod changed;
mod concurrent;
mod folders;
#[cfg(feature = "wide")]
mod guava;
mod leaky;
mod logs;
mod malformed;
mod outside;
mod windows;
mod xtime;

use std::path::{Path, PathBuf};

use super::sources;
use tollgate_replay::{Direction, FileReport, read_text, run_text};

/// The project's own copy of the recorded traces.
pub(crate) fn own_copy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces")
}

/// The recorded files that have an adapter.
const COVERED: [&str; 20] = [
    "go_throttled_gcra",
    "go_xtime_rate_2b4e439",
    "go_xtime_rate_v0.3.0",
    "limits_fixed_window",
    "limits_moving_window",
    "limits_sliding_window_counter",
    "nginx_limit_req_realtime",
    "nginx_limit_req_virtual",
    "npm_limiter",
    "pyrate_fixed_window_aligned",
    "pyrate_gcra",
    "pyrate_sliding_log",
    "rate_limiter_flexible_memory",
    "redis_shenyu_concurrent",
    "redis_shenyu_leaky_bucket",
    "redis_shenyu_sliding_window",
    "redis_shenyu_token_bucket",
    "redis_spring_gateway_token_bucket",
    "rust_governor_gcra",
    "token_bucket_pypi",
];

fn recorded(file: &str) -> String {
    read_text(&own_copy().join(format!("{file}.jsonl.gz"))).expect("a recorded file")
}

/// The lines of each trace, its header first.
fn traces(text: &str) -> Vec<Vec<&str>> {
    let mut traces: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        match traces.last_mut() {
            Some(trace) if !line.starts_with(r#"{"source""#) => trace.push(line),
            _ => traces.push(vec![line]),
        }
    }
    traces
}

/// One trace: its header, and its ops.
#[derive(Clone)]
struct Cut {
    header: serde_json::Value,
    ops: Vec<serde_json::Value>,
}

impl Cut {
    /// All traces of a file.
    fn all(file: &str) -> Vec<Self> {
        let text = recorded(file);
        traces(&text).iter().map(|lines| Self::new(lines)).collect()
    }

    /// One trace of a file, from 0.
    fn nth(file: &str, trace: usize) -> Self {
        Self::new(&traces(&recorded(file))[trace])
    }

    fn new(lines: &[&str]) -> Self {
        let json = |line: &&str| serde_json::from_str(line).expect("a recorded line");
        Self {
            header: json(&lines[0]),
            ops: lines[1..].iter().map(json).collect(),
        }
    }

    /// The first `ops` of it.
    fn first(&self, ops: usize) -> Self {
        let ops: Vec<_> = self.ops.iter().take(ops).cloned().collect();
        let mut header = self.header.clone();
        header["ops"] = ops.len().into();
        Self { header, ops }
    }

    /// One trace of a file, by its name.
    fn named(file: &str, trace: &str) -> Self {
        let is_it = |cut: &Self| cut.header["trace"] == trace;
        Self::all(file)
            .into_iter()
            .find(is_it)
            .expect("such a trace")
    }

    /// The first op that is counted in this class and direction.
    fn first_counted(&self, class: &'static str, way: Direction) -> usize {
        let all: Vec<usize> = (0..self.ops.len()).collect();
        let counted = |ops: usize| {
            self.first(ops)
                .run()
                .divergences
                .contains_key(&(class, way))
        };
        let first = all.partition_point(|&position| !counted(position + 1));
        assert!(first < all.len(), "nothing is counted as {class}");
        first
    }

    fn text(&self) -> String {
        let lines = std::iter::once(&self.header).chain(&self.ops);
        lines.map(|line| format!("{line}\n")).collect()
    }

    fn run(&self) -> FileReport {
        run_text("cut.jsonl", &self.text(), sources::all())
    }
}

/// Finds the first op that is counted in this class, and sees that it fails after each of the edits.
fn fails_if(
    cut: &Cut,
    class: &'static str,
    way: Direction,
    edits: &[fn(&mut serde_json::Value)],
) -> usize {
    let position = cut.first_counted(class, way);
    for (number, edit) in edits.iter().enumerate() {
        let mut cut = cut.first(position + 1);
        edit(&mut cut.ops[position]);
        let failures = cut.run().failures;
        assert_eq!(failures.len(), 1, "{class}: edit {number} of op {position}");
        assert_eq!(failures[0].op, position as u64 + 1, "{}", failures[0]);
    }
    position
}

/// Adds to a number of the op or of its result.
fn add(op: &mut serde_json::Value, key: &str, n: i64) {
    let value = if op["result"][key].is_null() {
        &mut op[key]
    } else {
        &mut op["result"][key]
    };
    *value = serde_json::json!(value.as_i64().expect("a number") + n);
}
