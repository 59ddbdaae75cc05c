//! What a run compared, what it could not, and where it failed.

use std::collections::BTreeMap;
use std::fmt;

use crate::comparison::Direction;

/// What a run of a folder says.
#[derive(Debug)]
pub struct Report {
    /// Of each file, in the order of their names.
    pub files: Vec<FileReport>,
}

/// What a run of one file says.
#[derive(Debug, Default)]
pub struct FileReport {
    /// Its name.
    pub file: String,
    /// All traces, also those of unknown sources.
    pub traces: usize,
    /// The ops that were compared.
    pub ops: usize,
    /// The pairs that were compared: every op has several.
    pub fields: usize,
    /// The differences on purpose, in the order of the ops.
    pub differences: Vec<Difference>,
    /// After how many of those the recorded state was taken over.
    pub taken_over: usize,
    /// Unknown sources, and how many traces they have here.
    pub not_covered: BTreeMap<String, usize>,
    /// What must not be.
    pub failures: Vec<Failure>,
}

/// An op that differs on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The trace's name.
    pub trace: String,
    /// From 1.
    pub op: u64,
    /// The name of its class.
    pub class: &'static str,
    /// In which direction the recorded limiter differs.
    pub direction: Direction,
}

/// A difference without a name, or something that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The file's name.
    pub file: String,
    /// The trace's name.
    pub trace: String,
    /// From 1; 0 is the header or what comes before it.
    pub op: u64,
    /// What is wrong.
    pub what: String,
}

impl FileReport {
    /// The traces that were replayed.
    #[must_use]
    pub fn covered_traces(&self) -> usize {
        self.traces - self.not_covered.values().sum::<usize>()
    }

    /// How many ops differ on purpose, by class and direction.
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
    /// The failures of all files.
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
                "    {:>5} times the recorded state was taken over",
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
        writeln!(f, "in all: {traces} traces, {ops} operations compared")
    }
}
