use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::topology::Topology;

/// More than the processors of any machine that is measured.
const MAX_THREADS: usize = 1024;

/// Without `--threads` and `--scaling` no more than this many are tried.
const USUAL_THREADS: usize = 8;

const MAX_SECONDS: f64 = 3600.0;

/// Measure what a decision costs on this machine.
///
/// Every contestant decides in a loop, allowed or denied each time, and is timed in short slices
/// that take turns with all the others, so that a disturbance hits them alike. The figures are
/// medians over the slices.
///
///   ns      what a decision costs the thread that makes it
///   M/s     million decisions a second, of all threads together
///   floor   ns, divided by the floor's: a raw reading of the clock and one exchange of a word
///           (denied: one load), with as many threads. Lower is better. Below 1 is what need not
///           read that clock
///   mutex   throughput divided by that of one bucket behind a std::sync::Mutex, with the same
///           clock (the system's for other crates) and as many threads. Higher is better
///   times   M/s divided by that of one thread: how it scales. The ideal is the number of threads
///
/// What comes first, the floor on one word and on private words, is what the machine itself makes
/// of several threads. Numbers of threads that do not have a core each are marked: their ratios say
/// little. Threads are pinned, to whole cores of one package first; they share a processor only if
/// there are more threads than processors.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// How many threads share one limiter: 1,2,8 measures with one, with two and with eight
    /// [default: 1, 2, 4 and so on, up to the processors and at most 8; with --scaling also all
    /// whole cores and all processors]
    #[arg(long, value_name = "N,N,..", value_delimiter = ',', value_parser = threads)]
    threads: Option<Vec<usize>>,

    /// Show how decisions scale from one thread to all processors, and on which processors the
    /// threads run; fewer contestants (one word, shards, leases, keys, a mutex), so that it ends in
    /// time
    #[arg(long)]
    pub(crate) scaling: bool,

    /// How long to measure, in seconds, all together
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    seconds: f64,

    /// Print an array of {"name", "threads", "ns_per_op", "mops", "vs_floor", "vs_mutex",
    /// "vs_one_thread" (null if one thread was not measured), "crowded" (the threads do not have a
    /// core each)} and nothing else. With --scaling it is an object: {"topology", "placement" (the
    /// processors of each number of threads, null if threads were not pinned), "rows"}
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a page with pictures to DIR/index.html (made or replaced): throughput by threads, and
    /// the latency of single decisions, p50 to p99.99, for which half of the time is used (not with
    /// --scaling). Build with --features peers to have other crates on it
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,
}

impl Arguments {
    /// The numbers of threads, each once, in the order given.
    pub(crate) fn threads(&self, topology: &Topology) -> Vec<usize> {
        let Some(given) = &self.threads else {
            return self.usual_threads(topology);
        };
        let mut threads = Vec::new();
        for &n in given {
            if !threads.contains(&n) {
                threads.push(n);
            }
        }
        threads
    }

    fn usual_threads(&self, topology: &Topology) -> Vec<usize> {
        if self.scaling {
            let mut counts = topology.thread_counts();
            counts.retain(|&n| n <= MAX_THREADS);
            return counts;
        }
        let most = topology.cores().logical.min(USUAL_THREADS);
        (0..).map(|i| 1 << i).take_while(|&n| n <= most).collect()
    }

    /// Whether single decisions are timed too.
    pub(crate) fn has_latency(&self) -> bool {
        self.report.is_some() && !self.scaling
    }

    pub(crate) fn total(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

fn threads(text: &str) -> Result<usize, String> {
    match text.trim().parse() {
        Ok(n) if (1..=MAX_THREADS).contains(&n) => Ok(n),
        _ => Err(format!("must be a number from 1 to {MAX_THREADS}")),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(seconds) if seconds > 0.0 && seconds <= MAX_SECONDS => Ok(seconds),
        _ => Err(format!(
            "must be a number above 0 and at most {MAX_SECONDS}"
        )),
    }
}
