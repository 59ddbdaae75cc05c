//! What the process takes while it serves, and how long its clients wait.

use std::fmt::Write;
use std::fs;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tokio::time::Instant;

use super::counts::Counts;
use super::http::Connection;
use super::metrics::Metrics;

/// The process at a moment, and its requests since the sample before.
#[derive(Debug, Clone, Default)]
pub(super) struct Sample {
    pub(super) at_s: f64,
    pub(super) memory_kib: u64,
    pub(super) descriptors: u64,
    pub(super) connections: u64,
    pub(super) held: u64,
    /// Requests that were answered in each second.
    pub(super) rate: f64,
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
    /// How often clients left, from the beginning.
    pub(super) left: u64,
    pub(super) reloads: u64,
    /// Whether the store does not answer.
    pub(super) is_down: bool,
}

/// Returns how many KiB of memory a process has.
pub(super) fn memory_kib(id: u32) -> Result<u64, String> {
    let status = fs::read_to_string(format!("/proc/{id}/status"));
    let status = status.map_err(|error| format!("the service has ended: {error}"))?;
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    let number = number.and_then(|number| number.parse().ok());
    number.ok_or_else(|| "the service has ended".to_owned())
}

/// Returns how many file descriptors a process has.
pub(super) fn descriptors(id: u32) -> Result<u64, String> {
    let files = fs::read_dir(format!("/proc/{id}/fd"));
    let files = files.map_err(|error| format!("the service has ended: {error}"))?;
    Ok(files.count() as u64)
}

/// Scrapes the service each second until all ends, and takes samples. It tells of each in a line at
/// once, if there are few.
pub(super) async fn take(
    id: u32,
    admin: &str,
    counts: &Counts,
    every: Duration,
) -> Result<Vec<Sample>, String> {
    let mut admin = Connection::open(admin).await?;
    let (mut samples, mut last) = (Vec::new(), Metrics::default());
    let start = Instant::now();
    let (mut since, mut requests) = (start, 0);
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    seconds.tick().await;
    while !counts.stops() {
        seconds.tick().await;
        let metrics = Metrics::fetch(&mut admin).await?;
        if let Some(fallen) = metrics.fallen(&last) {
            return Err(fallen);
        }
        let now = Instant::now();
        // The next second would be too late.
        if now - since + Duration::from_millis(500) >= every {
            let all = counts.requests.load(SeqCst);
            let times = counts.take_times();
            samples.push(Sample {
                at_s: (now - start).as_secs_f64(),
                memory_kib: memory_kib(id)?,
                descriptors: descriptors(id)?,
                connections: metrics.get("connections")?,
                held: metrics.get("held")?,
                rate: (all - requests) as f64 / (now - since).as_secs_f64(),
                p50_us: times.value_at_quantile(0.5),
                p99_us: times.value_at_quantile(0.99),
                left: counts.left.load(SeqCst),
                reloads: metrics.get("reloads_total")? + metrics.get("reloads_failed_total")?,
                is_down: metrics.get("store_down").is_ok_and(|down| down > 0),
            });
            (since, requests) = (now, all);
        }
        last = metrics;
    }
    Ok(samples)
}

/// Writes the samples as a table.
pub(super) fn table(samples: &[Sample]) -> String {
    let mut table = String::from(
        "seconds  MiB     files  open   held   requests/s  p50 ms   p99 ms   left    reloads  store\n",
    );
    for one in samples {
        let ms = |us: u64| us as f64 / 1000.0;
        let (mib, down) = (
            one.memory_kib as f64 / 1024.0,
            ["", "down"][usize::from(one.is_down)],
        );
        // Writing to a String can't fail.
        let _ = writeln!(
            table,
            "{:7.0}  {mib:6.2}  {:5}  {:5}  {:5}  {:10.0}  {:7.2}  {:7.2}  {:6}  {:7}  {down}",
            one.at_s,
            one.descriptors,
            one.connections,
            one.held,
            one.rate,
            ms(one.p50_us),
            ms(one.p99_us),
            one.left,
            one.reloads,
        );
    }
    table
}
