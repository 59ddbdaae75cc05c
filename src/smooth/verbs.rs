//! The verbs: to take turns, change the rate, look.

use core::time::Duration;

use super::Smooth;
use super::curve::{Curve, check_rate};
use super::error::SmoothError;
use super::reservation::SmoothReservation;
use super::state::{NEVER, SmoothState};
use crate::clock::{Clock, Tick};
use crate::metrics::{Metric, MetricSource, Value};
use crate::outcome::Denied;

impl<K: Curve, C> Smooth<K, C> {
    /// [`reserve`](Self::reserve) at this tick.
    ///
    /// # Errors
    ///
    /// As [`reserve`](Self::reserve).
    #[inline]
    pub fn reserve_at(&self, n: u64, now: Tick) -> Result<SmoothReservation, Denied> {
        self.take(n, now, NEVER)
    }

    /// [`try_acquire`](Self::try_acquire) at this tick.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn try_acquire_at(&self, now: Tick) -> Result<SmoothReservation, Denied> {
        self.take(1, now, 0)
    }

    /// [`try_acquire_n`](Self::try_acquire_n) at this tick.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<SmoothReservation, Denied> {
        self.take(n, now, 0)
    }

    /// [`acquire_timeout`](Self::acquire_timeout) at this tick, which does not wait: the
    /// turn says how long.
    ///
    /// # Errors
    ///
    /// As [`acquire_timeout`](Self::acquire_timeout).
    #[inline]
    pub fn acquire_timeout_at(
        &self,
        n: u64,
        timeout: Duration,
        now: Tick,
    ) -> Result<SmoothReservation, Denied> {
        self.take(n, now, self.unit.of_wait(timeout))
    }

    /// A turn, if its wait is not above `longest`.
    #[inline]
    fn take(&self, n: u64, now: Tick, longest: u64) -> Result<SmoothReservation, Denied> {
        if n == 0 {
            return Ok(SmoothReservation::new(0, now, now));
        }
        let units = self.unit.of(now);
        let check = |state| self.check(state, n, now, longest);
        self.step(check, |state, store| {
            let state = store.resync(state, units);
            let due = self.unit.tick(state.next).max(now);
            (store.take(state, n), SmoothReservation::new(n, now, due))
        })
    }

    /// Whether the next turn comes soon enough.
    #[inline]
    fn check(&self, state: SmoothState, n: u64, now: Tick, longest: u64) -> Result<(), Denied> {
        if state.next >= NEVER {
            return Err(Denied::stuck(n));
        }
        let latest = self.unit.of(now).saturating_add(longest);
        if state.next > latest {
            let sooner = self.unit.tick(state.next - longest);
            return Err(Denied::later(n, sooner.saturating_since(now)));
        }
        Ok(())
    }

    /// [`set_rate`](Self::set_rate) at this tick.
    ///
    /// # Errors
    ///
    /// As [`set_rate`](Self::set_rate).
    pub fn set_rate_at(&self, rate: f64, now: Tick) -> Result<(), SmoothError> {
        check_rate(rate, self.curve.max_rate())?;
        self.change(rate, self.unit.of(now));
        Ok(())
    }

    /// The rate in force, in permits a second.
    ///
    /// ```
    /// use tollgate::smooth::SmoothBursty;
    ///
    /// # fn main() -> Result<(), tollgate::smooth::SmoothError> {
    /// assert_eq!(SmoothBursty::new(2.5)?.rate(), 2.5);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.look().1.rate()
    }

    /// The most permits that are stored, at the rate in force.
    ///
    /// ```
    /// use tollgate::smooth::SmoothBursty;
    ///
    /// # fn main() -> Result<(), tollgate::smooth::SmoothError> {
    /// assert_eq!(SmoothBursty::new(2.5)?.max_stored(), 2.5);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn max_stored(&self) -> f64 {
        self.look().1.max()
    }

    /// [`stored`](Self::stored) at this tick. At a tick older than the limiter has seen, it is the
    /// number of then.
    #[must_use]
    pub fn stored_at(&self, now: Tick) -> f64 {
        let (state, store) = self.look();
        store.resync(state, self.unit.of(now)).stored
    }

    /// [`next_free`](Self::next_free) at this tick.
    #[must_use]
    pub fn next_free_at(&self, now: Tick) -> Tick {
        match self.load().next {
            NEVER.. => Tick::MAX,
            next => self.unit.tick(next).max(now),
        }
    }
}

impl<K: Curve, C: Clock> Smooth<K, C> {
    /// Takes `n` permits, however many, and says when the caller may go: when those before it have
    /// been paid for, and not later for its own. The next caller waits for these. `n` = 0 takes
    /// nothing, and goes at once.
    ///
    /// It does not wait: [`acquire_n`](Self::acquire_n) does.
    ///
    /// # Errors
    ///
    /// [`Denied::Stuck`] if that would be beyond what 60 bits of nanoseconds can tell, 36 years
    /// after the clock's start: a caller has taken as much, or passed a tick from there. Nothing is
    /// taken, then or ever after.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::smooth::SmoothBursty;
    /// use tollgate::ManualClock;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = SmoothBursty::with_clock(1.0, ManualClock::new())?;
    /// assert_eq!(limiter.reserve(60)?.delay(), Duration::ZERO);
    /// assert_eq!(limiter.reserve(1)?.delay(), Duration::from_secs(60));
    /// assert_eq!(limiter.reserve(1)?.delay(), Duration::from_secs(61));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn reserve(&self, n: u64) -> Result<SmoothReservation, Denied> {
        self.reserve_at(n, self.clock.now())
    }

    /// Takes a permit if it can be used at once.
    ///
    /// # Errors
    ///
    /// [`Denied::Later`] if another caller's turn is still to come, and [`Denied::Stuck`] as
    /// [`reserve`](Self::reserve). Nothing is taken then.
    #[inline]
    pub fn try_acquire(&self) -> Result<SmoothReservation, Denied> {
        self.try_acquire_at(self.clock.now())
    }

    /// Takes `n` permits, however many, if they can be used at once: the next caller waits for
    /// them.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::smooth::SmoothBursty;
    /// use tollgate::ManualClock;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = SmoothBursty::with_clock(10.0, ManualClock::new())?;
    /// assert!(limiter.try_acquire_n(25).is_ok());
    /// let denied = limiter.try_acquire_n(1).unwrap_err();
    /// assert_eq!(denied.retry_after(), Some(Duration::from_millis(2500)));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn try_acquire_n(&self, n: u64) -> Result<SmoothReservation, Denied> {
        self.try_acquire_n_at(n, self.clock.now())
    }

    /// Changes the rate to `rate` permits a second. Turns that were given stay as they are, and the
    /// store stays full to the same part.
    ///
    /// # Errors
    ///
    /// [`SmoothError`] if the rate is zero, negative, no number, infinite, below one in 365 days,
    /// or above 10^12 or the rate at which 2^50 permits are stored. Nothing is changed then.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::smooth::SmoothBursty;
    /// use tollgate::ManualClock;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let limiter = SmoothBursty::with_clock(10.0, clock.clone())?;
    /// clock.advance(Duration::from_millis(500));
    /// limiter.set_rate(20.0)?;
    /// assert_eq!(limiter.stored(), 10.0); // half of what it stores, as before
    /// assert!(limiter.set_rate(-1.0).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_rate(&self, rate: f64) -> Result<(), SmoothError> {
        self.set_rate_at(rate, self.clock.now())
    }

    /// How many permits are stored. Of a [`SmoothWarmingUp`](crate::smooth::SmoothWarmingUp): how
    /// cold it is.
    #[must_use]
    pub fn stored(&self) -> f64 {
        self.stored_at(self.clock.now())
    }

    /// When the next caller may go: now, or when all before it have been paid for. [`Tick::MAX`] if
    /// never.
    ///
    /// ```
    /// use tollgate::smooth::SmoothBursty;
    /// use tollgate::{ManualClock, Tick};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = SmoothBursty::with_clock(1.0, ManualClock::new())?;
    /// let _ = limiter.reserve(2)?;
    /// assert_eq!(limiter.next_free(), Tick::from_nanos(2_000_000_000));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn next_free(&self) -> Tick {
        self.next_free_at(self.clock.now())
    }
}

impl<K: Curve, C: Clock> MetricSource for Smooth<K, C> {
    fn value(&self, metric: Metric) -> Option<Value> {
        Some(match metric {
            Metric::Rate => self.rate().into(),
            Metric::Stored => self.stored().into(),
            Metric::MaxStored => self.max_stored().into(),
            _ => return None,
        })
    }
}
