//! Describes the machine, the compiler and the clock.

use std::hint::black_box;
use std::{env, fs};

use console::style;

use super::topology::Cores;

/// Returns the processor, cores, versions and clock as plain text, for the page.
pub(crate) fn lines(cores: Cores) -> [String; 2] {
    let (tollgate, processor) = (tollgate(), processor());
    [
        format!("{tollgate} on {processor}, {}", counted(cores)),
        versions(),
    ]
}

/// Returns the same text, styled for a terminal.
pub(crate) fn headline(cores: Cores) -> String {
    format!(
        "{} on {}, {}\n{}",
        style(tollgate()).bold(),
        style(processor()).bold(),
        counted(cores),
        versions(),
    )
}

fn tollgate() -> String {
    format!("tollgate {}", env!("CARGO_PKG_VERSION"))
}

fn counted(Cores { logical, whole }: Cores) -> String {
    let plural = if logical == 1 { "" } else { "s" };
    match whole {
        Some(whole) if whole < logical => format!("{logical} processors on {whole} cores"),
        _ => format!("{logical} core{plural}"),
    }
}

fn versions() -> String {
    format!(
        "{}, {}, {}",
        env!("TOLLGATE_RUSTC"),
        if cfg!(debug_assertions) {
            "not optimized"
        } else {
            "optimized"
        },
        clock(),
    )
}

/// Returns the processor's model name, if the system reports it.
fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    name.unwrap_or_else(|| format!("{} ({})", env::consts::ARCH, env::consts::OS))
}

/// Describes quanta's clock. quanta does not say whether it uses a counter, but only a counter's
/// readings need scaling.
fn clock() -> String {
    let ns = ns_a_count(&quanta::Clock::new());
    if ns == 1.0 || ns == 0.0 {
        return "the system's monotonic clock".into();
    }
    format!("time-stamp counter at {:.2} GHz", 1.0 / ns)
}

/// Returns the steps in which the raw counter advances, in nanoseconds, if they are visible. Some
/// counters advance by many ticks at a time.
pub(crate) fn step_ns(clock: &quanta::Clock) -> Option<f64> {
    const READINGS: u64 = 10_000;
    let between = |i| {
        let before = clock.raw();
        // Delays of different lengths, so that a fine counter shows many different values.
        (0..i % 32).for_each(|turn| _ = black_box(turn));
        clock.raw().saturating_sub(before)
    };
    let differences: Vec<_> = (0..READINGS).map(between).collect();
    Some(step(&differences)? * ns_a_count(clock))
}

/// Returns the step that divides nearly all differences, to within one tick. Returns `None` if the
/// step is too small to tell, or if all differences are alike.
fn step(differences: &[u64]) -> Option<f64> {
    let least = *differences.iter().filter(|&&n| n > 0).min()?;
    let singles = || differences.iter().filter(|&&n| n > 0 && 2 * n < 3 * least);
    let step = singles().sum::<u64>() as f64 / singles().count() as f64;
    let is_near = |&&n: &&u64| {
        let n = n as f64;
        (n - (n / step).round() * step).abs() <= 1.0
    };
    // Longer differences include other threads' work.
    let short = || differences.iter().filter(|&&n| n < 8 * least);
    let near = short().filter(is_near).count();
    let several = short().any(|&n| n > 3 * least / 2);
    (step >= 8.0 && several && 10 * near >= 9 * short().count()).then_some(step)
}

/// Returns the length of one tick of the raw counter.
pub(crate) fn ns_a_count(clock: &quanta::Clock) -> f64 {
    const COUNTS: u64 = 1 << 40;
    clock.delta_as_nanos(0, COUNTS) as f64 / COUNTS as f64
}

#[cfg(test)]
mod tests {
    use super::step;

    #[test]
    fn steps_are_found() {
        // The counter advances by 24.5 ticks at a time.
        let coarse = [0, 24, 25, 49, 24, 25, 73, 74, 98, 24, 25, 49, 5000];
        assert_eq!(step(&coarse), Some(24.5));
        let fine: Vec<_> = (20..90).collect();
        assert_eq!(step(&fine), None);
        let each: Vec<_> = (0..90).collect();
        assert_eq!(step(&each), None);
        // Equal readings may only mean that each one took equally long.
        assert_eq!(step(&[30, 30, 30, 30]), None);
        assert_eq!((step(&[]), step(&[0, 0])), (None, None));
    }
}
