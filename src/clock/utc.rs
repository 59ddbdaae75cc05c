use core::time::Duration;

use super::{Clock, behind_pointers};
#[cfg(feature = "std")]
use super::{CoarseClock, ManualClock, SystemClock};

/// A clock whose tick 0 is a known time in UTC, so that windows can begin on the hour or at
/// midnight UTC: see [`FixedWindow::aligned_to_utc_on`](crate::FixedWindow::aligned_to_utc_on).
///
/// Implement it for your own clock, such as one driven by an RTC or a simulation:
///
/// ```
/// use std::time::Duration;
/// use tollgate::clock::{Clock, UtcClock};
/// use tollgate::{FixedWindow, Limiter, Quota, Tick};
///
/// /// Seconds since 2000-01-01, by a chip on the board.
/// struct Rtc(u32);
///
/// impl Clock for Rtc {
///     fn now(&self) -> Tick {
///         Tick::from_nanos(u64::from(self.0) * 1_000_000_000)
///     }
/// }
///
/// impl UtcClock for Rtc {
///     fn unix_origin(&self) -> Duration {
///         Duration::from_secs(946_684_800)
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = Rtc(22 * 3600);
/// let daily = FixedWindow::new(Quota::per_day(100))?.aligned_to_utc_on(&clock);
/// let limiter = Limiter::with_clock(daily, clock);
/// // The window ends at midnight.
/// assert_eq!(limiter.try_acquire()?.reset_after(), Duration::from_secs(2 * 3600));
/// # Ok(())
/// # }
/// ```
pub trait UtcClock: Clock {
    /// Returns the time from 1970-01-01, 00:00 UTC, to the clock's tick 0. It must not change.
    fn unix_origin(&self) -> Duration;
}

/// The monotonic clock and the time of day are compared once in a process. Later changes of the
/// time of day have no effect.
#[cfg(feature = "std")]
impl UtcClock for SystemClock {
    fn unix_origin(&self) -> Duration {
        super::unix_origin()
    }
}

/// Uses the origin of the [`SystemClock`], which refreshes this clock. If you move it forward with
/// the ticks of another clock, use that clock's origin.
#[cfg(feature = "std")]
impl UtcClock for CoarseClock {
    fn unix_origin(&self) -> Duration {
        super::unix_origin()
    }
}

/// Tick 0 is 1970-01-01, 00:00 UTC, unless the clock was made
/// [`with_unix_origin`](ManualClock::with_unix_origin).
#[cfg(feature = "std")]
impl UtcClock for ManualClock {
    fn unix_origin(&self) -> Duration {
        self.origin()
    }
}

/// Returns the time from 1970-01-01, 00:00 UTC, to tick 0 of a clock, by reading that clock and the
/// time of day now. It is zero if tick 0 was before 1970.
#[cfg(feature = "std")]
pub(super) fn origin_of(clock: &impl Clock) -> Duration {
    use std::time::SystemTime;

    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // A system time before 1970 is wrong, so its midnight means nothing.
    let since = since.unwrap_or_default();
    since.saturating_sub(Duration::from_nanos(clock.now().as_nanos()))
}

behind_pointers!(UtcClock {
    fn unix_origin() -> Duration;
});
