//! What is measured: each contestant with each number of threads, on limiters of its own.

use std::error::Error;

use super::contestants::sampling::Nothing;
use super::contestants::timing::{Aligned, Kind};
use super::contestants::{Entry, Source, entries};

/// A contestant, and how many threads decide at once.
pub(crate) struct Contest {
    pub(crate) entry: Entry,
    pub(crate) threads: usize,
}

impl Contest {
    /// Its name in files and JSON, which says what its decisions are.
    pub(crate) fn name(&self) -> String {
        format!("{}_{}", self.entry.name, self.entry.kind.name())
    }

    /// Whether it is this contestant, with the same decisions on as many threads.
    pub(crate) fn is_peer(&self, name: &str, of: &Self) -> bool {
        (self.entry.name, self.entry.kind, self.threads) == (name, of.entry.kind, of.threads)
    }
}

/// All of them, with allowed and with denied decisions.
pub(crate) fn all(threads: &[usize]) -> Result<Vec<Contest>, Box<dyn Error>> {
    let mut contests = Vec::new();
    for &threads in threads {
        for kind in Kind::BOTH {
            let entries = entries(kind)?.into_iter();
            contests.extend(entries.map(|entry| Contest { entry, threads }));
        }
    }
    Ok(contests)
}

/// What it costs to look at a single decision, as contestants that do nothing.
pub(crate) fn of_timing_alone(threads: &[usize]) -> Vec<Contest> {
    let contest = |threads, kind: Kind| Contest {
        entry: Entry {
            name: "timing",
            subject: "the timing alone",
            source: Source::Raw,
            kind,
            runner: Box::new(Aligned(Nothing(kind == Kind::Allowed))),
        },
        threads,
    };
    let each = threads
        .iter()
        .map(|&n| Kind::BOTH.map(|kind| contest(n, kind)));
    each.flatten().collect()
}
