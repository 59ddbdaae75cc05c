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
#[derive(Debug)]
pub struct FileReport {
    /// Its name.
    pub file: String,
    /// All traces, also those that nobody knows.
    pub traces: usize,
    /// The ops that were compared.
    pub ops: usize,
    /// The pairs that were compared: every op has several.
    pub fields: usize,
    /// Ops that differ on purpose, by class and direction.
    pub divergences: BTreeMap<(&'static str, Direction), usize>,
    /// After how many of those the recorded state was taken over.
    pub taken_over: usize,
    /// Sources that nobody knows, and how many traces they have here.
    pub not_covered: BTreeMap<String, usize>,
    /// What must not be.
    pub failures: Vec<Failure>,
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
    pub(crate) fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            traces: 0,
            ops: 0,
            fields: 0,
            divergences: BTreeMap::new(),
            taken_over: 0,
            not_covered: BTreeMap::new(),
            failures: Vec::new(),
        }
    }

    pub(crate) fn unreadable(file: &str, error: &std::io::Error) -> Self {
        let mut report = Self::new(file);
        report.failures.push(Failure {
            file: file.to_owned(),
            trace: String::new(),
            op: 0,
            what: format!("can't be read: {error}"),
        });
        report
    }

    /// The traces that were replayed.
    #[must_use]
    pub fn covered_traces(&self) -> usize {
        self.traces - self.not_covered.values().sum::<usize>()
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
        let Self {
            file,
            trace,
            op,
            what,
        } = self;
        write!(f, "{file}, trace {trace:?}, op {op}: {what}")
    }
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let covered = self.covered_traces();
        if covered > 0 {
            writeln!(
                f,
                "{}: {covered} traces, {} operations, {} answers compared",
                self.file, self.ops, self.fields
            )?;
        }
        for ((class, direction), count) in &self.divergences {
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
            writeln!(f, "{}: not covered: {source}, {traces} traces", self.file)?;
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
