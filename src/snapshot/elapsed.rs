//! The time between a snapshot and its restore.

use core::time::Duration;

/// The time between a snapshot and its restore.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Elapsed {
    /// Measured up to this time of day, in nanoseconds since 1970: that of the restore.
    #[cfg_attr(
        not(feature = "std"),
        allow(dead_code, reason = "the time of day is not known then")
    )]
    Until(u64),
    Known(Duration),
}

/// Returns the time of day in nanoseconds since 1970, or 0 if it is unknown.
#[cfg(feature = "std")]
pub(crate) fn time_of_day() -> u64 {
    use std::time::{SystemTime, UNIX_EPOCH};

    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// Returns 0: without `std` the time of day is unknown.
#[cfg(not(feature = "std"))]
pub(crate) const fn time_of_day() -> u64 {
    0
}

impl Elapsed {
    #[cfg(feature = "std")]
    pub(crate) fn until_now() -> Self {
        Self::Until(time_of_day())
    }

    /// Returns the time since `then`, a time of day. It is zero if the time of day was set back or
    /// is unknown.
    pub(crate) const fn since(self, then: u64) -> Duration {
        match self {
            Self::Known(elapsed) => elapsed,
            Self::Until(_) if then == 0 => Duration::ZERO,
            Self::Until(now) => Duration::from_nanos(now.saturating_sub(then)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Elapsed};

    #[test]
    fn no_time_counts_if_the_time_of_day_went_back_or_is_unknown() {
        assert_eq!(Elapsed::Until(9).since(4), Duration::from_nanos(5));
        assert_eq!(Elapsed::Until(9).since(10), Duration::ZERO);
        assert_eq!(Elapsed::Until(9).since(0), Duration::ZERO);
        assert_eq!(Elapsed::Until(0).since(4), Duration::ZERO);
        let known = Elapsed::Known(Duration::from_nanos(3));
        assert_eq!(known.since(0), Duration::from_nanos(3));
    }
}
