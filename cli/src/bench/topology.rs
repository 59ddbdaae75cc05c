//! How the processors share packages, NUMA nodes, cores and caches. Linux reports this below
//! `/sys`. On other systems it is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::{fs, thread};

use serde::Serialize;

/// Where Linux describes processors and nodes.
const ROOT: &str = "/sys/devices/system";

/// More caches than any processor has.
const MAX_CACHES: usize = 16;

/// The highest processor number. A range beyond it is an error.
const MAX_NUMBER: usize = 1 << 16;

/// A logical processor that this process may use.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Processor {
    number: usize,
    package: Option<usize>,
    node: Option<usize>,
    /// All processors of the same whole core, including those that the process may not use.
    core: Option<Vec<usize>>,
    /// All processors that share its last-level cache.
    cache: Option<Vec<usize>>,
}

/// The processors that this process may use, by number.
#[derive(Debug)]
pub(crate) struct Topology {
    processors: Vec<Processor>,
    /// How many of them may run at once. A CPU quota of the process can lower it.
    at_once: usize,
}

/// The number of processors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cores {
    /// Logical processors that may run at once.
    pub(crate) logical: usize,
    /// Whole cores, if the system reports them.
    pub(crate) whole: Option<usize>,
}

/// The topology as figures for JSON. Unknown values are null.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    packages: Option<usize>,
    numa_nodes: Option<usize>,
    cores: Option<usize>,
    processors_per_core: Option<usize>,
    processors: Vec<usize>,
    last_level_caches: Option<Vec<Vec<usize>>>,
}

impl Topology {
    pub(crate) fn of_this_machine() -> Self {
        let at_once = thread::available_parallelism().map_or(1, usize::from);
        let ids = core_affinity::get_core_ids().unwrap_or_default();
        let mut allowed: Vec<_> = ids.into_iter().map(|core| core.id).collect();
        if allowed.is_empty() {
            allowed = (0..at_once).collect();
        }
        Self::read(&allowed, at_once, |path| {
            fs::read_to_string(format!("{ROOT}/{path}")).ok()
        })
    }

    /// Reads the topology of these processors. `look` returns the content of a path below [`ROOT`].
    fn read(allowed: &[usize], at_once: usize, look: impl Fn(&str) -> Option<String>) -> Self {
        let list = |path: &str| numbers(&look(path)?);
        let nodes = list("node/online").unwrap_or_default().into_iter();
        let nodes = nodes.map(|node| (node, list(&format!("node/node{node}/cpulist"))));
        let nodes: Vec<_> = nodes.collect();
        let processor = |&number: &usize| {
            let path = format!("cpu/cpu{number}");
            let is_in = |list: &Option<Vec<usize>>| {
                list.as_ref().is_some_and(|list| list.contains(&number))
            };
            let cache = |index: usize| {
                let cache = format!("{path}/cache/index{index}");
                let level: usize = look(&format!("{cache}/level"))?.trim().parse().ok()?;
                Some((level, list(&format!("{cache}/shared_cpu_list"))?))
            };
            let last = (0..MAX_CACHES)
                .map_while(cache)
                .max_by_key(|(level, _)| *level);
            Processor {
                number,
                package: look(&format!("{path}/topology/physical_package_id"))
                    .and_then(|id| id.trim().parse().ok()),
                node: nodes
                    .iter()
                    .find(|(_, list)| is_in(list))
                    .map(|(node, _)| *node),
                core: list(&format!("{path}/topology/thread_siblings_list")),
                cache: last.map(|(_, shared)| shared),
            }
        };
        Self {
            processors: allowed.iter().map(processor).collect(),
            at_once,
        }
    }

    /// Returns the processors in the order in which threads get them. A second processor of a core
    /// comes after all whole cores. Otherwise processors of one package, NUMA node and cache stay
    /// together.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut of_core = BTreeMap::new();
        let place = |processor: &Processor| {
            let rank = processor.core.clone().map_or(0, |core| {
                let taken = of_core.entry(core).or_insert(0);
                *taken += 1;
                *taken - 1
            });
            let cache = processor
                .cache
                .as_ref()
                .and_then(|shared| shared.first().copied());
            let Processor {
                number,
                package,
                node,
                ..
            } = *processor;
            (rank, package, node, cache, number)
        };
        let mut places: Vec<_> = self.processors.iter().map(place).collect();
        places.sort_unstable();
        places.into_iter().map(|(.., number)| number).collect()
    }

    pub(crate) fn cores(&self) -> Cores {
        Cores {
            logical: self.at_once,
            whole: self.distinct(|processor| processor.core.clone()),
        }
    }

    /// Returns the numbers of threads that show how a limiter scales: the powers of two, all whole
    /// cores, and all processors.
    pub(crate) fn thread_counts(&self) -> Vec<usize> {
        let Cores { logical, whole } = self.cores();
        let powers = (0..usize::BITS)
            .map(|i| 1 << i)
            .take_while(|&n| n < logical);
        let whole = whole.filter(|&whole| whole < logical);
        let counts: BTreeSet<_> = powers.chain(whole).chain([logical]).collect();
        counts.into_iter().collect()
    }

    pub(crate) fn figures(&self) -> Figures {
        let siblings = |processor: &Processor| Some(processor.core.as_ref()?.len());
        let siblings: Option<Vec<_>> = self.processors.iter().map(siblings).collect();
        Figures {
            packages: self.distinct(|processor| processor.package),
            numa_nodes: self.distinct(|processor| processor.node),
            cores: self.cores().whole,
            processors_per_core: siblings.and_then(|all| all.into_iter().max()),
            processors: self.processors.iter().map(|it| it.number).collect(),
            last_level_caches: self.caches(),
        }
    }

    /// Describes the topology in text: the counts, the shared caches, and the quota if there is
    /// one.
    pub(crate) fn lines(&self) -> Vec<String> {
        let figures = self.figures();
        let smt = match figures.processors_per_core {
            None => "SMT unknown".to_owned(),
            Some(..=1) => "no SMT".to_owned(),
            Some(n) => format!("SMT with {n} processors a core"),
        };
        let counts = [
            counted(figures.packages, "package"),
            counted(figures.numa_nodes, "NUMA node"),
            counted(figures.cores, "core"),
            counted(Some(figures.processors.len()), "processor"),
            smt,
        ];
        let caches = figures
            .last_level_caches
            .map_or("unknown".to_owned(), |all| {
                let lists: Vec<_> = all.iter().map(|list| ranges(list)).collect();
                format!("shared by processors {}", lists.join("; "))
            });
        let mut lines = vec![
            format!("topology: {}", counts.join(", ")),
            format!("last-level cache: {caches}"),
        ];
        if self.at_once < self.processors.len() {
            let most = counted(Some(self.at_once), "processor");
            lines.push(format!("a CPU quota limits this process to {most}"));
        }
        lines
    }

    /// Returns the processors in groups that share a last-level cache.
    fn caches(&self) -> Option<Vec<Vec<usize>>> {
        let mut groups: BTreeMap<&[usize], Vec<usize>> = BTreeMap::new();
        for processor in &self.processors {
            let shared = processor.cache.as_deref()?;
            groups.entry(shared).or_default().push(processor.number);
        }
        Some(groups.into_values().collect())
    }

    /// Returns how many different values there are, if all are known.
    fn distinct<T: Ord>(&self, of: impl Fn(&Processor) -> Option<T>) -> Option<usize> {
        let all: Option<BTreeSet<T>> = self.processors.iter().map(of).collect();
        all.map(|all| all.len())
    }
}

fn counted(count: Option<usize>, what: &str) -> String {
    match count {
        None => format!("{what}s unknown"),
        Some(1) => format!("1 {what}"),
        Some(n) => format!("{n} {what}s"),
    }
}

/// Parses a list of numbers such as `0-3,8`, in order.
fn numbers(list: &str) -> Option<Vec<usize>> {
    let mut numbers = BTreeSet::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last > MAX_NUMBER {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers.into_iter().collect())
}

/// Formats ordered numbers as a list such as `0-3,8`.
pub(crate) fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let run = |run: &[usize]| match run {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    };
    runs.map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
