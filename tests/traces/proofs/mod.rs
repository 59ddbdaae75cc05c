//! Proofs that the runner can fail, reads what it should, and skips nothing.

mod any_result;
mod changes;
mod folders;
mod lines;

use serde_json::Value;
use tollgate_replay::{FileReport, read_text, run_text};

use super::{own_copy, sources};

/// The lines of a trace: the header, then its ops from 1.
#[derive(Clone)]
struct Cut(Vec<String>);

impl Cut {
    /// Returns all traces of a recorded file.
    fn all(file: &str) -> Vec<Self> {
        let mut cuts: Vec<Self> = Vec::new();
        let text = read_text(&own_copy().join(file)).expect("a recorded file");
        for line in text.lines() {
            match cuts.last_mut() {
                Some(cut) if !line.starts_with(r#"{"source""#) => cut.0.push(line.to_owned()),
                _ => cuts.push(Self(vec![line.to_owned()])),
            }
        }
        cuts
    }

    fn name(&self) -> String {
        let header: Value = self.line(0);
        header["trace"].as_str().expect("a name").to_owned()
    }

    /// Returns the header, or an op.
    fn line(&self, number: usize) -> Value {
        self.0[number].parse().expect("a recorded line")
    }

    /// Returns the trace with only its first `ops` ops.
    fn first(&self, ops: usize) -> Self {
        let mut cut = Self(self.0[..=ops].to_vec());
        cut.change(0, |header| header["ops"] = ops.into());
        cut
    }

    fn change(&mut self, number: usize, change: impl FnOnce(&mut Value)) {
        let mut line = self.line(number);
        change(&mut line);
        self.0[number] = line.to_string();
    }

    fn run(&self) -> FileReport {
        run_text("cut.jsonl", &self.0.join("\n"), sources::all())
    }
}
