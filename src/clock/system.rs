#[cfg(feature = "std")]
use super::{Clock, Tick};

/// The process's clock: monotonic, with one origin for all limiters of the process.
///
/// It has no size and no state of its own, so a limiter that uses it can live in a `static`. Its
/// tick 0 is the first reading that anything in the process takes.
///
/// With the default feature `quanta` a reading is one read of the processor's time-stamp counter
/// and a multiplication, where the processor says that the counter is constant; elsewhere, and
/// without the feature, it is the system's monotonic clock. The first reading calibrates the
/// counter against the system's clock, which takes up to 200 ms, once; call `SystemClock.now()` at
/// start-up if the first decision must not wait for that. The calibration may be off by some tens
/// of millionths, and all rates with it.
///
/// On one thread it never goes back. Between threads the readings of the counter are not ordered
/// with other memory, and may disagree by up to a microsecond: limits bear that, but do not use
/// this clock to tell which of two threads was first.
///
/// Without the feature `std` the type is there, so that `Limiter<TokenBucket>` is the same type
/// with every set of features, but it is no [`Clock`](super::Clock): only the verbs that are told
/// the time can be used.
///
/// # Suspend
///
/// Whether the counter runs while the machine is suspended is the machine's affair. If it stands
/// still, limits stand still with it: nothing is refilled for the time asleep. If it starts again
/// at 0, readings stay at tick 0 until it has caught up, and limits that were spent stay spent:
/// after a resume [`reset`](crate::Limiter::reset) what must not wait.
///
/// # Fork
///
/// A child process inherits origin and calibration, so its ticks can be compared with its parent's.
/// The limiters themselves are copied, and count on their own from then.
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

    /// `scale` counts in parts of a nanosecond of this many bits.
    const SCALE_BITS: u32 = 48;

    struct Timebase {
        clock: quanta::Clock,
        /// The counter's reading at tick 0.
        origin: u64,
        /// Nanoseconds a count, times 2^48, as quanta has calibrated them. One multiplication and
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

/// How long after 1970-01-01, 00:00 UTC tick 0 of the [`SystemClock`] was. The two clocks are
/// compared once, so that all limits of a process agree on when a day begins.
#[cfg(feature = "std")]
pub(crate) fn unix_origin() -> core::time::Duration {
    static ORIGIN: std::sync::OnceLock<core::time::Duration> = std::sync::OnceLock::new();

    *ORIGIN.get_or_init(|| super::utc::origin_of(&SystemClock))
}
