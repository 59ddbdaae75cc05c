//! The time between a snapshot and its restore, and words that move to another clock.

use core::time::Duration;

use crate::algorithm::{ChangeQuota, Rebase};
use crate::clock::Tick;
use crate::store::cell::UNSTARTED;

/// Returns the time of day in nanoseconds since 1970, or 0 if it is unknown, as without `std`.
/// Call it after the tick of a snapshot is read. In the other order, a restore would count more
/// time than has passed.
pub(crate) fn time_of_day() -> u64 {
    #[cfg(feature = "std")]
    let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed().ok();
    #[cfg(not(feature = "std"))]
    let since_1970: Option<Duration> = None;
    let nanos = |since: Duration| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
    since_1970.map_or(0, nanos)
}

/// Returns a function that computes the time from a time of day until now. It is zero if the time
/// of day was set back or is unknown.
#[cfg(feature = "std")]
pub(crate) fn until_now() -> impl Fn(u64) -> Duration {
    let now = time_of_day();
    move |then| match then {
        0 => Duration::ZERO,
        then => Duration::from_nanos(now.saturating_sub(then)),
    }
}

/// A tick of the snapshot's clock, and the tick of the present clock that corresponds to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moved {
    pub(crate) from: Tick,
    pub(crate) to: Tick,
}

impl Moved {
    /// Converts a word to algorithm `to`. `was` is its old algorithm, or `None` if that is the
    /// same.
    pub(crate) fn word<A: ChangeQuota + Rebase>(self, word: u64, was: Option<&A>, to: &A) -> u64 {
        let moved = was.unwrap_or(to).rebase(word, self.from, self.to);
        let word = was.map_or(moved, |was| was.carry_over(moved, self.to, to));
        word.min(UNSTARTED - 1)
    }
}
