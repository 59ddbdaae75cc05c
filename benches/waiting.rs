//! Measures the cost of acquiring an available permit, relative to `try_acquire`.
//! `scripts/bench-check` runs this bench and computes the ratio.

#[allow(dead_code, reason = "shared with the other benches")]
mod contestants;

use std::time::Duration;

use contestants::timing::{Aligned, Contestant, Kind, Runner, time};
use criterion::{Criterion, SamplingMode};
use tollgate::{Limiter, Quota, TokenBucket};

/// A limiter that never runs dry here.
struct Tries(Limiter<TokenBucket>);

impl Contestant for Tries {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0.try_acquire().is_ok()
    }

    fn prepare(&self) {
        self.0.reset();
    }
}

/// The same limiter, which therefore never sleeps.
struct Acquires(Limiter<TokenBucket>);

impl Contestant for Acquires {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0.blocking_acquire().is_ok()
    }

    fn prepare(&self) {
        self.0.reset();
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(500))
        .configure_from_args();
    let limiter = || Limiter::token_bucket(Quota::per_second(1_000_000).burst(1 << 40));
    let limiter = || limiter().expect("a quota");
    let entries: [(&str, Box<dyn Runner>); 2] = [
        ("try_acquire", Box::new(Aligned(Tries(limiter())))),
        ("acquire", Box::new(Aligned(Acquires(limiter())))),
    ];
    let mut group = criterion.benchmark_group("waiting_allowed");
    group.sampling_mode(SamplingMode::Flat);
    for (name, runner) in &entries {
        group.bench_function(*name, |bencher| {
            bencher.iter_custom(|turns| {
                time(&**runner, Kind::Allowed, 1, turns)
                    .unwrap_or_else(|error| panic!("{name}: {error}"))
            });
        });
    }
    group.finish();
    criterion.final_summary();
}
