//! What must be true of a soak. None of it depends on speed.

use super::changes::Reloads;
use super::metrics::Metrics;
use super::policy::Rule;
use super::samples::Sample;

/// How much more memory the process may have at the end than it ever had in the first third. It was
/// less than 1 MiB; the table of held decisions takes 2 MiB more when it doubles.
pub(super) const GROWTH_KIB: u64 = 5 * 1024;

/// How many more file descriptors an idle process may have at the end than at the beginning: a file
/// of the state that is being written, its folder, and two connections to a store.
pub(super) const MORE_DESCRIPTORS: u64 = 4;

/// Checks that the memory does not grow. Returns by how much it did, in KiB.
pub(super) fn memory(samples: &[Sample]) -> Result<i64, String> {
    let (first, later) = samples.split_at(samples.len().div_ceil(3));
    let most = first.iter().map(|it| it.memory_kib).max();
    // A moment with many answers on their way is no growth.
    let last = later.iter().rev().take(3).map(|it| it.memory_kib).min();
    let (Some(most), Some(last)) = (most, last) else {
        return Err(format!("{} samples are too few", samples.len()));
    };
    match last.checked_sub(most) {
        Some(grown) if grown > GROWTH_KIB => Err(format!(
            "the memory grew from {most} KiB in the first third to {last} KiB at the end"
        )),
        _ => Ok(last as i64 - most as i64),
    }
}

pub(super) fn descriptors(before: u64, after: u64) -> Result<(), String> {
    match after <= before + MORE_DESCRIPTORS {
        true => Ok(()),
        false => Err(format!(
            "the idle process had {before} file descriptors, and has {after}"
        )),
    }
}

/// Checks that no key of a rule was granted too much within this time.
pub(super) fn grants(rule: &Rule, most_of_a_key: u64, seconds: f64) -> Result<(), String> {
    for bound in rule.bounds {
        let most = bound.burst + bound.rate * seconds;
        // A permit may be early by less than a nanosecond.
        if most_of_a_key as f64 > most + 0.001 {
            let name = rule.name;
            return Err(format!(
                "{name}: a key was granted {most_of_a_key} in {seconds} s, and {bound:?}"
            ));
        }
    }
    Ok(())
}

/// Checks that the service counted what clients did.
pub(super) fn counted(
    metrics: &Metrics,
    rule: &str,
    allowed: u64,
    denied: u64,
) -> Result<(), String> {
    for (decision, expected) in [("allowed", allowed), ("denied", denied)] {
        let counted = metrics.requests(rule, decision)?;
        if counted != expected {
            return Err(format!(
                "{rule}: the service counted {counted} {decision}, and clients {expected}"
            ));
        }
    }
    Ok(())
}

/// Checks that the log tells of these reloads, and of nothing that is wrong.
pub(super) fn log(text: &str, reloads: Reloads) -> Result<(), String> {
    let bad = [
        "panic",
        "can't be saved",
        "no connection can be accepted",
        "cut off",
    ];
    if let Some(line) = text
        .lines()
        .find(|line| bad.iter().any(|it| line.contains(it)))
    {
        return Err(format!("the log says {line:?}"));
    }
    let count = |what: &str| text.lines().filter(|line| line.contains(what)).count() as u64;
    let told = Reloads {
        done: count("the policy was reloaded"),
        failed: count("the policy stays as it is"),
    };
    match told == reloads {
        true => Ok(()),
        false => Err(format!(
            "the log tells of {told:?}, and there were {reloads:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::policy::{RULES, SEVERAL, SMALL, YEARLY, YEARLY_RULE};

    /// Samples of a process that leaks this many bytes in each second.
    fn leaking(bytes: u64, seconds: u64) -> Vec<Sample> {
        let sample = |at: u64| Sample {
            // Each fourth second has answers on their way.
            memory_kib: 20_000 + bytes * at / 1024 + at % 4 / 3 * 2000,
            ..Sample::default()
        };
        (1..=seconds).map(sample).collect()
    }

    #[test]
    fn a_leak_of_memory_is_found() {
        assert!(memory(&leaking(0, 20)).is_ok_and(|grown| grown <= 0));
        assert!(memory(&leaking(0, 600)).is_ok());
        // 300 bytes of each of 5000 requests a second.
        assert!(memory(&leaking(300 * 5000, 20)).is_err());
        // 6 bytes, in ten minutes.
        assert!(memory(&leaking(6 * 5000, 600)).is_err());
        assert!(memory(&[]).is_err());
        assert!(memory(&leaking(0, 1)).is_err());
    }

    #[test]
    fn a_leak_of_descriptors_is_found() {
        assert!(descriptors(20, 20 + MORE_DESCRIPTORS).is_ok());
        assert!(descriptors(20, 12).is_ok());
        assert!(descriptors(20, 21 + MORE_DESCRIPTORS).is_err());
    }

    #[test]
    fn a_grant_too_many_is_found() {
        let year = &RULES[YEARLY_RULE];
        assert!(grants(year, YEARLY.into(), 600.0).is_ok());
        assert!(grants(year, u64::from(YEARLY) + 1, 600.0).is_err());
        assert!(grants(&RULES[SMALL], 520, 10.0).is_ok());
        assert!(grants(&RULES[SMALL], 521, 10.0).is_err());
        // The second limit of the list.
        assert!(grants(&RULES[SEVERAL], 140, 60.0).is_ok());
        assert!(grants(&RULES[SEVERAL], 141, 60.0).is_err());
    }

    #[test]
    fn a_request_that_is_not_counted_is_found() {
        let text = "tollgate_requests_total{rule=\"a\",decision=\"allowed\"} 5\n\
                    tollgate_requests_total{rule=\"a\",decision=\"denied\"} 7";
        let metrics = Metrics::read(text).expect("metrics");
        assert!(counted(&metrics, "a", 5, 7).is_ok());
        assert!(counted(&metrics, "a", 6, 7).is_err());
        assert!(counted(&metrics, "a", 5, 6).is_err());
        assert!(counted(&metrics, "b", 0, 0).is_err());
    }

    #[test]
    fn a_panic_in_the_log_is_found() {
        let lines = "INFO the policy was reloaded rules=9\n\
                     ERROR the policy stays as it is error=limits.toml\n\
                     INFO the policy was reloaded rules=8\n";
        let reloads = Reloads { done: 2, failed: 1 };
        assert!(log(lines, reloads).is_ok());
        assert!(log(lines, Reloads { done: 3, failed: 1 }).is_err());
        let panicked = format!("{lines}\nthread 'tokio-rt-worker' panicked at src/a.rs:1:1:");
        assert!(log(&panicked, reloads).is_err());
    }
}
