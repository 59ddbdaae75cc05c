use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use super::sleepers::{ManualSleep, Sleepers};
use super::{Clock, SleepClock, Tick, Timer};
use crate::sync::{AtomicU64, Ordering};

/// A clock for tests and simulations: it stands still until it is told to move.
///
/// Clones share one time: give one to the limiter and keep the other. A thread or [future](Timer)
/// that [waits](super::SleepClock) on this clock sleeps until the clock is moved far enough.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
///
/// # fn main() -> Result<(), tollgate::error::QuotaError> {
/// let clock = ManualClock::new();
/// let limiter = Limiter::with_clock(TokenBucket::new(Quota::per_second(1))?, clock.clone());
/// assert!(limiter.try_acquire().is_ok());
/// assert!(limiter.try_acquire().is_err());
/// clock.advance(Duration::from_secs(1));
/// assert!(limiter.try_acquire().is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

struct Shared {
    /// The time from 1970-01-01, 00:00 UTC, to tick 0.
    origin: Duration,
    now_ns: AtomicU64,
    sleepers: Sleepers,
}

impl ManualClock {
    /// Creates a clock at tick 0.
    #[must_use]
    pub fn new() -> Self {
        Self::at(Tick::ZERO)
    }

    /// Creates a clock at this tick.
    #[must_use]
    pub fn at(tick: Tick) -> Self {
        Self::of(Duration::ZERO, tick)
    }

    /// Creates a clock at tick 0, where tick 0 is `origin` after 1970-01-01, 00:00 UTC. Use it for
    /// windows that are [aligned to UTC](crate::FixedWindow::aligned_to_utc_on).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{FixedWindow, Limiter, ManualClock, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let hour = Duration::from_secs(3600);
    /// let clock = ManualClock::with_unix_origin(20_000 * 24 * hour + 23 * hour);
    /// let daily = FixedWindow::new(Quota::per_day(5))?.aligned_to_utc_on(&clock);
    /// let limiter = Limiter::with_clock(daily, clock.clone());
    /// limiter.try_acquire_n(5)?;
    /// clock.advance(hour); // to midnight
    /// assert_eq!(limiter.available(), 5);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_unix_origin(origin: Duration) -> Self {
        Self::of(origin, Tick::ZERO)
    }

    fn of(origin: Duration, tick: Tick) -> Self {
        Self {
            shared: Arc::new(Shared {
                origin,
                now_ns: AtomicU64::new(tick.as_nanos()),
                sleepers: Sleepers::default(),
            }),
        }
    }

    /// Moves the clock forward, up to [`Tick::MAX`], and returns its new tick.
    pub fn advance(&self, by: Duration) -> Tick {
        // ORDERING: Relaxed. The time publishes no other memory, so this pairs with nothing.
        // Model: clock::two_advances_are_both_counted
        let mut now = self.shared.now_ns.load(Ordering::Relaxed);
        loop {
            let next = Tick::from_nanos(now).saturating_add(by);
            // ORDERING: Relaxed, as above.
            match self.shared.now_ns.compare_exchange_weak(
                now,
                next.as_nanos(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    self.wake();
                    return next;
                }
                Err(seen) => now = seen,
            }
        }
    }

    /// Sets the clock, forward or back.
    pub fn set(&self, tick: Tick) {
        // ORDERING: Relaxed. The time publishes no other memory, so this pairs with nothing. It is
        // a swap because words change only by read-modify-write.
        self.shared.now_ns.swap(tick.as_nanos(), Ordering::Relaxed);
        self.wake();
    }

    /// Returns the earliest tick for which a thread or future sleeps: the next step of a
    /// simulation.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, ManualClock, Quota, Tick, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::new(Quota::per_hour(1))?;
    /// let limiter = Limiter::with_clock(bucket, clock.clone());
    /// std::thread::scope(|scope| {
    ///     let threads = [(); 3].map(|()| scope.spawn(|| limiter.blocking_acquire()));
    ///     while !threads.iter().all(|thread| thread.is_finished()) {
    ///         match clock.next_sleeper() {
    ///             Some(tick) => clock.set(tick),
    ///             None => std::thread::yield_now(),
    ///         }
    ///     }
    /// });
    /// # Ok(())
    /// # }
    /// ```
    pub fn next_sleeper(&self) -> Option<Tick> {
        self.shared.sleepers.next()
    }

    /// Returns how many threads and futures sleep on this clock.
    pub fn sleepers(&self) -> usize {
        self.shared.sleepers.len()
    }

    /// Wakes the sleepers that are due.
    fn wake(&self) {
        self.shared.sleepers.wake(|| self.now());
    }
}

impl Clock for ManualClock {
    #[inline]
    fn now(&self) -> Tick {
        // ORDERING: Relaxed. The time publishes no other memory, so this pairs with nothing.
        Tick::from_nanos(self.shared.now_ns.load(Ordering::Relaxed))
    }

    #[inline]
    fn identity(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }
}

impl SleepClock for ManualClock {
    fn sleep_until(&self, due: Tick, _now: Tick) -> Tick {
        self.shared.sleepers.block_until(due, || self.now())
    }
}

impl Timer for ManualClock {
    type Sleep = ManualSleep;

    fn sleep(&self, duration: Duration) -> ManualSleep {
        ManualSleep::new(self.clone(), self.now().saturating_add(duration))
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl ManualClock {
    pub(super) fn origin(&self) -> Duration {
        self.shared.origin
    }

    pub(super) fn registry(&self) -> &Sleepers {
        &self.shared.sleepers
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ManualClock").field(&self.now()).finish()
    }
}
