//! Measures allowed and denied decisions, on one thread and on two: the floor on one word and on
//! private words, the limiter, and the same bucket behind a mutex. `scripts/bench-check` runs this
//! bench and computes the ratios.

mod contestants;

use std::thread;
use std::time::Duration;

use contestants::bucket::keep_coarse;
use contestants::timing::{Crew, Kind};
use contestants::{Entry, entries};
use criterion::{Criterion, SamplingMode};

fn main() {
    let upkeep = keep_coarse().expect("a thread can be started");
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(500))
        .configure_from_args();
    let kinds = Kind::BOTH.map(|kind| entries(kind).expect("quotas that can be represented"));
    thread::scope(|scope| {
        let crew = Crew::hire(scope, 2);
        for entries in &kinds {
            for threads in [1, 2] {
                compare(&mut criterion, &crew, entries, threads);
            }
        }
    });
    criterion.final_summary();
    drop(upkeep);
}

fn compare<'a>(criterion: &mut Criterion, crew: &Crew<'a>, entries: &'a [Entry], threads: usize) {
    let kind = entries.first().map_or("", |entry| entry.kind.name());
    let mut group = criterion.benchmark_group(format!("{kind}_{threads}"));
    group.sampling_mode(SamplingMode::Flat);
    for entry in entries {
        group.bench_function(entry.name, |bencher| {
            bencher.iter_custom(|turns| {
                crew.time(&*entry.runner, entry.kind, threads, turns)
                    .unwrap_or_else(|error| panic!("{}: {error}", entry.name))
            });
        });
    }
    group.finish();
}
