use core::time::Duration;

use tollgate::Tick;

/// The turn of a caller: the permits that were taken, and the first tick at which the caller may
/// go.
///
/// ```
/// use std::time::Duration;
/// use tollgate_smooth::SmoothBursty;
/// use tollgate::ManualClock;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = SmoothBursty::with_clock(10.0, ManualClock::new())?;
/// assert_eq!(limiter.reserve(3)?.delay(), Duration::ZERO);
/// // It waits for the three that were taken before it, and not for its own hundred.
/// let turn = limiter.reserve(100)?;
/// assert_eq!(turn.delay(), Duration::from_millis(300));
/// assert_eq!((turn.n(), turn.due().as_nanos()), (100, 300_000_000));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "the rate is kept only if the caller waits for its turn"]
pub struct SmoothReservation {
    n: u64,
    at: Tick,
    due: Tick,
}

impl SmoothReservation {
    pub(crate) const fn new(n: u64, at: Tick, due: Tick) -> Self {
        Self { n, at, due }
    }

    /// Returns how many permits were taken.
    #[inline]
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// Returns the tick at which the permits were requested.
    #[inline]
    pub const fn at(&self) -> Tick {
        self.at
    }

    /// Returns the first tick at which the caller may go.
    #[inline]
    pub const fn due(&self) -> Tick {
        self.due
    }

    /// Returns the time from the request until the caller may go.
    #[inline]
    pub const fn delay(&self) -> Duration {
        self.due.saturating_since(self.at)
    }
}
