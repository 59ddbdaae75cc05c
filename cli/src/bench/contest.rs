//! The measurements: each contestant with each number of threads, on its own limiters.

use std::error::Error;

use super::contestants::sampling::Nothing;
use super::contestants::timing::{Aligned, Kind};
use super::contestants::{Entry, Source, entries};
use super::keyed;

/// A contestant, and the number of threads that decide at once.
pub(crate) struct Contest {
    pub(crate) entry: Entry,
    pub(crate) threads: usize,
}

impl Contest {
    /// Returns its name in files and JSON, which tells allowed from denied decisions.
    pub(crate) fn name(&self) -> String {
        format!("{}_{}", self.entry.name, self.entry.kind.name())
    }

    /// Returns whether this is the named contestant, with the same kind of decisions and number of
    /// threads.
    pub(crate) fn is_peer(&self, name: &str, of: &Self) -> bool {
        (self.entry.name, self.entry.kind, self.threads) == (name, of.entry.kind, of.threads)
    }
}

/// The contestants that show how limiters scale. They are few, because they are measured with many
/// numbers of threads. The others are compared with the mutexes.
const SCALING: [&str; 11] = [
    "floor",
    "private",
    "tollgate_system",
    "tollgate_tick",
    "sharded_system",
    "sharded_tick",
    "lease_system",
    "keyed_system",
    "keyed_tick",
    "std_mutex_system",
    "std_mutex_tick",
];

/// Returns all contestants, or those of [`SCALING`], with allowed and with denied decisions.
pub(crate) fn all(threads: &[usize], scaling: bool) -> Result<Vec<Contest>, Box<dyn Error>> {
    let mut contests = Vec::new();
    for &threads in threads {
        for kind in Kind::BOTH {
            let is_wanted = |entry: &Entry| !scaling || SCALING.contains(&entry.name);
            let entries = of_kind(kind)?.into_iter().filter(is_wanted);
            contests.extend(entries.map(|entry| Contest { entry, threads }));
        }
    }
    Ok(contests)
}

/// Returns the contestants of this kind, including the table of keys and, if built, the peers.
fn of_kind(kind: Kind) -> Result<Vec<Entry>, Box<dyn Error>> {
    let mut all = entries(kind)?;
    let is_mutex = |entry: &Entry| entry.name == "std_mutex_system";
    let place = all.iter().position(is_mutex).unwrap_or(all.len());
    all.splice(place..place, keyed::entries(kind)?);
    #[cfg(feature = "peers")]
    all.extend(super::peers::entries(kind)?);
    Ok(all)
}

/// Returns contestants that do nothing, to measure the cost of timing a single decision.
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
