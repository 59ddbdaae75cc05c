//! Extreme numbers and durations.

use std::time::Duration;

use crate::support::reference::FIFTY_YEARS;

/// 365 days, the longest interval.
pub(crate) const YEAR_NS: u64 = 365 * 86_400 * 1_000_000_000;

/// 50 years of 365.25 days, up to which every limiter works.
pub(crate) const FIFTY_YEARS_NS: u64 = FIFTY_YEARS;

/// The largest burst.
pub(crate) const MAX_BURST: u64 = 1 << 40;

/// Extreme numbers.
pub(crate) const EDGES: [u64; 13] = [
    0,
    1,
    2,
    10,
    11,
    MAX_BURST - 1,
    MAX_BURST,
    MAX_BURST + 1,
    1 << 63,
    FIFTY_YEARS_NS,
    FIFTY_YEARS_NS + 1,
    u64::MAX - 1,
    u64::MAX,
];

/// Returns extreme durations.
pub(crate) fn long_and_short() -> Vec<Duration> {
    let nanos = EDGES
        .into_iter()
        .chain([3, 7, 1_000_000_007, YEAR_NS - 1, YEAR_NS, YEAR_NS + 1]);
    let mut durations: Vec<Duration> = nanos.map(Duration::from_nanos).collect();
    durations.push(Duration::from_nanos(u64::MAX) + Duration::from_nanos(1));
    durations.push(Duration::from_secs(u64::MAX));
    durations.push(Duration::MAX);
    durations
}
