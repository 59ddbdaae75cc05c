//! Measures a decision of each algorithm, beside the floor, and as [`AnyAlgorithm`]: with the
//! system clock, and at a given tick. `scripts/bench-check` runs this bench and computes the
//! ratios.

#[allow(dead_code, reason = "shared with the other benches")]
mod contestants;

use std::time::Duration;

use contestants::floor::{Exchange, Load};
use contestants::timing::{Aligned, Contestant, Kind, Runner, time};
use criterion::{Criterion, SamplingMode};
use tollgate::algorithm::Algorithm;
use tollgate::clock::{NoClock, SystemClock};
use tollgate::error::QuotaError;
use tollgate::{
    AnyAlgorithm, FixedWindow, Gcra, Intervals, LeakyBucket, Limiter, Quota, SlidingWindow, Tick,
    TokenBucket,
};

fn main() {
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(500))
        .configure_from_args();
    for kind in Kind::BOTH {
        compare(&mut criterion, kind);
    }
    criterion.final_summary();
}

fn compare(criterion: &mut Criterion, kind: Kind) {
    let mut group = criterion.benchmark_group(format!("algorithms_{}", kind.name()));
    group.sampling_mode(SamplingMode::Flat);
    for (name, runner) in entries(kind).expect("quotas that can be represented") {
        group.bench_function(&name, |bencher| {
            bencher.iter_custom(|turns| {
                time(&*runner, kind, 1, turns).unwrap_or_else(|error| panic!("{name}: {error}"))
            });
        });
    }
    group.finish();
}

/// A limiter that reads the system clock.
struct Measured<A>(Limiter<A>, Kind);

impl<A: Algorithm + Sync> Contestant for Measured<A> {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0.try_acquire().is_ok()
    }

    fn prepare(&self) {
        if self.1 == Kind::Allowed {
            self.0.reset();
        } else {
            let _ = self.0.try_acquire();
        }
    }
}

/// A limiter that takes a tick: each turn is a nanosecond later.
struct ToldLimiter<A>(Limiter<A, NoClock>, Kind);

impl<A: Algorithm + Sync> Contestant for ToldLimiter<A> {
    #[inline(always)]
    fn decide(&self, turn: u64) -> bool {
        self.0.at(Tick::from_nanos(turn)).try_acquire().is_ok()
    }

    fn prepare(&self) {
        self.0.reset();
        if self.1 == Kind::Denied {
            let _ = self.0.at(Tick::ZERO).try_acquire();
        }
    }
}

/// More permits than a measurement requests, which still fit every algorithm's word; or one permit
/// a day.
fn quota(kind: Kind) -> Quota {
    match kind {
        Kind::Allowed => Quota::per(1 << 28, Duration::from_secs(365 * 86_400)),
        Kind::Denied => Quota::per_day(1),
    }
}

type Entries = Vec<(String, Box<dyn Runner>)>;

fn entries(kind: Kind) -> Result<Entries, QuotaError> {
    let floor: Box<dyn Runner> = match kind {
        Kind::Allowed => Box::new(Aligned(Exchange::new())),
        Kind::Denied => Box::new(Aligned(Load::new())),
    };
    let mut entries = vec![("floor".to_owned(), floor)];
    let quota = quota(kind);
    add(&mut entries, "bucket", TokenBucket::new(quota)?, kind);
    add(&mut entries, "gcra", Gcra::new(quota)?, kind);
    add(&mut entries, "meter", LeakyBucket::meter(quota)?, kind);
    add(&mut entries, "queue", LeakyBucket::queue(quota)?, kind);
    let fixed = FixedWindow::new(quota)?;
    add(&mut entries, "fixed", fixed, kind);
    let first_hit = fixed.opened_by_first_hit()?;
    add(&mut entries, "first_hit", first_hit, kind);
    add(&mut entries, "sliding", SlidingWindow::new(quota)?, kind);
    let intervals = Intervals::new(quota)?;
    add(&mut entries, "intervals", intervals, kind);
    add(&mut entries, "greedy", intervals.greedy()?, kind);
    Ok(entries)
}

/// Adds the algorithm itself and as [`AnyAlgorithm`], each with both time sources.
fn add<A>(entries: &mut Entries, name: &str, algorithm: A, kind: Kind)
where
    A: Algorithm + Into<AnyAlgorithm> + Copy + Sync + Send + 'static,
{
    let any: AnyAlgorithm = algorithm.into();
    let mut push = |source: &str, runner| entries.push((format!("{name}_{source}"), runner));
    push("system", system(algorithm, kind));
    push("any_system", system(any, kind));
    push("tick", told(algorithm, kind));
    push("any_tick", told(any, kind));
}

fn system<A: Algorithm + Sync + 'static>(algorithm: A, kind: Kind) -> Box<dyn Runner> {
    let limiter = Limiter::with_clock(algorithm, SystemClock);
    Box::new(Aligned(Measured(limiter, kind)))
}

fn told<A: Algorithm + Sync + 'static>(algorithm: A, kind: Kind) -> Box<dyn Runner> {
    let limiter = Limiter::unstarted(algorithm, NoClock);
    Box::new(Aligned(ToldLimiter(limiter, kind)))
}
