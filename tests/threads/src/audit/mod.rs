//! Each algorithm keeps its bound over every interval, whatever threads do: 2 to 16 of them with
//! skewed ticks, give-backs, charges and resets among their verbs. So do shards, leases, slots and
//! logs. And the check finds a single permit too many.

mod exactly;
mod interrupted;
mod late;
mod leases;
mod one_too_many;
mod recorded;
mod stopping;
mod work;

use tollgate::AnyAlgorithm;

use crate::support::algorithm;

/// The algorithms whose ticks may be ahead of the clock that leases draw by.
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

/// Windows that are shorter than the threads' skew, longer, much longer; primes and powers of two;
/// bursts that are no multiples. A debug build has no time for the longest.
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

/// Rates and tolerances that come out even nowhere, for which `QUOTA` has no place.
const TOLERANCES: [&str; 4] = [
    "gcra 1/70ns tolerance 333ns",
    "gcra 1/3ns tolerance 100ns",
    "gcra 1/41ns tolerance 1us",
    "gcra 1/100ns tolerance 3456ns",
];

/// The algorithm with each of the quotas.
fn with_quotas(text: &str) -> [AnyAlgorithm; 4] {
    QUOTAS.map(|(quota, burst)| algorithm(&text.replace("QUOTA", quota).replace("BURST", burst)))
}

/// Each algorithm with each of the quotas.
fn all(texts: &'static [&str]) -> impl Iterator<Item = [AnyAlgorithm; 4]> {
    texts.iter().map(|text| with_quotas(text))
}
