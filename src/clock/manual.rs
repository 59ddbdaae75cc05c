use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use super::{Clock, Tick};
use crate::primitive::{AtomicU64, Ordering};

/// A clock that stands still until it is told to move. For tests and simulations.
///
/// Clones share one time: give one to the limiter and keep the other.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
///
/// # fn main() -> Result<(), tollgate::ConfigError> {
/// let clock = ManualClock::new();
/// let gate = Limiter::with_clock(TokenBucket::new(Quota::per_second(1))?, clock.clone());
/// assert!(gate.try_acquire().is_ok());
/// assert!(gate.try_acquire().is_err());
/// clock.advance(Duration::from_secs(1));
/// assert!(gate.try_acquire().is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ManualClock {
    now_ns: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock at tick 0.
    #[must_use]
    pub fn new() -> Self {
        Self::at(Tick::ZERO)
    }

    /// A clock at this tick.
    #[must_use]
    pub fn at(tick: Tick) -> Self {
        Self {
            now_ns: Arc::new(AtomicU64::new(tick.as_nanos())),
        }
    }

    /// Moves the clock on and says what time it is then. It stops at [`Tick::MAX`].
    pub fn advance(&self, by: Duration) -> Tick {
        // ORDERING: Relaxed. The time publishes no other memory.
        // Model: loom-tests/tests/clock.rs::two_advances_are_both_counted
        let mut now = self.now_ns.load(Ordering::Relaxed);
        loop {
            let next = Tick::from_nanos(now).saturating_add(by);
            // ORDERING: Relaxed, as above.
            match self.now_ns.compare_exchange_weak(
                now,
                next.as_nanos(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return next,
                Err(seen) => now = seen,
            }
        }
    }

    /// Sets the clock, forwards or back.
    pub fn set(&self, tick: Tick) {
        // ORDERING: Relaxed. The time publishes no other memory. A swap, since words change by
        // read-modify-write alone.
        self.now_ns.swap(tick.as_nanos(), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    #[inline]
    fn now(&self) -> Tick {
        // ORDERING: Relaxed. The time publishes no other memory.
        Tick::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ManualClock").field(&self.now()).finish()
    }
}
