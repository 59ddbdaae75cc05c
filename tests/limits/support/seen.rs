//! Counts what a run has met, so that a test can say that it met everything.

use std::collections::BTreeMap;

/// How often each thing was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen(BTreeMap<&'static str, u64>);

impl Seen {
    pub(crate) fn note(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub(crate) fn count(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    /// Whether all these were met, in so many operations.
    pub(crate) fn check(&self, operations: u64, must_see: &[&[&str]]) {
        println!("{} operations: {self:?}", self.count("operation"));
        assert!(self.count("operation") >= operations, "{self:?}");
        for what in must_see.concat() {
            assert!(self.count(what) > 0, "no {what}: {self:?}");
        }
    }
}
