//! How long single decisions take: histograms of many, each timed by itself.

use std::error::Error;
use std::sync::mpsc;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tollgate::sync::{AtomicU64, Ordering};

use super::contest::Contest;
use super::contestants::sampling::Sampler;
use super::contestants::timing::{Crew, Kind};
use super::machine::ns_a_count;
use super::measure::progress;

/// What is read off a histogram, and what it is called.
pub(crate) const PERCENTILES: [(&str, f64); 4] = [
    ("p50", 50.0),
    ("p99", 99.0),
    ("p99.9", 99.9),
    ("p99.99", 99.99),
];

/// All contestants take turns so many times.
const ROUNDS: u32 = 5;

/// So many decisions a round, however little time there is: two in all beyond the last percentile.
const LEAST: u64 = 20_000 / ROUNDS as u64;

/// Decisions between two looks at whether to stop.
const BATCH: usize = 256;

/// A histogram keeps this many digits of each.
const DIGITS: u8 = 3;

/// How long a contestant's decisions took, on so many threads.
pub(crate) struct Latency<'a> {
    pub(crate) contest: &'a Contest,
    /// In counts of the raw counter.
    counts: Histogram<u64>,
    ns_a_count: f64,
}

impl Latency<'_> {
    /// No more than this, in nanoseconds, for so many of a hundred.
    pub(crate) fn ns(&self, percentile: f64) -> f64 {
        self.counts.value_at_percentile(percentile) as f64 * self.ns_a_count
    }

    /// How many were timed.
    pub(crate) fn decisions(&self) -> u64 {
        self.counts.len()
    }
}

/// Measures each contest in about `total` for all.
pub(crate) fn measure<'a>(
    contests: [&'a [Contest]; 2],
    crew: &Crew<'a>,
    total: Duration,
) -> Result<Vec<Latency<'a>>, Box<dyn Error>> {
    let clock = quanta::Clock::new();
    let fresh = |contest| -> Result<_, Box<dyn Error>> {
        Ok(Latency {
            contest,
            counts: Histogram::new(DIGITS)?,
            ns_a_count: ns_a_count(&clock),
        })
    };
    let mut all: Vec<_> = contests
        .into_iter()
        .flatten()
        .map(fresh)
        .collect::<Result<_, _>>()?;
    let slice = total / u32::try_from(all.len())? / ROUNDS;
    let bar = progress(u64::from(ROUNDS) * all.len() as u64);
    for _ in 0..ROUNDS {
        for one in &mut all {
            let label = one.contest.entry.label();
            let counts = sample(one.contest, crew, &clock, slice)
                .map_err(|error| format!("{label}: {error}"))?;
            one.counts.add(counts)?;
            bar.set_message(label);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(all)
}

type Counts = Result<Histogram<u64>, Box<dyn Error + Send + Sync>>;

/// Times decisions of all threads of a contest, for so long.
fn sample<'a>(
    contest: &'a Contest,
    crew: &Crew<'a>,
    clock: &quanta::Clock,
    slice: Duration,
) -> Counts {
    let (runner, kind, threads) = (&*contest.entry.runner, contest.entry.kind, contest.threads);
    runner.prepare();
    let barrier = Arc::new(Barrier::new(threads));
    let over = Arc::new(AtomicU64::new(0));
    let (sender, others) = mpsc::channel();
    crew.start(threads, |_| {
        let (barrier, over) = (Arc::clone(&barrier), Arc::clone(&over));
        let (sender, clock) = (sender.clone(), clock.clone());
        Box::new(move || {
            let mut sampler = runner.sampler(threads);
            barrier.wait();
            // ORDERING: Relaxed. It publishes nothing; a batch more does no harm.
            let is_over = |_| over.load(Ordering::Relaxed) != 0;
            let counts = collect(&mut *sampler, kind, &clock, is_over);
            drop(sampler);
            // Who gave up does not listen.
            let _ = sender.send(counts);
        })
    })?;
    drop(sender);
    let mut sampler = runner.sampler(threads);
    barrier.wait();
    let start = Instant::now();
    let is_over = |timed| timed >= LEAST && start.elapsed() >= slice;
    let own = collect(&mut *sampler, kind, clock, is_over);
    // ORDERING: see above.
    over.swap(1, Ordering::Relaxed);
    // Also so that no thread is deciding when this returns.
    let others: Vec<Counts> = others.into_iter().collect();
    let mut counts = own?;
    for other in others {
        counts.add(other?)?;
    }
    Ok(counts)
}

/// Decides until it is over, which depends on how many were timed.
fn collect(
    sampler: &mut dyn Sampler,
    kind: Kind,
    clock: &quanta::Clock,
    is_over: impl Fn(u64) -> bool,
) -> Counts {
    let mut counts = Histogram::new(DIGITS)?;
    let mut taken = [0; BATCH];
    // The first find nothing in the caches, and are not looked at.
    let mut allowed = sampler.sample(0, clock, &mut taken);
    let mut made = BATCH as u64;
    loop {
        allowed += sampler.sample(made, clock, &mut taken);
        made += BATCH as u64;
        for counted in taken {
            counts.saturating_record(counted);
        }
        if is_over(counts.len()) {
            kind.verify(made, allowed)?;
            return Ok(counts);
        }
    }
}
