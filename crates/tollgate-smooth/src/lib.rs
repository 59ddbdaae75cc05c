//! Rate limiters that space permits at a steady rate, which can be changed in use: Guava's
//! [`SmoothBursty`] and [`SmoothWarmingUp`], for programs that also use [tollgate].
//!
//! Each request gets a *turn*: the first tick at which its caller may go. A request never waits for
//! its own permits: the **next** one does. So if no turn is pending, a caller gets any number of
//! permits at once, and the caller after it waits for them. Permits that accumulate while no caller
//! comes are stored, up to a limit:
//!
//! | | stored permits | use it for |
//! |---|---|---|
//! | [`SmoothBursty`] | are free, up to a second of them (or [`max_burst`](Smooth::max_burst)) | a steady rate, with a burst after a pause |
//! | [`SmoothWarmingUp`] | cost more, the more of them there are: an idle limiter is cold | a cache or a pool that must warm up |
//!
//! ```
//! use std::time::Duration;
//! use tollgate_smooth::SmoothWarmingUp;
//! use tollgate::ManualClock;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Two permits a second once warm, and a third of that when cold. Warming up takes four seconds.
//! let limiter = SmoothWarmingUp::with_clock(2.0, Duration::from_secs(4), ManualClock::new())?;
//! let due = |_| limiter.reserve(1).map(|turn| turn.due().as_nanos() / 1_000_000);
//! let waits = [0; 6].map(due);
//! assert_eq!(waits, [Ok(0), Ok(1375), Ok(2500), Ok(3375), Ok(4000), Ok(4500)]);
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! - **No caller is early.** The tick of a turn is rounded up to a whole nanosecond, and a waiting
//!   caller wakes at that tick or later.
//! - **The rate holds in each interval** that begins and ends with a turn: all calls whose turn is
//!   in the interval, except the last call, take at most `stored + rate * interval` permits. For a
//!   [`SmoothBursty`], `stored` is at most `rate * max_burst`. For a [`SmoothWarmingUp`], which has
//!   no free permits, it is 0. Rates, costs and stored permits are doubles. With a cold factor of
//!   3, the relative error of a cost is at most 2^-50, a nanosecond in two weeks. The extra cost of
//!   cold permits is less exact if the factor is large: the error is 2^-38 with a factor of 1000,
//!   2^-19 with a million. Even then, no permit of such a limiter costs less than an interval.
//! - **The limiter serves the full rate**, except for rounding. Each call's cost is rounded up to a
//!   nanosecond, so there is at most one call a nanosecond. Every sixteenth change of the rate
//!   costs at most one more nanosecond. (If more than 50 days of permits can be stored, up to 7 ns
//!   of what accumulates between two calls is lost, because a double has no more digits.)
//! - **A change of the rate** takes effect at one moment: each call pays the old rate or the new
//!   one. Turns that callers already have do not change. The stored permits stay the same fraction
//!   of the maximum.
//!
//! # Whole microseconds
//!
//! [`in_whole_micros`](Smooth::in_whole_micros) counts as Guava does, decision by decision: in
//! whole microseconds, with each part of a cost rounded down. At three million permits a second,
//! for example, one permit costs a third of a microsecond, which is rounded to zero, so single
//! permits are not limited at all. Use it for programs that need the same answers as Guava's. (One
//! difference remains: every sixteenth change of the rate moves the next turn later by a
//! microsecond, unless that turn is in the past. Guava's does not.)
//!
//! # Lock-free
//!
//! The state is 128 bits, changed by one atomic exchange. If the processor has such an exchange
//! ([`is_lock_free`]), no decision ever waits for another thread. Threads that set a rate exclude
//! each other by a mutex.

mod curve;
mod error;
mod pace;
mod rates;
mod reservation;
mod state;
mod sync;
mod verbs;
mod waits;

use core::fmt;
use core::time::Duration;

use tollgate::Tick;
use tollgate::clock::{Clock, SystemClock};

pub use crate::curve::{Bursty, WarmingUp};
pub use crate::error::SmoothError;
pub use crate::reservation::SmoothReservation;

use crate::curve::{
    Curve, MAX_COLD_FACTOR, MAX_RATE, StoredPermits, check_max_burst, check_rate, check_warm_up,
};
use crate::pace::Unit;
use crate::state::SmoothState;
use crate::sync::{AtomicU64, AtomicU128, SettersMutex};

/// A rate limiter that spaces permits at a steady rate. While no caller comes, it stores the
/// permits of up to a second (or [`max_burst`](Smooth::max_burst)). Stored permits are free.
///
/// ```
/// use std::time::Duration;
/// use tollgate_smooth::SmoothBursty;
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

/// A rate limiter that spaces permits at a steady rate once it is warm. After a pause it is cold: a
/// permit costs up to [`cold_factor`](Smooth::cold_factor) intervals (three by default), and the
/// limiter takes its warm-up time to get from cold to warm. A new limiter is cold.
///
/// With a warm-up time of zero each permit costs an interval, and none is stored.
///
/// ```
/// use std::time::Duration;
/// use tollgate_smooth::SmoothWarmingUp;
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

/// The type of both smooth limiters: [`SmoothBursty`] and [`SmoothWarmingUp`].
#[repr(C)]
pub struct Smooth<K, C = SystemClock> {
    state: AtomicU128,
    // The rates of even and odd versions, as the bits of a double: see `rates.rs`.
    even: AtomicU64,
    odd: AtomicU64,
    curve: K,
    unit: Unit,
    setting: SettersMutex,
    clock: C,
}

/// Returns whether the processor exchanges the state of a smooth limiter without a lock.
///
/// It does on x86-64 with `cmpxchg16b`, on aarch64, and on some others. All but the oldest x86-64
/// processors have `cmpxchg16b`; that is detected at run time. Everywhere else a lock of
/// `portable-atomic` takes its place.
///
/// ```
/// # #[cfg(target_arch = "aarch64")]
/// assert!(tollgate_smooth::is_lock_free());
/// ```
#[must_use]
pub fn is_lock_free() -> bool {
    AtomicU128::is_lock_free()
}

impl SmoothBursty {
    /// Creates a limiter of `rate` permits a second on the system clock. It stores nothing at
    /// first.
    ///
    /// # Errors
    ///
    /// [`SmoothError`] if the rate is zero, negative, NaN, infinite, below one in 365 days, or
    /// above 10^12.
    ///
    /// ```
    /// use tollgate_smooth::SmoothBursty;
    ///
    /// assert!(SmoothBursty::new(0.5).is_ok());
    /// assert!(SmoothBursty::new(f64::NAN).is_err());
    /// ```
    pub fn new(rate: f64) -> Result<Self, SmoothError> {
        Self::with_clock(rate, SystemClock)
    }
}

impl<C> Smooth<Bursty, C> {
    /// Creates a limiter on a clock of your own.
    ///
    /// # Errors
    ///
    /// The same as for [`new`](SmoothBursty::new).
    pub fn with_clock(rate: f64, clock: C) -> Result<Self, SmoothError>
    where
        C: Clock,
    {
        let start = clock.now();
        Self::started_at(rate, clock, start)
    }

    /// Creates a limiter that starts at this tick, for callers that always pass the tick.
    ///
    /// # Errors
    ///
    /// The same as for [`new`](SmoothBursty::new).
    ///
    /// ```
    /// use tollgate::clock::NoClock;
    /// use tollgate_smooth::SmoothBursty;
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

    /// Sets for how long permits accumulate. The default is one second; with zero, none are stored.
    /// This restarts the store as in a new limiter.
    ///
    /// # Errors
    ///
    /// [`SmoothError`] if `max_burst` is more than 365 days, or stores more than 2^50 permits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_smooth::SmoothBursty;
    ///
    /// # fn main() -> Result<(), tollgate_smooth::SmoothError> {
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
    /// Creates a limiter of `rate` permits a second on the system clock, which takes `warm_up` to
    /// become warm.
    ///
    /// # Errors
    ///
    /// [`SmoothError`] if the rate is zero, negative, NaN, infinite, below one in 365 days, or
    /// above 10^12; or if `warm_up` is above 365 days, or so long that more than 2^50 permits could
    /// be stored.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_smooth::SmoothWarmingUp;
    ///
    /// assert!(SmoothWarmingUp::new(100.0, Duration::from_secs(10)).is_ok());
    /// assert!(SmoothWarmingUp::new(-1.0, Duration::from_secs(10)).is_err());
    /// ```
    pub fn new(rate: f64, warm_up: Duration) -> Result<Self, SmoothError> {
        Self::with_clock(rate, warm_up, SystemClock)
    }
}

impl<C> Smooth<WarmingUp, C> {
    /// Creates a limiter on a clock of your own.
    ///
    /// # Errors
    ///
    /// The same as for [`new`](SmoothWarmingUp::new).
    pub fn with_clock(rate: f64, warm_up: Duration, clock: C) -> Result<Self, SmoothError>
    where
        C: Clock,
    {
        let start = clock.now();
        Self::started_at(rate, warm_up, clock, start)
    }

    /// Creates a limiter that starts at this tick, for callers that always pass the tick.
    ///
    /// # Errors
    ///
    /// The same as for [`new`](SmoothWarmingUp::new).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::clock::NoClock;
    /// use tollgate_smooth::SmoothWarmingUp;
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

    /// Sets how many times slower a cold limiter is. The default is 3. With 1 every permit costs an
    /// interval, and stored permits make no difference. This restarts the store as in a new
    /// limiter.
    ///
    /// # Errors
    ///
    /// [`SmoothError`] if the factor is below 1, above a million, or NaN.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_smooth::SmoothWarmingUp;
    ///
    /// # fn main() -> Result<(), tollgate_smooth::SmoothError> {
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

    /// Makes the limiter count as Guava does, in whole microseconds: see [the
    /// module](self#whole-microseconds). This restarts the store as in a new limiter.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_smooth::SmoothBursty;
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

    /// Returns the clock.
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

/// Runs the example of the README with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
