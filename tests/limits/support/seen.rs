//! Counts the events of a run, so that a test can check that it covered all of them.

use std::collections::BTreeMap;

/// The number of times that each event occurred.
#[derive(Debug, Default)]
pub(crate) struct Seen(BTreeMap<&'static str, u64>);

impl Seen {
    pub(crate) fn note(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    /// Notes an operation that was compared.
    pub(crate) fn done(&mut self, verb: &'static str) {
        self.note(verb);
        self.note("operation");
    }

    pub(crate) fn count(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    /// Checks that all these events, with semicolons between them, occurred in this many
    /// operations.
    pub(crate) fn check(&self, operations: u64, must_see: &[&str]) {
        println!("{} operations: {self:?}", self.count("operation"));
        assert!(self.count("operation") >= operations, "{self:?}");
        for what in must_see.iter().flat_map(|events| events.split("; ")) {
            assert!(self.count(what) > 0, "no {what}: {self:?}");
        }
    }
}
