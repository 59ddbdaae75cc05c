//! What is being measured on.

use std::{env, fs, thread};

use console::style;

/// Processor, cores, versions, clock.
pub(crate) fn headline() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let plural = if cores == 1 { "" } else { "s" };
    format!(
        "{} on {}, {cores} core{plural}\n{}, {}, {}",
        style(format!("tollgate {}", env!("CARGO_PKG_VERSION"))).bold(),
        style(processor()).bold(),
        env!("TOLLGATE_RUSTC"),
        if cfg!(debug_assertions) {
            "not optimised"
        } else {
            "optimised"
        },
        clock(),
    )
}

/// The processor's name for itself, where the system tells it.
fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    name.unwrap_or_else(|| format!("{} ({})", env::consts::ARCH, env::consts::OS))
}

/// What quanta reads. It does not say so itself, but only a counter's readings need scaling.
fn clock() -> String {
    const COUNTS: u64 = 1 << 40;
    let nanos = quanta::Clock::new().delta_as_nanos(0, COUNTS);
    if nanos == COUNTS || nanos == 0 {
        return "the system's monotonic clock".into();
    }
    let ghz = COUNTS as f64 / nanos as f64;
    format!("time-stamp counter at {ghz:.2} GHz")
}
