//! A rayon pool of two threads makes a million decisions on one limiter at a given tick: on shards,
//! on counted shards, on one word, and on a bucket behind a mutex. In one case all are allowed; in
//! the other the limit is a quarter of them, and exactly that many are allowed.
//!
//! Criterion's times are the wall-clock times of the whole million.

use std::sync::Mutex;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tollgate::algorithm::Algorithm;
use tollgate::clock::NoClock;
use tollgate::{Counted, Limiter, Quota, Sharded, Tick, TokenBucket, TryAcquire};

const REQUESTS: u64 = 1_000_000;

const THREADS: usize = 2;

fn main() {
    let pool = ThreadPoolBuilder::new().num_threads(THREADS).build();
    let pool = pool.expect("threads can be started");
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .configure_from_args();
    for (name, limit) in [("all", REQUESTS), ("quarter", REQUESTS / 4)] {
        let mut group = criterion.benchmark_group(format!("parallel_{name}"));
        group.throughput(Throughput::Elements(REQUESTS));
        let pool = &pool;
        compare(Bench { group, pool, limit });
    }
    criterion.final_summary();
}

fn compare(mut bench: Bench<'_>) {
    let quota = Quota::per_hour(bench.limit);
    let bucket = TokenBucket::new(quota).expect("a quota that fits");
    let sharded = move || {
        let limiter = Sharded::starting_at(bucket, THREADS, NoClock, Tick::ZERO);
        limiter.expect("a quota that can be split")
    };
    bench.run("sharded", sharded, |limiter| {
        limiter.at(Tick::ZERO).try_acquire().is_ok()
    });
    let counted = move || Counted::new(sharded());
    bench.run("sharded_counted", counted, |limiter| {
        limiter.try_acquire_n_at(1, Tick::ZERO).is_ok()
    });
    let word = move || Limiter::unstarted(bucket, NoClock);
    bench.run("word", word, |limiter| {
        limiter.at(Tick::ZERO).try_acquire().is_ok()
    });
    let locked = move || Mutex::new(bucket.initial_word(Tick::ZERO));
    bench.run("std_mutex", locked, move |word| {
        word.lock().is_ok_and(|mut word| {
            let step = bucket.step(*word, Tick::ZERO, 1);
            step.map(|(next, _)| *word = next).is_ok()
        })
    });
    bench.group.finish();
}

/// Limiters with this many permits, and the pool that uses them.
struct Bench<'a> {
    group: BenchmarkGroup<'a, WallTime>,
    pool: &'a ThreadPool,
    limit: u64,
}

impl Bench<'_> {
    /// Runs the pool on a fresh limiter each time, and checks that exactly the limit is allowed.
    fn run<G: Sync + Send>(
        &mut self,
        name: &str,
        make: impl Fn() -> G,
        decide: impl Fn(&G) -> bool + Sync,
    ) {
        let admitted = |limiter: &G| {
            let decided = || (0..REQUESTS).into_par_iter().filter(|_| decide(limiter));
            self.pool.install(|| decided().count() as u64)
        };
        assert_eq!(admitted(&make()), self.limit, "{name}");
        self.group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(
                &make,
                |limiter| assert_eq!(admitted(limiter), self.limit, "{name}"),
                BatchSize::PerIteration,
            );
        });
    }
}
