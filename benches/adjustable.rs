//! Measures what an adjustable quota costs a decision: each kind of algorithm in a limiter and in
//! an adjustable one, at a given tick and with the system clock. The criterion groups separate
//! allowed and denied decisions.
//!
//! `cargo bench --bench adjustable --features wide`. `scripts/bench-check` checks the differences.

#[allow(dead_code, reason = "not every bench needs all of them")]
mod contestants;

use std::time::Duration;

use contestants::timing::{Aligned, Contestant, Kind, Runner, time};
use criterion::{Criterion, SamplingMode};
use tollgate::algorithm::{Algorithm, Settings};
use tollgate::clock::{Clock, NoClock, SystemClock};
use tollgate::error::QuotaError;
use tollgate::{
    Adjustable, AnyAlgorithm, FixedWindow, Intervals, Limiter, Quota, SlidingWindow, Tick,
    TokenBucket, TryAcquire,
};

fn main() {
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(1))
        .warm_up_time(Duration::from_millis(300))
        .configure_from_args();
    for kind in Kind::BOTH {
        compare(&mut criterion, kind);
    }
    criterion.final_summary();
}

fn compare(criterion: &mut Criterion, kind: Kind) {
    let mut group = criterion.benchmark_group(format!("adjustable_{}", kind.name()));
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
struct OnTheClock<G>(G, fn(&G));

impl<G: TryAcquire<Clock: Clock> + Sync> Contestant for OnTheClock<G> {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0.try_acquire().is_ok()
    }

    fn prepare(&self) {
        (self.1)(&self.0);
        let _ = self.0.try_acquire();
    }
}

/// A limiter that takes a tick: each turn is a nanosecond later.
struct Told<G>(G, fn(&G));

impl<G: TryAcquire + Sync> Contestant for Told<G> {
    #[inline(always)]
    fn decide(&self, turn: u64) -> bool {
        self.0.try_acquire_n_at(1, Tick::from_nanos(turn)).is_ok()
    }

    fn prepare(&self) {
        (self.1)(&self.0);
        let _ = self.0.try_acquire_n_at(1, Tick::ZERO);
    }
}

/// More permits than a measurement requests; or one permit a day.
fn quota(kind: Kind) -> Quota {
    match kind {
        Kind::Allowed => Quota::per(1 << 28, Duration::from_secs(365 * 86_400)),
        Kind::Denied => Quota::per_day(1),
    }
}

type Entries = Vec<(String, Box<dyn Runner>)>;

fn entries(kind: Kind) -> Result<Entries, QuotaError> {
    let quota = quota(kind);
    let mut entries = Vec::new();
    let bucket = TokenBucket::new(quota)?;
    add(&mut entries, "bucket", bucket);
    add(&mut entries, "fixed", FixedWindow::new(quota)?);
    add(&mut entries, "sliding", SlidingWindow::new(quota)?);
    add(&mut entries, "intervals", Intervals::new(quota)?);
    add(&mut entries, "any_bucket", AnyAlgorithm::from(bucket));
    Ok(entries)
}

/// Adds a limiter and an adjustable one, each with both time sources.
fn add<A>(entries: &mut Entries, name: &str, algorithm: A)
where
    A: Algorithm + Settings + Clone + Copy + Sync + Send + 'static,
{
    let mut push = |what: &str, runner| entries.push((format!("{name}_{what}"), runner));
    let limiter = Limiter::with_clock(algorithm, SystemClock);
    push("limiter_system", boxed(OnTheClock(limiter, Limiter::reset)));
    let adjustable = Adjustable::with_clock(algorithm, SystemClock);
    push(
        "adjustable_system",
        boxed(OnTheClock(adjustable, Adjustable::reset)),
    );
    let limiter = Limiter::unstarted(algorithm, NoClock);
    push("limiter_tick", boxed(Told(limiter, Limiter::reset)));
    let adjustable = Adjustable::starting_at(algorithm, NoClock, Tick::ZERO);
    push(
        "adjustable_tick",
        boxed(Told(adjustable, Adjustable::reset)),
    );
}

fn boxed(contestant: impl Contestant + 'static) -> Box<dyn Runner> {
    Box::new(Aligned(contestant))
}
