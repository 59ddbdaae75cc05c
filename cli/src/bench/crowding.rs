//! Whether threads have a core each: if not, what they make together says little.

use super::contestants::timing::Kind;
use super::machine::Cores;
use super::measure::Measured;

/// Threads on words of their own that make less than this share of what they would if each had a core
/// do not have one. Half is what two on one core make; clocks that slow down cost less than a quarter.
const SHARE: f64 = 0.75;

/// Why threads don't have a core each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Crowding {
    /// There are fewer processors.
    TakeTurns { processors: usize },
    /// The processors are fewer cores.
    ShareCores { cores: usize },
    /// That many times one thread's decisions are all they make on words of their own.
    Slowed { times: f64 },
}

impl Crowding {
    /// What there is to say of so many threads.
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

    /// For people, in lines of at most 80 characters.
    pub(crate) fn note(self, threads: usize) -> String {
        match self {
            Self::TakeTurns { processors } => {
                let cores = if processors == 1 { "core" } else { "cores" };
                format!(
                    "{threads} threads on {processors} {cores} take turns: not more cores' work"
                )
            }
            Self::ShareCores { cores } => {
                let cores = match cores {
                    1 => "1 core".to_owned(),
                    cores => format!("{cores} cores"),
                };
                format!(
                    "{threads} threads on {cores}, by the system's word, share them: ratios say little"
                )
            }
            Self::Slowed { times } => format!(
                "{threads} threads, a word each, make {times:.2} times one's decisions: they share a \
                 core,\nor others want it, and ratios say little"
            ),
        }
    }
}

/// How many times one thread's decisions so many make on words of their own: the less of allowed and
/// denied, since what disturbs the one thread's measurement makes it more.
pub(crate) fn on_private_words(threads: usize, measured: &[Measured<'_>]) -> Option<f64> {
    let times = Kind::BOTH.map(|kind| times_one_thread("private", kind, threads, measured));
    times.into_iter().flatten().reduce(f64::min)
}

/// How many times one thread's decisions so many threads make together, if one was measured.
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
