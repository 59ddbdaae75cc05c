#[cfg(feature = "std")]
use super::{Clock, Tick};

/// The clock of the process: monotonic, with one origin for all limiters.
///
/// It has no size and no state of its own, so a limiter that uses it can live in a `static`. Tick 0
/// is its first reading in the process.
///
/// With the default feature `quanta`, a reading is one read of the processor's time-stamp counter
/// and a multiplication, if the processor reports that the counter is constant. Otherwise, and
/// without the feature, it is the system's monotonic clock. The first reading calibrates the
/// counter against the system's clock, which takes up to 200 ms, once. If the first decision must
/// not wait for this, call `SystemClock.now()` at start-up. The calibration, and with it all rates,
/// may be off by tens of parts per million.
///
/// On one thread, the clock never goes back. Between threads, readings of the counter are not
/// ordered with other memory and may disagree by up to a microsecond. Limits tolerate this, but do
/// not use this clock to decide which of two threads was first.
///
/// Without the feature `std`, the type still exists, so that `Limiter<TokenBucket>` is the same
/// type with every set of features. It does not implement [`Clock`](super::Clock) then, so only the
/// methods that take the time as an argument are available.
///
/// # Suspend
///
/// Whether the counter runs while the machine is suspended depends on the machine. If it stops,
/// limits stop too: the time asleep refills nothing. If it restarts at 0, ticks start at 0 again,
/// and limits refill nothing until the counter is past its value before the suspend. After such a
/// resume, [`reset`](crate::Limiter::reset) the limiters that must not wait.
///
/// # Fork
///
/// A child process inherits the origin and the calibration, so its ticks are comparable with its
/// parent's. The limiters are copied, and from then on count separately.
///
/// ```
/// use tollgate::clock::{Clock, SystemClock};
///
/// let before = SystemClock.now();
/// assert!(SystemClock.now() >= before);
/// assert_eq!(std::mem::size_of::<SystemClock>(), 0);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SystemClock;

#[cfg(feature = "std")]
impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Tick {
        Tick::from_nanos(timebase::nanos())
    }
}

#[cfg(feature = "quanta")]
mod timebase {
    use std::sync::OnceLock;

    /// The number of fraction bits in `scale`.
    const SCALE_BITS: u32 = 48;

    struct Timebase {
        clock: quanta::Clock,
        /// The counter's reading at tick 0.
        origin: u64,
        /// Nanoseconds per count, times 2^48, as quanta has calibrated them. One multiplication and
        /// a fixed shift then serve every kind of counter.
        scale: u64,
    }

    static TIMEBASE: OnceLock<Timebase> = OnceLock::new();

    #[inline]
    pub(super) fn nanos() -> u64 {
        let base = match TIMEBASE.get() {
            Some(base) => base,
            None => start(),
        };
        let counts = base.clock.raw().saturating_sub(base.origin);
        ((u128::from(counts) * u128::from(base.scale)) >> SCALE_BITS) as u64
    }

    #[cold]
    #[inline(never)]
    fn start() -> &'static Timebase {
        TIMEBASE.get_or_init(|| {
            let clock = quanta::Clock::new();
            let scale = clock.delta_as_nanos(0, 1 << SCALE_BITS);
            let origin = clock.raw();
            Timebase {
                clock,
                origin,
                scale,
            }
        })
    }
}

#[cfg(all(feature = "std", not(feature = "quanta")))]
mod timebase {
    use std::sync::OnceLock;
    use std::time::Instant;

    static ORIGIN: OnceLock<Instant> = OnceLock::new();

    #[inline]
    pub(super) fn nanos() -> u64 {
        let origin = ORIGIN.get_or_init(Instant::now);
        u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Returns the time from 1970-01-01, 00:00 UTC, to tick 0 of the [`SystemClock`]. This clock and
/// the time of day are compared only once, so that all limits of a process agree on when a day
/// begins.
#[cfg(feature = "std")]
pub(crate) fn unix_origin() -> core::time::Duration {
    static ORIGIN: std::sync::OnceLock<core::time::Duration> = std::sync::OnceLock::new();

    *ORIGIN.get_or_init(|| super::utc::origin_of(&SystemClock))
}
