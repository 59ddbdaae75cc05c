//! Proofs that the runner itself can fail, reads what it should, and skips nothing.

mod changed;
mod folders;
mod malformed;
mod outside;

use std::path::{Path, PathBuf};

use super::format::read_text;
use super::report::FileReport;
use super::runner::run_text;
use super::sources;

/// The project's own copy of the recorded traces.
pub(crate) fn own_copy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces")
}

/// The recorded files that have an adapter.
const COVERED: [&str; 6] = [
    "go_throttled_gcra",
    "pyrate_gcra",
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

    fn text(&self) -> String {
        let lines = std::iter::once(&self.header).chain(&self.ops);
        lines.map(|line| format!("{line}\n")).collect()
    }

    fn run(&self) -> FileReport {
        run_text("cut.jsonl", &self.text(), sources::all())
    }
}
