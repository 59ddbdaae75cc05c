use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::topology::Topology;

/// More threads than any measured machine has processors.
const MAX_THREADS: usize = 1024;

/// The most threads without `--threads` and `--scaling`.
const USUAL_THREADS: usize = 8;

const MAX_SECONDS: f64 = 3600.0;

/// Measure what a decision costs on this machine
///
/// Every contestant makes allowed or denied decisions in a loop. Short slices of all contestants
/// take turns, so that a disturbance affects them alike. The figures are medians over the slices.
///
///   ns      time of a decision on its thread
///   M/s     million decisions a second, all threads together
///   floor   ns relative to the floor with the same number of threads. Lower is better. Contestants
///           that read no clock can be below 1
///   mutex   throughput relative to one token bucket behind a std::sync::Mutex, with the same clock
///           (for other crates, the system clock) and number of threads. Higher is better
///   times   throughput relative to one thread. The ideal is the number of threads
///
/// The first two rows have no limiter and show how the machine itself scales. The floor is a raw
/// clock reading and one compare-and-swap (denied: one load) on a 64-bit word that all threads
/// share. With private words, each thread has a word of its own. A star marks numbers of threads
/// that do not have a core each; their ratios mean little. Threads are pinned, first to whole cores
/// of one package. They share a processor only if there are more threads than processors.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Numbers of threads that share one limiter, for example 1,2,8 [default: 1, 2, 4 and 8, up to
    /// the number of processors; with --scaling all powers of two, the number of whole cores, and
    /// that of processors]
    #[arg(long, value_name = "N,N,..", value_delimiter = ',', value_parser = threads)]
    threads: Option<Vec<usize>>,

    /// Show how decisions scale from one thread to all processors, and on which processors the
    /// threads run. Measures fewer contestants (one word, shards, leases, keys, a mutex) to save
    /// time
    #[arg(long)]
    pub(crate) scaling: bool,

    /// How long to measure in total, in seconds
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    seconds: f64,

    /// Print JSON instead of tables: an array of {"name", "threads", "ns_per_op", "mops",
    /// "vs_floor", "vs_mutex", "vs_one_thread" (null if one thread was not measured), "crowded"
    /// (the threads do not have a core each)}. With --scaling, an object: {"topology", "placement"
    /// (the processors of each number of threads, null if threads were not pinned), "rows" (the
    /// array)}
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a page with pictures to DIR/index.html, and replace it if it exists. The page shows
    /// throughput by threads. Without --scaling it also shows the latency of single decisions from
    /// p50 to p99.99, which takes half of the time. Build with --features peers to include other
    /// crates
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,
}

impl Arguments {
    /// Returns the numbers of threads, each once, in the given order.
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

    /// Returns whether to time single decisions too.
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
