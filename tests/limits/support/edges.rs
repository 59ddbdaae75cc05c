//! Lengths of time, and extreme numbers and durations.

use std::time::Duration;

use super::prelude::{Quota, SECOND};
use crate::support::reference::FIFTY_YEARS;

pub(crate) const DAY: u64 = 86_400 * SECOND;

/// 365 days, the longest interval.
pub(crate) const YEAR: u64 = 365 * DAY;

pub(crate) fn per_ns(n: u64, period_ns: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(period_ns))
}

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
    FIFTY_YEARS,
    FIFTY_YEARS + 1,
    u64::MAX - 1,
    u64::MAX,
];

/// Returns extreme durations.
pub(crate) fn long_and_short() -> Vec<Duration> {
    let nanos = EDGES
        .into_iter()
        .chain([3, 7, 1_000_000_007, YEAR - 1, YEAR, YEAR + 1]);
    let mut durations: Vec<Duration> = nanos.map(Duration::from_nanos).collect();
    durations.push(Duration::from_nanos(u64::MAX) + Duration::from_nanos(1));
    durations.push(Duration::from_secs(u64::MAX));
    durations.push(Duration::MAX);
    durations
}
