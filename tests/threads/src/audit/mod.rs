//! Each algorithm keeps its bound over every interval under 2 to 16 threads with skewed ticks,
//! give-backs, charges and resets. So do shards, leases, slots and logs. The audit also detects a
//! single permit too many.

#[cfg(feature = "keyed")]
mod compose;
mod exactly;
mod interrupted;
mod late;
mod leases;
mod one_too_many;
mod recorded;
mod stopping;
mod work;

use crate::support::*;

/// The algorithms that allow ticks ahead of the clock by which leases draw.
const BUCKETS: [&str; 5] = [
    "token-bucket QUOTA BURST",
    "gcra QUOTA BURST",
    "leaky-meter QUOTA BURST",
    "leaky-queue QUOTA BURST free 2",
    "intervals QUOTA BURST offset 7ns",
];

const WINDOWS: [&str; 7] = [
    "fixed-window QUOTA",
    "fixed-window QUOTA origin 1700000000000000017ns offset 29ns",
    "fixed-window QUOTA first-hit",
    "sliding-window QUOTA",
    "sliding-window QUOTA offset 31ns",
    "sliding-window QUOTA rounding down offset 31ns",
    "intervals QUOTA BURST greedy",
];

/// Windows shorter than the threads' skew, longer, and much longer; primes and powers of two;
/// bursts that are no multiples of each other. A debug build has no time for the longest.
const QUOTAS: [(&str, &str); 4] = [
    ("3/64ns", "burst 3"),
    ("40/1us", "burst 57"),
    ("100/4096ns", "burst 170"),
    if cfg!(debug_assertions) {
        ("200/10007ns", "burst 301")
    } else {
        ("1000/100003ns", "burst 1501")
    },
];

/// Rates and tolerances that are fractions everywhere, which `QUOTA` can't express.
const TOLERANCES: [&str; 4] = [
    "gcra 1/70ns tolerance 333ns",
    "gcra 1/3ns tolerance 100ns",
    "gcra 1/41ns tolerance 1us",
    "gcra 1/100ns tolerance 3456ns",
];

/// Returns the algorithm with each of the quotas.
fn with_quotas(text: &str) -> [AnyAlgorithm; 4] {
    QUOTAS.map(|(quota, burst)| algorithm(&text.replace("QUOTA", quota).replace("BURST", burst)))
}

/// Returns each algorithm with each of the quotas.
fn all(texts: &'static [&str]) -> impl Iterator<Item = [AnyAlgorithm; 4]> {
    texts.iter().map(|text| with_quotas(text))
}
