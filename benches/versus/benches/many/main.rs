//! Measures the multiword limiters, in one run with a decision on one word, the floor, the mutexes
//! and governor: allowed and denied, on one thread and on two. `scripts/bench-check` computes the
//! ratios.

#[path = "../../../contestants/asked.rs"]
mod asked;
#[path = "../../../contestants/mod.rs"]
#[allow(dead_code, reason = "shared with the other benches")]
mod contestants;
mod limiters;
mod told;

use std::thread;
use std::time::Duration;

use contestants::bucket::keep_coarse;
use contestants::timing::{self, Crew, Kind};
use criterion::{Criterion, SamplingMode};
use limiters::{Named, all};

/// The conditions of a comparison.
struct Group {
    kind: Kind,
    threads: usize,
    contestants: Vec<Named>,
}

fn main() {
    let upkeep = keep_coarse().expect("a thread can be started");
    let group = |kind, threads| Group {
        kind,
        threads,
        contestants: all(kind, threads).expect("quotas that can be represented"),
    };
    let groups = Kind::BOTH.map(|kind| [1, 2].map(|threads| group(kind, threads)));
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(500))
        .configure_from_args();
    thread::scope(|scope| {
        // The same two threads throughout, so that each keeps its shard and lease.
        let crew = Crew::hire(scope, 2);
        for group in groups.iter().flatten() {
            compare(&mut criterion, &crew, group);
        }
    });
    criterion.final_summary();
    drop(upkeep);
}

fn compare<'j>(criterion: &mut Criterion, crew: &Crew<'j>, group: &'j Group) {
    let (kind, threads) = (group.kind, group.threads);
    let mut timed = criterion.benchmark_group(format!("many_{}_{threads}", kind.name()));
    timed.sampling_mode(SamplingMode::Flat);
    for (name, contestant) in &group.contestants {
        timed.bench_function(*name, |bencher| {
            bencher.iter_custom(|turns| {
                crew.time(&**contestant, kind, threads, turns)
                    .unwrap_or_else(|error| panic!("{name}: {error}"))
            });
        });
    }
    timed.finish();
}
