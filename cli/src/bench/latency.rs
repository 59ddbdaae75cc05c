//! The latency of single decisions: histograms of many, each timed by itself.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::contest::Contest;
use super::contestants::sampling::Sampler;
use super::contestants::timing::{Crew, Kind};
use super::machine::ns_a_count;
use super::measure::progress;

/// The percentiles that are shown, with their names.
pub(crate) const PERCENTILES: [(&str, f64); 4] = [
    ("p50", 50.0),
    ("p99", 99.0),
    ("p99.9", 99.9),
    ("p99.99", 99.99),
];

/// The number of rounds in which all contestants take turns.
const ROUNDS: u32 = 5;

/// The least number of decisions in a round. Over all rounds, two decisions lie beyond the last
/// percentile.
const LEAST: u64 = 20_000 / ROUNDS as u64;

/// Decisions between two checks of whether to stop.
const BATCH: usize = 256;

/// Significant decimal digits of the recorded times.
const DIGITS: u8 = 3;

/// How long a contestant's decisions took, with this many threads.
pub(crate) struct Latency<'a> {
    pub(crate) contest: &'a Contest,
    /// In ticks of the raw counter.
    counts: Histogram<u64>,
    ns_a_count: f64,
}

impl Latency<'_> {
    /// Returns this percentile in nanoseconds.
    pub(crate) fn ns(&self, percentile: f64) -> f64 {
        self.counts.value_at_percentile(percentile) as f64 * self.ns_a_count
    }

    /// Returns how many decisions were timed.
    pub(crate) fn decisions(&self) -> u64 {
        self.counts.len()
    }
}

/// Measures every contest, in about `total` for all together.
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

/// Times the decisions of all threads of a contest, for about `slice`.
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
            // ORDERING: Relaxed. It publishes nothing; a thread that sees it late only times
            // another batch.
            let is_over = |_| over.load(Ordering::Relaxed) != 0;
            let counts = collect(&mut *sampler, kind, &clock, is_over);
            drop(sampler);
            // A send fails only if the receiver gave up.
            let _ = sender.send(counts);
        })
    })?;
    drop(sender);
    let mut sampler = runner.sampler(threads);
    barrier.wait();
    let start = Instant::now();
    let is_over = |timed| timed >= LEAST && start.elapsed() >= slice;
    let own = collect(&mut *sampler, kind, clock, is_over);
    // ORDERING: Relaxed, as above.
    over.swap(1, Ordering::Relaxed);
    // This also waits until no thread is deciding any more.
    let others: Vec<Counts> = others.into_iter().collect();
    let mut counts = own?;
    for other in others {
        counts.add(other?)?;
    }
    Ok(counts)
}

/// Decides until `is_over` returns true for the number of timed decisions.
fn collect(
    sampler: &mut dyn Sampler,
    kind: Kind,
    clock: &quanta::Clock,
    is_over: impl Fn(u64) -> bool,
) -> Counts {
    let mut counts = Histogram::new(DIGITS)?;
    let mut taken = [0; BATCH];
    // Ignores the times of the first batch, which finds nothing in the caches.
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
