//! Checks claims of docs/WHICH_LIMITER.md. Every algorithm that it writes as text parses, its
//! largest limits are those of the constructors, and it shows each picture once.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::pictures::committed;
use tollgate::clock::NoClock;
use tollgate::error::QuotaError;
use tollgate::{AnyAlgorithm, FixedWindow, Limiter, Quota, SlidingWindow, Tick};

fn guide() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/WHICH_LIMITER.md");
    fs::read_to_string(path).expect("the guide")
}

/// Returns the text between backticks in a line.
fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn every_algorithm_in_the_guide_parses() {
    let names = "fixed-window gcra intervals leaky-meter leaky-queue sliding-window token-bucket";
    let names: BTreeSet<_> = names.split(' ').collect();
    let guide = guide();
    let mut seen = BTreeSet::new();
    for text in guide.lines().flat_map(code) {
        let Some((name, quota)) = text.split_once(' ') else {
            continue;
        };
        if names.contains(name) && quota.starts_with(|c: char| c.is_ascii_digit()) {
            let parsed = text.parse::<AnyAlgorithm>();
            assert!(parsed.is_ok(), "{text}: {parsed:?}");
            seen.insert(name);
        }
    }
    assert_eq!(seen, names);
}

#[test]
fn the_largest_limits_are_as_stated() {
    let guide = guide();
    let cells = |line: &str| -> Vec<String> {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    for (name, ms) in [
        ("1 ms", 1),
        ("1 s", 1000),
        ("1 min", 60_000),
        ("1 h", 3_600_000),
        ("1 d", 86_400_000),
    ] {
        let period = Duration::from_millis(ms);
        let row = guide.lines().map(cells).find(|cells| cells[0] == name);
        let row = row.unwrap_or_else(|| panic!("no row for {name}"));
        let said = row[1..].iter().map(|cell| cell.replace(' ', "").parse());
        let said: Result<Vec<u64>, _> = said.collect();
        let fixed = |n| FixedWindow::new(Quota::per(n, period));
        let limits = [
            largest(|n| fixed(n).is_ok()),
            largest(|n| fixed(n).and_then(FixedWindow::opened_by_first_hit).is_ok()),
            largest(|n| SlidingWindow::new(Quota::per(n, period)).is_ok()),
        ];
        assert_eq!(said, Ok(limits.to_vec()), "{name}");
    }
}

/// Returns the largest accepted number, if all numbers below it are accepted.
fn largest(accepts: impl Fn(u64) -> bool) -> u64 {
    let (mut good, mut bad) = (1, 1 << 62);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        *if accepts(middle) { &mut good } else { &mut bad } = middle;
    }
    good
}

/// The page shows each picture by a label. The page defines the label for the repository, and the
/// module `guide` for rustdoc.
#[test]
fn each_picture_is_shown_once() {
    let guide = guide();
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/guide/mod.rs");
    let module = fs::read_to_string(module).expect("the module");
    for file in fs::read_dir(committed()).expect("pictures") {
        let name = file.expect("a file").file_name().into_string();
        let name = name.expect("text");
        assert_eq!(guide.matches(&format!("][{name}]\n")).count(), 1, "{name}");
        let definition = format!("\n[{name}]: pictures/{name}\n");
        assert_eq!(guide.matches(&definition).count(), 1, "{name}");
        assert_eq!(
            module.matches(&format!("\"{name}\"\n")).count(),
            1,
            "{name}"
        );
    }
    assert_eq!(guide.matches("![").count(), 9);
    assert_eq!(module.matches(".svg\"").count(), 9);
}

#[test]
fn the_examples_of_the_sliding_window_hold() -> Result<(), QuotaError> {
    let level = |limit, before, now, at: u64| -> Result<f64, QuotaError> {
        let window = SlidingWindow::new(Quota::per_minute(limit))?;
        let limiter = Limiter::unstarted(window, NoClock);
        let second = |at: u64| Tick::from_nanos(at * 1_000_000_000);
        assert!(limiter.at(second(59)).try_acquire_n(before).is_ok());
        let _ = limiter.at(second(60 + at)).charge(now);
        Ok(limiter.at(second(60 + at)).level().as_f64())
    };
    assert_eq!(level(10, 9, 5, 15)?, 11.75);
    // Cloudflare's example.
    assert_eq!(level(50, 42, 18, 15)?, 49.5);
    Ok(())
}
