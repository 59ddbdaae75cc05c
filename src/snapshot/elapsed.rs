//! The time between a snapshot and its restore.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

/// How much time has passed since the snapshot.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Elapsed {
    /// By the time of day, which is this.
    Until(u64),
    Known(Duration),
}

/// The time of day, in nanoseconds since 1970.
pub(crate) fn time_of_day() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

impl Elapsed {
    pub(crate) fn until_now() -> Self {
        Self::Until(time_of_day())
    }

    pub(crate) fn since(self, then: u64) -> Duration {
        match self {
            Self::Known(elapsed) => elapsed,
            // None, if it went back.
            Self::Until(now) => Duration::from_nanos(now.saturating_sub(then)),
        }
    }
}
