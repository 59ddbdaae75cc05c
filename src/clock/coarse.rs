use core::fmt;
use core::time::Duration;

use crossbeam_utils::CachePadded;

use super::{Clock, Tick};
use crate::sync::{AtomicU64, Ordering, const_unless_loom};

/// A clock that stores its latest tick: a reading is one relaxed load.
///
/// Your own loop moves the clock forward: call `refresh` in each iteration, or
/// [`advance_to`](Self::advance_to) with a tick that the loop already has. Or start an `Upkeep`
/// thread, which does it for you. The clock never goes back.
///
/// # Staleness
///
/// With your own loop, a reading is as old as the last refresh. With an upkeep thread, it is as old
/// as the thread's interval ([`staleness`](Self::staleness)) plus the time by which the system
/// wakes the thread late. `age` measures the actual value. A stale clock runs late, so permits are
/// refilled late by as much, and never early.
///
/// ```
/// use tollgate::clock::CoarseClock;
/// use tollgate::{Limiter, Quota, TokenBucket};
///
/// static CLOCK: CoarseClock = CoarseClock::new();
///
/// # fn main() -> Result<(), tollgate::error::QuotaError> {
/// let limiter = Limiter::with_clock(TokenBucket::new(Quota::per_second(100))?, &CLOCK);
/// for _turn in 0..3 {
///     CLOCK.refresh(); // in each iteration of the event loop
///     assert!(limiter.try_acquire().is_ok());
/// }
/// # Ok(())
/// # }
/// ```
pub struct CoarseClock {
    /// Often read and rarely written: it must not share its cache line with busy neighbors.
    now_ns: CachePadded<AtomicU64>,
    /// The interval of the upkeep thread, 0 while none runs.
    interval_ns: CachePadded<AtomicU64>,
}

impl CoarseClock {
    const_unless_loom! {
        /// Creates a clock at tick 0, not yet refreshed.
        #[must_use]
        pub fn new() -> Self {
            Self {
                now_ns: CachePadded::new(AtomicU64::new(0)),
                interval_ns: CachePadded::new(AtomicU64::new(0)),
            }
        }
    }

    /// Moves the clock forward to `tick`, unless it is already later. Returns the clock's tick
    /// after that.
    pub fn advance_to(&self, tick: Tick) -> Tick {
        // ORDERING: Relaxed. The time publishes no other memory, so this pairs with nothing.
        // `fetch_max` keeps the latest tick in any order.
        // Model: clock::coarse_clock_never_goes_back
        let before = self.now_ns.fetch_max(tick.as_nanos(), Ordering::Relaxed);
        Tick::from_nanos(before).max(tick)
    }

    /// Moves the clock forward to the system clock's tick, and returns the clock's tick after that.
    #[cfg(feature = "std")]
    pub fn refresh(&self) -> Tick {
        self.advance_to(super::SystemClock.now())
    }

    /// Returns how far the clock is behind the system clock.
    #[cfg(feature = "std")]
    pub fn age(&self) -> Duration {
        super::SystemClock.now().saturating_since(self.now())
    }

    /// Returns the interval of the upkeep thread, or `None` while none runs.
    pub fn staleness(&self) -> Option<Duration> {
        // ORDERING: Relaxed. It publishes no other memory, so this pairs with nothing.
        match self.interval_ns.load(Ordering::Relaxed) {
            0 => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }
}

impl Clock for CoarseClock {
    #[inline]
    fn now(&self) -> Tick {
        // ORDERING: Relaxed. The time publishes no other memory, so this pairs with nothing. This
        // clock may be stale by design.
        // Model: clock::coarse_clock_never_goes_back
        Tick::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }

    #[inline]
    fn identity(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }
}

impl Default for CoarseClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CoarseClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoarseClock")
            .field("now", &self.now())
            .field("staleness", &self.staleness())
            .finish()
    }
}

#[cfg(feature = "std")]
pub use upkeep::Upkeep;

#[cfg(feature = "std")]
mod upkeep {
    use core::ops::Deref;
    use core::time::Duration;
    use std::io;
    use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
    use std::thread::{Builder, JoinHandle};

    use super::CoarseClock;
    use crate::sync::Ordering;

    /// A thread that refreshes a [`CoarseClock`] until this is dropped.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tollgate::clock::{CoarseClock, Upkeep};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let clock = Arc::new(CoarseClock::new());
    /// let upkeep = Upkeep::start(Arc::clone(&clock), Duration::from_millis(1))?;
    /// assert_eq!(clock.staleness(), Some(Duration::from_millis(1)));
    /// drop(upkeep); // stops the thread and waits for it
    /// assert_eq!(clock.staleness(), None);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug)]
    #[must_use = "the thread stops when this is dropped"]
    pub struct Upkeep {
        /// The thread stops when this is dropped.
        stop: Option<Sender<()>>,
        thread: Option<JoinHandle<()>>,
    }

    impl Upkeep {
        /// Starts a thread that refreshes `clock` (an `Arc` of one, or a `static`) every
        /// `interval`. The interval is limited to between 1 µs and 1 hour. The clock is refreshed
        /// once before this returns.
        ///
        /// # Errors
        ///
        /// The system's error, if it can't start a thread.
        pub fn start<K>(clock: K, interval: Duration) -> io::Result<Self>
        where
            K: Deref<Target = CoarseClock> + Send + 'static,
        {
            let interval = interval.clamp(Duration::from_micros(1), Duration::from_secs(3600));
            let nanos = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
            let (stop, stopped) = channel::<()>();
            clock.refresh();
            // ORDERING: Relaxed, here and below. It publishes no other memory, so this pairs with
            // nothing.
            clock.interval_ns.swap(nanos, Ordering::Relaxed);
            let shown = Shown(clock);
            let thread = Builder::new()
                .name("tollgate-upkeep".into())
                .spawn(move || {
                    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(interval) {
                        shown.0.refresh();
                    }
                })?;
            Ok(Self {
                stop: Some(stop),
                thread: Some(thread),
            })
        }
    }

    /// Clears the interval when the thread ends, even by a panic.
    struct Shown<K: Deref<Target = CoarseClock>>(K);

    impl<K: Deref<Target = CoarseClock>> Drop for Shown<K> {
        fn drop(&mut self) {
            // ORDERING: Relaxed. It publishes no other memory, so this pairs with nothing.
            self.0.interval_ns.swap(0, Ordering::Relaxed);
        }
    }

    impl Drop for Upkeep {
        fn drop(&mut self) {
            drop(self.stop.take());
            if let Some(thread) = self.thread.take() {
                // The thread returns nothing. If it panicked, it has ended too.
                let _ = thread.join();
            }
        }
    }
}
