//! Turns at a steady rate that can be changed in use: [`SmoothBursty`] and [`SmoothWarmingUp`], as
//! in Guava.
//!
//! A call never waits for what it takes itself: the **next** one does. So a caller gets any number
//! at once if no turn is pending, and the caller after a large request waits long. Permits that
//! accumulate while idle are stored, up to a limit:
//!
//! | | stored permits | for |
//! |---|---|---|
//! | [`SmoothBursty`] | are free, up to a second of them (or [`max_burst`](Smooth::max_burst)) | a rate that may be caught up with |
//! | [`SmoothWarmingUp`] | cost more the more there are: idle means cold | a cache or a pool that must warm up |
//!
//! ```
//! use std::time::Duration;
//! use tollgate::smooth::SmoothWarmingUp;
//! use tollgate::ManualClock;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Two a second when warm, after four seconds in use; cold, a third of that.
//! let limiter = SmoothWarmingUp::with_clock(2.0, Duration::from_secs(4), ManualClock::new())?;
//! let due = |_| limiter.reserve(1).map(|turn| turn.due().as_nanos() / 1_000_000);
//! let waits = [0; 6].map(due);
//! assert_eq!(waits, [Ok(0), Ok(1375), Ok(2500), Ok(3375), Ok(4000), Ok(4500)]);
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! - **No caller is early.** A turn's due tick is rounded up to a whole nanosecond, and a waiting
//!   caller wakes up at it or later.
//! - **In each interval** from one due tick to another the permits of all calls whose turn is in
//!   it, but for the last one's, are at most `stored + rate * interval`; what is stored is at most
//!   `rate * max_burst`, and of a limiter that warms up none is free: there it is
//!   `rate * interval`. Rates, costs and stored permits are doubles: with a cold factor of 3 a cost
//!   may be wrong by 2^-50 of itself, which is a nanosecond in two weeks. The extra cost of cold
//!   permits is less exact where the factor is large: by 2^-38 with one of 1000, by 2^-19 with a
//!   million. None costs less than an interval.
//! - **No less**, but for the nanosecond to which each call's cost is rounded up (so not more than
//!   one call a nanosecond), and one more with every sixteenth change of the rate at the latest
//!   turn. (A store of more than 50 days loses up to 7 ns of what comes between two calls to its
//!   last digit.)
//! - **A change of the rate** takes effect at one moment: each call costs what it does at the old
//!   rate or at the new one. Turns that were given stay, and what is stored stays the same part of
//!   a full store.
//!
//! # Whole microseconds
//!
//! [`in_whole_micros`](Smooth::in_whole_micros) counts as Guava does, decision by decision: time in
//! whole microseconds, and each part of a cost cut off to them. At three million permits a second
//! nothing is left of a call's cost then, and nothing is limited; it is there for programs that
//! need the same answers. (Every sixteenth change of the rate that finds the next turn where it was
//! moves it on by a microsecond, which Guava's doesn't.)
//!
//! # Lock-free
//!
//! The state is 128 bits in one exchange ([`is_lock_free`] says whether the processor has it); no
//! decision ever waits for another thread. Threads that set a rate exclude each other by a mutex.

mod curve;
mod error;
mod pace;
mod rates;
mod reservation;
mod state;
mod verbs;
mod waits;

use core::fmt;
use core::time::Duration;

pub use curve::{Bursty, WarmingUp};
pub use error::SmoothError;
pub use reservation::SmoothReservation;

use crate::clock::{Clock, SystemClock, Tick};
use crate::sync::{AtomicU64, AtomicU128, SettersMutex};
use curve::{
    Curve, MAX_COLD_FACTOR, MAX_RATE, StoredPermits, check_max_burst, check_rate, check_warm_up,
};
use pace::Unit;
use state::SmoothState;

/// Gives turns at a steady rate, and stores permits for a second (or
/// [`max_burst`](Smooth::max_burst)) while no caller comes; stored permits are free.
///
/// ```
/// use std::time::Duration;
/// use tollgate::smooth::SmoothBursty;
/// use tollgate::ManualClock;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new();
/// let limiter = SmoothBursty::with_clock(5.0, clock.clone())?;
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(limiter.stored(), 5.0);
/// assert!(limiter.try_acquire_n(5).is_ok()); // those were stored
/// assert!(limiter.try_acquire_n(1).is_ok()); // the next caller waits for this one
/// assert_eq!(limiter.try_acquire().unwrap_err().retry_after(), Some(Duration::from_millis(200)));
/// # Ok(())
/// # }
/// ```
pub type SmoothBursty<C = SystemClock> = Smooth<Bursty, C>;

/// Gives turns at a steady rate, once it is warm. After a pause it is cold: a permit costs up to
/// [`cold_factor`](Smooth::cold_factor) intervals (three), and it takes the time to warm up to get
/// from cold to warm. It begins cold.
///
/// A time of zero to warm up is none: each permit costs an interval, and none is stored.
///
/// ```
/// use std::time::Duration;
/// use tollgate::smooth::SmoothWarmingUp;
/// use tollgate::ManualClock;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new();
/// let limiter = SmoothWarmingUp::with_clock(100.0, Duration::from_secs(3), clock)?;
/// let cold = limiter.reserve(1)?.due();
/// assert!(limiter.next_free().saturating_since(cold) > Duration::from_millis(29));
/// let _ = limiter.reserve(500)?;
/// let warm = limiter.reserve(1)?.due();
/// assert_eq!(limiter.next_free().saturating_since(warm), Duration::from_millis(10));
/// # Ok(())
/// # }
/// ```
pub type SmoothWarmingUp<C = SystemClock> = Smooth<WarmingUp, C>;

/// Both smooth limiters: [`SmoothBursty`] and [`SmoothWarmingUp`].
#[repr(C)]
pub struct Smooth<K, C = SystemClock> {
    state: AtomicU128,
    // The rates, as the bits of a double: see `rates.rs`.
    even: AtomicU64,
    odd: AtomicU64,
    curve: K,
    unit: Unit,
    setting: SettersMutex<()>,
    clock: C,
}

/// Whether the state of a smooth limiter is exchanged by the processor alone. So it is on x86-64
/// with `cmpxchg16b`, which all but the oldest have (without it a lock takes its place, which is
/// found out at run time), on aarch64, and on some others; elsewhere it goes through a lock of
/// `portable-atomic`.
///
/// ```
/// # #[cfg(target_arch = "aarch64")]
/// assert!(tollgate::smooth::is_lock_free());
/// ```
#[must_use]
pub fn is_lock_free() -> bool {
    AtomicU128::is_lock_free()
}

impl SmoothBursty {
    /// A limiter of `rate` permits a second, on the system's clock. Nothing is stored at first.
    ///
    /// # Errors
    ///
    /// [`SmoothError`] if the rate is zero, negative, no number, infinite, below one in 365 days,
    /// or above 10^12.
    ///
    /// ```
    /// use tollgate::smooth::SmoothBursty;
    ///
    /// assert!(SmoothBursty::new(0.5).is_ok());
    /// assert!(SmoothBursty::new(f64::NAN).is_err());
    /// ```
    pub fn new(rate: f64) -> Result<Self, SmoothError> {
        Self::with_clock(rate, SystemClock)
    }
}

impl<C> Smooth<Bursty, C> {
    /// The same on a clock of your own.
    ///
    /// # Errors
    ///
    /// As [`new`](SmoothBursty::new).
    pub fn with_clock(rate: f64, clock: C) -> Result<Self, SmoothError>
    where
        C: Clock,
    {
        let start = clock.now();
        Self::started_at(rate, clock, start)
    }

    /// The same from this tick on, for callers that always pass the tick.
    ///
    /// # Errors
    ///
    /// As [`new`](SmoothBursty::new).
    ///
    /// ```
    /// use tollgate::clock::NoClock;
    /// use tollgate::smooth::SmoothBursty;
    /// use tollgate::Tick;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = SmoothBursty::started_at(10.0, NoClock, Tick::ZERO)?;
    /// assert_eq!(limiter.stored_at(Tick::from_nanos(500_000_000)), 5.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn started_at(rate: f64, clock: C, start: Tick) -> Result<Self, SmoothError> {
        let curve = Bursty {
            max_burst: Duration::from_secs(1),
        };
        check_rate(rate, MAX_RATE)?;
        Ok(Self::begin(curve, Unit::Nanos, rate, clock, start))
    }

    /// Stores the permits of `max_burst`, instead of a second's; none, if it is zero. The limiter
    /// begins anew.
    ///
    /// # Errors
    ///
    /// [`SmoothError`] if that is more than 365 days, or than 2^50 permits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::smooth::SmoothBursty;
    ///
    /// # fn main() -> Result<(), tollgate::smooth::SmoothError> {
    /// let limiter = SmoothBursty::new(10.0)?.max_burst(Duration::from_secs(60))?;
    /// assert_eq!(limiter.max_stored(), 600.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_burst(self, max_burst: Duration) -> Result<Self, SmoothError> {
        let rate = self.rate();
        let curve = check_max_burst(max_burst, rate)?;
        let unit = self.unit;
        Ok(self.anew(curve, unit))
    }
}

impl SmoothWarmingUp {
    /// A limiter of `rate` permits a second when it is warm, which takes `warm_up`; on the system's
    /// clock.
    ///
    /// # Errors
    ///
    /// [`SmoothError`] if the rate is zero, negative, no number, infinite, below one in 365 days,
    /// or above 10^12, or the time to warm up above 365 days or that of 2^50 permits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::smooth::SmoothWarmingUp;
    ///
    /// assert!(SmoothWarmingUp::new(100.0, Duration::from_secs(10)).is_ok());
    /// assert!(SmoothWarmingUp::new(-1.0, Duration::from_secs(10)).is_err());
    /// ```
    pub fn new(rate: f64, warm_up: Duration) -> Result<Self, SmoothError> {
        Self::with_clock(rate, warm_up, SystemClock)
    }
}

impl<C> Smooth<WarmingUp, C> {
    /// The same on a clock of your own.
    ///
    /// # Errors
    ///
    /// As [`new`](SmoothWarmingUp::new).
    pub fn with_clock(rate: f64, warm_up: Duration, clock: C) -> Result<Self, SmoothError>
    where
        C: Clock,
    {
        let start = clock.now();
        Self::started_at(rate, warm_up, clock, start)
    }

    /// The same from this tick on, for callers that always pass the tick.
    ///
    /// # Errors
    ///
    /// As [`new`](SmoothWarmingUp::new).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::clock::NoClock;
    /// use tollgate::smooth::SmoothWarmingUp;
    /// use tollgate::Tick;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let start = Tick::from_nanos(1_000);
    /// let limiter = SmoothWarmingUp::started_at(1.0, Duration::ZERO, NoClock, start)?;
    /// assert_eq!(limiter.reserve_at(1, start)?.delay(), Duration::ZERO);
    /// assert_eq!(limiter.reserve_at(1, start)?.delay(), Duration::from_secs(1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn started_at(
        rate: f64,
        warm_up: Duration,
        clock: C,
        start: Tick,
    ) -> Result<Self, SmoothError> {
        check_rate(rate, MAX_RATE)?;
        check_warm_up(warm_up, rate)?;
        let curve = WarmingUp {
            warm_up,
            cold_factor: 3.0,
        };
        Ok(Self::begin(curve, Unit::Nanos, rate, clock, start))
    }

    /// How many times slower it is when it is cold, instead of three. With 1 it always costs an
    /// interval a permit, and what is stored makes no difference. The limiter begins anew.
    ///
    /// # Errors
    ///
    /// [`SmoothError`] if it is below 1, above a million, or no number.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::smooth::SmoothWarmingUp;
    ///
    /// # fn main() -> Result<(), tollgate::smooth::SmoothError> {
    /// let limiter = SmoothWarmingUp::new(2.0, Duration::from_secs(4))?.cold_factor(7.0)?;
    /// assert_eq!(limiter.max_stored(), 6.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn cold_factor(self, cold_factor: f64) -> Result<Self, SmoothError> {
        if !(1.0..=MAX_COLD_FACTOR).contains(&cold_factor) {
            return Err(SmoothError::ColdFactor {
                cold_factor,
                max: MAX_COLD_FACTOR,
            });
        }
        let curve = WarmingUp {
            cold_factor,
            ..self.curve
        };
        let unit = self.unit;
        Ok(self.anew(curve, unit))
    }
}

impl<K: Curve, C> Smooth<K, C> {
    fn begin(curve: K, unit: Unit, rate: f64, clock: C, start: Tick) -> Self {
        let state = SmoothState {
            next: unit.of(start),
            version: 0,
            stored: StoredPermits::new(curve, unit, rate).initial(),
        };
        Self {
            state: AtomicU128::new(state.pack()),
            even: AtomicU64::new(rate.to_bits()),
            odd: AtomicU64::new(rate.to_bits()),
            curve,
            unit,
            setting: SettersMutex::new(()),
            clock,
        }
    }

    fn anew(self, curve: K, unit: Unit) -> Self {
        let start = self.next_free_at(Tick::ZERO);
        let rate = self.rate();
        Self::begin(curve, unit, rate, self.clock, start)
    }

    /// Counts as Guava does, in whole microseconds: see [the module](self#whole-microseconds). The
    /// limiter begins anew.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::smooth::SmoothBursty;
    /// use tollgate::ManualClock;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = SmoothBursty::with_clock(3.0, ManualClock::new())?;
    /// let _ = limiter.reserve(1)?;
    /// assert_eq!(limiter.reserve(1)?.delay(), Duration::from_nanos(333_333_334));
    /// let limiter = limiter.in_whole_micros();
    /// let before = limiter.reserve(1)?;
    /// let next = limiter.reserve(1)?.due();
    /// assert_eq!(next.saturating_since(before.due()), Duration::from_micros(333_333));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn in_whole_micros(self) -> Self {
        let curve = self.curve;
        self.anew(curve, Unit::Micros)
    }

    /// The clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }
}

impl<K: Curve, C: fmt::Debug> fmt::Debug for Smooth<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Smooth")
            .field("rate", &self.rate())
            .field("max_stored", &self.max_stored())
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
