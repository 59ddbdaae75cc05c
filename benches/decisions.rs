//! What a decision costs: allowed and denied, on one thread and on two, beside the floor and the
//! same bucket behind a mutex. `scripts/bench-check` runs this and computes the ratios.

mod contestants;

use std::time::Duration;

use contestants::bucket::keep_coarse;
use contestants::entries;
use contestants::timing::{Kind, time};
use criterion::{Criterion, SamplingMode};

fn main() {
    let upkeep = keep_coarse().expect("a thread can be started");
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(500))
        .configure_from_args();
    for kind in Kind::BOTH {
        for threads in [1, 2] {
            compare(&mut criterion, kind, threads);
        }
    }
    criterion.final_summary();
    drop(upkeep);
}

fn compare(criterion: &mut Criterion, kind: Kind, threads: usize) {
    let mut group = criterion.benchmark_group(format!("{}_{threads}", kind.name()));
    group.sampling_mode(SamplingMode::Flat);
    for entry in entries(kind).expect("quotas that can be represented") {
        group.bench_function(entry.name, |bencher| {
            bencher.iter_custom(|turns| {
                time(&*entry.runner, entry.kind, threads, turns)
                    .unwrap_or_else(|error| panic!("{}: {error}", entry.name))
            });
        });
    }
    group.finish();
}
