//! Detects threads that do not have a core each. Their combined throughput means little.

use super::contestants::timing::Kind;
use super::measure::Measured;
use super::topology::Cores;

/// Threads that have a core each make at least this share of the ideal throughput on private words.
/// Two threads on one core make half; lower clock speeds on many cores cost less than a quarter.
const SHARE: f64 = 0.75;

/// Why threads do not have a core each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Crowding {
    /// There are fewer processors than threads.
    TakeTurns { processors: usize },
    /// There are fewer whole cores than threads.
    ShareCores { cores: usize },
    /// The measured throughput on private words is only this multiple of one thread's.
    Slowed { times: f64 },
}

impl Crowding {
    /// Returns why this number of threads is crowded, if it is.
    pub(crate) fn of(threads: usize, cores: Cores, measured: &[Measured<'_>]) -> Option<Self> {
        if threads > cores.logical {
            let processors = cores.logical;
            return Some(Self::TakeTurns { processors });
        }
        if let Some(cores) = cores.whole.filter(|&whole| threads > whole) {
            return Some(Self::ShareCores { cores });
        }
        let times = on_private_words(threads, measured)?;
        (times < SHARE * threads as f64).then_some(Self::Slowed { times })
    }

    /// Explains it in lines of at most 80 characters.
    pub(crate) fn note(self, threads: usize) -> String {
        match self {
            Self::TakeTurns { processors } => {
                let cores = if processors == 1 { "core" } else { "cores" };
                format!("{threads} threads on {processors} {cores} take turns: ratios mean little")
            }
            Self::ShareCores { cores } => {
                let cores = match cores {
                    1 => "1 core".to_owned(),
                    cores => format!("{cores} cores"),
                };
                format!(
                    "{threads} threads share {cores} (as the system reports): ratios mean little"
                )
            }
            Self::Slowed { times } => format!(
                "{threads} threads on private words make {times:.2} times one thread's decisions.\nThey \
                 share a core, or other programs run on it. Ratios mean little"
            ),
        }
    }
}

/// Returns the throughput of this many threads on private words, as a multiple of one thread's.
///
/// It is the smaller figure of allowed and denied decisions, because a disturbance of the
/// one-thread run makes a figure larger.
pub(crate) fn on_private_words(threads: usize, measured: &[Measured<'_>]) -> Option<f64> {
    let times = Kind::BOTH.map(|kind| times_one_thread("private", kind, threads, measured));
    times.into_iter().flatten().reduce(f64::min)
}

/// Returns the combined throughput as a multiple of one thread's, if one thread was measured.
pub(crate) fn times_one_thread(
    name: &str,
    kind: Kind,
    threads: usize,
    measured: &[Measured<'_>],
) -> Option<f64> {
    let ns = |threads: usize| {
        let is_wanted = |one: &&Measured<'_>| {
            let entry = &one.contest.entry;
            (entry.name, entry.kind, one.contest.threads) == (name, kind, threads)
        };
        measured.iter().find(is_wanted).map(|one| one.ns)
    };
    Some(threads as f64 * ns(1)? / ns(threads)?)
}

#[cfg(test)]
mod tests {
    use super::{Cores, Crowding};

    #[test]
    fn threads_without_a_core_each_are_crowded() {
        let of = |threads, logical, whole| Crowding::of(threads, Cores { logical, whole }, &[]);
        assert_eq!(of(3, 2, None), Some(Crowding::TakeTurns { processors: 2 }));
        assert_eq!(
            of(3, 2, Some(1)),
            Some(Crowding::TakeTurns { processors: 2 })
        );
        assert_eq!(of(3, 4, Some(2)), Some(Crowding::ShareCores { cores: 2 }));
        // No measurement contradicts it here.
        for (threads, whole) in [(1, None), (4, None), (2, Some(2)), (4, Some(4))] {
            assert_eq!(of(threads, 4, whole), None, "{threads} on {whole:?}");
        }
    }

    #[test]
    fn notes_count_the_cores() {
        let starts = |crowding: Crowding, start: &str| crowding.note(9).starts_with(start);
        assert!(starts(
            Crowding::TakeTurns { processors: 1 },
            "9 threads on 1 core take turns"
        ));
        assert!(starts(
            Crowding::TakeTurns { processors: 8 },
            "9 threads on 8 cores take turns"
        ));
        assert!(starts(
            Crowding::ShareCores { cores: 1 },
            "9 threads share 1 core ("
        ));
        assert!(starts(
            Crowding::ShareCores { cores: 8 },
            "9 threads share 8 cores ("
        ));
        assert!(starts(
            Crowding::Slowed { times: 4.0 },
            "9 threads on private words make 4.00 times"
        ));
    }
}
