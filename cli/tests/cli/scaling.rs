//! `tollgate bench --scaling`: numbers of threads up to all processors, the topology of the
//! machine, and the processors that the threads ran on.

use std::fs;
use std::sync::LazyLock;

use serde_json::Value;

use super::{between, folder, printed};

/// The measured contestants, as named in the JSON.
const MEASURED: [&str; 11] = [
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

/// All tests share one measurement.
static JSON: LazyLock<Value> = LazyLock::new(|| {
    let text = printed(&["bench", "--scaling", "--seconds", "1", "--json"]);
    serde_json::from_str(&text).expect("an object and nothing else")
});

fn count(value: &Value) -> usize {
    usize::try_from(value.as_u64().expect("a number")).expect("a small one")
}

fn array(value: &Value) -> &[Value] {
    value.as_array().expect("an array")
}

/// Returns the numbers of threads of the rows, each once.
fn threads() -> Vec<usize> {
    let rows = array(&JSON["rows"]).iter();
    let mut threads: Vec<_> = rows.map(|row| count(&row["threads"])).collect();
    threads.dedup();
    threads
}

#[test]
fn it_measures_powers_of_two_and_all_processors() {
    let threads = threads();
    assert_eq!(threads[0], 1);
    assert!(threads.is_sorted_by(|a, b| a < b), "{threads:?}");
    let all = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(1024);
    assert_eq!(threads.last(), Some(&all));
    let mut powers = (0..usize::BITS).map(|i| 1 << i).take_while(|&n| n < all);
    assert!(powers.all(|n| threads.contains(&n)), "{threads:?}");
}

#[test]
fn every_number_of_threads_has_every_contestant() {
    for n in threads() {
        for kind in ["allowed", "denied"] {
            let of_n = array(&JSON["rows"])
                .iter()
                .filter(|row| count(&row["threads"]) == n);
            let names = of_n.filter_map(|row| row["name"].as_str()?.strip_suffix(kind));
            assert!(
                names.eq(MEASURED.map(|name| format!("{name}_"))),
                "{n}, {kind}"
            );
        }
    }
}

/// On systems that can pin threads.
#[test]
fn each_thread_runs_on_its_own_allowed_processor() {
    let allowed = array(&JSON["topology"]["processors"]);
    assert!(!allowed.is_empty());
    let Some(placement) = JSON["placement"].as_array() else {
        return;
    };
    assert_eq!(placement.len(), threads().len());
    for (placed, n) in placement.iter().zip(threads()) {
        assert_eq!(count(&placed["threads"]), n);
        let processors = array(&placed["processors"]);
        assert_eq!(processors.len(), n);
        assert!(processors.iter().all(|it| allowed.contains(it)), "{placed}");
        assert!(processors.is_sorted_by(|a, b| count(a) < count(b)));
    }
}

#[test]
fn unknown_topology_is_null() {
    let topology = JSON["topology"].as_object().expect("an object");
    let keys = "cores last_level_caches numa_nodes packages processors processors_per_core";
    assert!(topology.keys().eq(keys.split(' ')), "{topology:?}");
    for key in "cores numa_nodes packages processors_per_core".split(' ') {
        let known = &topology[key];
        assert!(known.is_null() || count(known) > 0, "{key}: {known}");
    }
    if let Some(caches) = topology["last_level_caches"].as_array() {
        let shared = caches.iter().map(|cache| array(cache).len()).sum::<usize>();
        assert_eq!(shared, array(&topology["processors"]).len());
    }
}

/// More threads than processors share them. The page has no latency section.
#[test]
fn other_numbers_of_threads_can_be_chosen() {
    let folder = folder("scaling");
    let path = folder.to_str().expect("text");
    let threads = "1,3,70";
    let text = printed(&[
        "bench",
        "--scaling",
        "--seconds",
        "0.1",
        "--threads",
        threads,
        "--report",
        path,
    ]);
    let topology = text.lines().find(|line| line.starts_with("topology: "));
    let topology = topology.expect("a line about the topology");
    for part in ["package", "NUMA node", "core", "processor", "SMT"] {
        assert!(topology.contains(part), "{topology}");
    }
    for start in ["last-level cache: ", "70 threads "] {
        let mut lines = text.lines();
        assert!(lines.any(|line| line.starts_with(start)), "{start}: {text}");
    }
    let page = fs::read_to_string(folder.join("index.html")).expect("a page");
    let machine = between(&page, "<h2>The machine</h2>", "</ul>");
    assert!(machine.contains(topology), "{machine}");
    assert_eq!(page.matches("<svg ").count(), 2, "only throughput");
}
