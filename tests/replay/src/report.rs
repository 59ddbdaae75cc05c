//! The result of a run: what was compared, what could not be, and what failed.

use std::collections::BTreeMap;
use std::fmt;

use crate::comparison::Direction;

/// The report of a run over a folder.
#[derive(Debug)]
pub struct Report {
    /// One report for each file, in the order of their names.
    pub files: Vec<FileReport>,
}

/// The report of a run over one file.
#[derive(Debug, Default)]
pub struct FileReport {
    /// The file's name.
    pub file: String,
    /// The number of traces, including those of unknown sources.
    pub traces: usize,
    /// The number of ops that were compared.
    pub ops: usize,
    /// The number of pairs that were compared. Every op has several.
    pub fields: usize,
    /// The accepted differences, in the order of the ops.
    pub differences: Vec<Difference>,
    /// The number of differences after which the recorded state was adopted.
    pub taken_over: usize,
    /// Unknown sources, with the number of their traces in this file.
    pub not_covered: BTreeMap<String, usize>,
    /// The failures.
    pub failures: Vec<Failure>,
}

/// An op with an accepted difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The trace's name.
    pub trace: String,
    /// The number of the op, from 1.
    pub op: u64,
    /// The name of the class.
    pub class: &'static str,
    /// The direction in which the recorded limiter differs.
    pub direction: Direction,
}

/// A difference without a class, or a line that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The file's name.
    pub file: String,
    /// The trace's name.
    pub trace: String,
    /// The number of the op, from 1. 0 stands for the header and anything before it.
    pub op: u64,
    /// What is wrong.
    pub what: String,
}

impl FileReport {
    /// Returns the number of traces that were replayed.
    #[must_use]
    pub fn covered_traces(&self) -> usize {
        self.traces - self.not_covered.values().sum::<usize>()
    }

    /// Returns the number of ops with accepted differences, by class and direction.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<(&'static str, Direction), usize> {
        let mut counts = BTreeMap::new();
        for difference in &self.differences {
            let kind = (difference.class, difference.direction);
            *counts.entry(kind).or_default() += 1;
        }
        counts
    }
}

impl Report {
    /// Returns the failures of all files.
    #[must_use]
    pub fn failures(&self) -> Vec<Failure> {
        self.files.iter().flat_map(|f| f.failures.clone()).collect()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, trace, op, what) = (&self.file, &self.trace, self.op, &self.what);
        write!(f, "{file}, trace {trace:?}, op {op}: {what}")
    }
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, covered) = (&self.file, self.covered_traces());
        let (ops, fields) = (self.ops, self.fields);
        if covered > 0 {
            writeln!(
                f,
                "{file}: {covered} traces, {ops} operations, {fields} answers compared"
            )?;
        }
        for ((class, direction), count) in self.counts() {
            writeln!(f, "    {count:>5} differ: {class} ({direction})")?;
        }
        if self.taken_over > 0 {
            writeln!(
                f,
                "    {:>5} times the replay continued from the recorded state",
                self.taken_over
            )?;
        }
        for (source, traces) in &self.not_covered {
            writeln!(f, "{file}: not covered: {source}, {traces} traces")?;
        }
        self.failures
            .iter()
            .try_for_each(|failure| writeln!(f, "FAILED {failure}"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.iter().try_for_each(|file| file.fmt(f))?;
        let traces: usize = self.files.iter().map(FileReport::covered_traces).sum();
        let ops: usize = self.files.iter().map(|file| file.ops).sum();
        writeln!(f, "total: {traces} traces, {ops} operations compared")
    }
}
