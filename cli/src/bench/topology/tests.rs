//! Topologies of possible machines.

use super::{Topology, numbers, ranges};

/// A machine with equal packages, whose cores have equally many processors. With `by_core`
/// numbering, the processors of a core are adjacent; otherwise all first processors come before all
/// second ones. Each package is a NUMA node and has one last-level cache.
struct Machine {
    packages: usize,
    cores: usize,
    smt: usize,
    by_core: bool,
}

impl Machine {
    /// Returns the package, the core and the place in the core of a processor number.
    fn place(&self, number: usize) -> (usize, usize) {
        let all_cores = self.packages * self.cores;
        let core = match self.by_core {
            true => number / self.smt,
            false => number % all_cores,
        };
        (core / self.cores, core)
    }

    fn listed(&self, is_in: impl Fn((usize, usize)) -> bool) -> String {
        let all = 0..self.packages * self.cores * self.smt;
        let listed: Vec<_> = all.filter(|&number| is_in(self.place(number))).collect();
        ranges(&listed) + "\n"
    }

    /// Returns what the system would report.
    fn look(&self, path: &str) -> Option<String> {
        if path == "node/online" {
            return Some(format!("0-{}\n", self.packages - 1));
        }
        if let Some(node) = path.strip_prefix("node/node") {
            let node: usize = node.strip_suffix("/cpulist")?.parse().ok()?;
            return Some(self.listed(|(package, _)| package == node));
        }
        let (number, what) = path.strip_prefix("cpu/cpu")?.split_once('/')?;
        let (package, core) = self.place(number.parse().ok()?);
        match what {
            "topology/physical_package_id" => Some(format!("{package}\n")),
            "topology/thread_siblings_list" | "cache/index0/shared_cpu_list" => {
                Some(self.listed(|(_, other)| other == core))
            }
            "cache/index0/level" => Some("1\n".to_owned()),
            "cache/index1/level" => Some("3\n".to_owned()),
            "cache/index1/shared_cpu_list" => Some(self.listed(|(other, _)| other == package)),
            _ => None,
        }
    }

    fn topology(&self, allowed: &[usize]) -> Topology {
        Topology::read(allowed, allowed.len(), |path| self.look(path))
    }

    fn whole(&self) -> Topology {
        let all: Vec<_> = (0..self.packages * self.cores * self.smt).collect();
        self.topology(&all)
    }
}

const SERVER: Machine = Machine {
    packages: 2,
    cores: 8,
    smt: 2,
    by_core: false,
};

fn evens(from: usize, to: usize) -> impl Iterator<Item = usize> {
    (from..to).step_by(2)
}

#[test]
fn whole_cores_of_one_package_come_first_and_siblings_last() {
    let all: Vec<_> = (0..32).collect();
    assert_eq!(SERVER.whole().order(), all, "0 and 16 are one core");
    let neighbors = Machine {
        by_core: true,
        ..SERVER
    };
    let firsts = evens(0, 32);
    let expected: Vec<_> = firsts.chain(evens(1, 32)).collect();
    assert_eq!(neighbors.whole().order(), expected, "0 and 1 are one core");
}

/// Three packages whose nodes are numbered in reverse, as some firmware does.
#[test]
fn all_cores_of_a_package_come_before_the_next_ones() {
    let look = |path: &str| match path {
        "node/online" => Some("0-2".to_owned()),
        "node/node0/cpulist" => Some("0,3".to_owned()),
        "node/node1/cpulist" => Some("1,4".to_owned()),
        "node/node2/cpulist" => Some("2,5".to_owned()),
        _ => None,
    };
    let topology = Topology::read(&[0, 1, 2, 3, 4, 5], 6, look);
    assert_eq!(topology.order(), [0, 3, 1, 4, 2, 5]);
}

#[test]
fn processors_of_one_cache_come_together() {
    let look = |path: &str| {
        let (number, what) = path.strip_prefix("cpu/cpu")?.split_once('/')?;
        let number: usize = number.parse().ok()?;
        match what {
            "cache/index0/level" => Some("3".to_owned()),
            "cache/index0/shared_cpu_list" => Some(["0,2", "1,3"][number % 2].to_owned()),
            _ => None,
        }
    };
    let topology = Topology::read(&[0, 1, 2, 3], 4, look);
    assert_eq!(topology.order(), [0, 2, 1, 3]);
    let lines = topology.lines();
    assert_eq!(lines[1], "last-level cache: shared by processors 0,2; 1,3");
}

#[test]
fn a_whole_server_is_described() {
    let topology = SERVER.whole();
    assert_eq!(
        topology.lines(),
        [
            "topology: 2 packages, 2 NUMA nodes, 16 cores, 32 processors, \
             SMT with 2 processors a core",
            "last-level cache: shared by processors 0-7,16-23; 8-15,24-31",
        ]
    );
    assert_eq!(topology.thread_counts(), [1, 2, 4, 8, 16, 32]);
}

#[test]
fn only_processors_that_may_be_used_count() {
    // 1 and 17 share a core. 3 and 24 are alone on their cores: their siblings may not be used.
    let topology = SERVER.topology(&[1, 3, 17, 24]);
    assert_eq!(topology.order(), [1, 3, 24, 17]);
    assert_eq!(
        topology.lines(),
        [
            "topology: 2 packages, 2 NUMA nodes, 3 cores, 4 processors, \
             SMT with 2 processors a core",
            "last-level cache: shared by processors 1,3,17; 24",
        ]
    );
    assert_eq!(topology.thread_counts(), [1, 2, 3, 4]);
}

#[test]
fn one_core_is_one_thread() {
    let single = Machine {
        packages: 1,
        cores: 1,
        smt: 1,
        by_core: true,
    };
    let topology = single.whole();
    assert_eq!(
        (topology.order(), topology.thread_counts()),
        (vec![0], vec![1])
    );
    let line = "topology: 1 package, 1 NUMA node, 1 core, 1 processor, no SMT";
    assert_eq!(topology.lines()[0], line);
}

#[test]
fn unreported_facts_are_unknown() {
    let topology = Topology::read(&[0, 1, 2, 3, 4, 5], 6, |_| None);
    assert_eq!(topology.order(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(topology.thread_counts(), [1, 2, 4, 6]);
    assert_eq!(
        topology.lines(),
        [
            "topology: packages unknown, NUMA nodes unknown, cores unknown, 6 processors, \
             SMT unknown",
            "last-level cache: unknown",
        ]
    );
    // Some virtual machines report -1.
    let minus = |path: &str| path.ends_with("_id").then(|| "-1\n".to_owned());
    let lines = Topology::read(&[0], 1, minus).lines();
    assert!(lines[0].contains("packages unknown"), "{lines:?}");
}

#[test]
fn a_quota_below_the_processors_is_reported() {
    let topology = Topology::read(&[0, 1, 2, 3], 2, |path| SERVER.look(path));
    assert_eq!(topology.thread_counts(), [1, 2]);
    let last = "a CPU quota limits this process to 2 processors";
    assert_eq!(topology.lines().last().map(String::as_str), Some(last));
}

#[test]
fn lists_of_processors_are_read_and_written() {
    for (list, expected) in [
        ("0", vec![0]),
        ("\t0-3,8,10-11\n", vec![0, 1, 2, 3, 8, 10, 11]),
        ("8,0-1", vec![0, 1, 8]),
    ] {
        assert_eq!(numbers(list), Some(expected), "{list}");
    }
    for wrong in ["", "none", "3-1", "1,", "-1", "0-99999999999"] {
        assert_eq!(numbers(wrong), None, "{wrong}");
    }
    assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
    assert_eq!(ranges(&[]), "");
}
