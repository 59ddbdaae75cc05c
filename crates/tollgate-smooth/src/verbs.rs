//! The methods that take turns, change the rate, and read the state.

use core::time::Duration;

use tollgate::clock::Clock;
use tollgate::stats::{Metric, Metrics, Value};
use tollgate::{Denied, Tick};

use crate::Smooth;
use crate::curve::{Curve, check_rate};
use crate::error::SmoothError;
use crate::reservation::SmoothReservation;
use crate::state::{NEVER, SmoothState};

impl<K: Curve, C> Smooth<K, C> {
    /// Takes `n` permits at this tick. The reservation says when the caller may go: see
    /// [`reserve`](Self::reserve).
    ///
    /// # Errors
    ///
    /// The same as for [`reserve`](Self::reserve).
    #[inline]
    pub fn reserve_at(&self, n: u64, now: Tick) -> Result<SmoothReservation, Denied> {
        self.take(n, now, NEVER)
    }

    /// Takes one permit at this tick, if it can be used at once: see
    /// [`try_acquire`](Self::try_acquire).
    ///
    /// # Errors
    ///
    /// The same as for [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn try_acquire_at(&self, now: Tick) -> Result<SmoothReservation, Denied> {
        self.take(1, now, 0)
    }

    /// Takes `n` permits at this tick, if they can be used at once: see
    /// [`try_acquire_n`](Self::try_acquire_n).
    ///
    /// # Errors
    ///
    /// The same as for [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<SmoothReservation, Denied> {
        self.take(n, now, 0)
    }

    /// Takes `n` permits at this tick, if their turn comes within `timeout`: see
    /// [`blocking_acquire_timeout`](Self::blocking_acquire_timeout). It does not wait: the
    /// reservation says at which tick the turn comes.
    ///
    /// # Errors
    ///
    /// The same as for [`blocking_acquire_timeout`](Self::blocking_acquire_timeout).
    #[inline]
    pub fn reserve_within_at(
        &self,
        n: u64,
        timeout: Duration,
        now: Tick,
    ) -> Result<SmoothReservation, Denied> {
        self.take(n, now, self.unit.of_wait(timeout))
    }

    /// Takes a turn, if its wait is at most `longest`.
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

    /// Returns an error if the next turn comes too late.
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

    /// Changes the rate at this tick: see [`set_rate`](Self::set_rate).
    ///
    /// # Errors
    ///
    /// The same as for [`set_rate`](Self::set_rate).
    pub fn set_rate_at(&self, rate: f64, now: Tick) -> Result<(), SmoothError> {
        check_rate(rate, self.curve.max_rate())?;
        self.change(rate, self.unit.of(now));
        Ok(())
    }

    /// Returns the current rate, in permits a second.
    ///
    /// ```
    /// use tollgate_smooth::SmoothBursty;
    ///
    /// # fn main() -> Result<(), tollgate_smooth::SmoothError> {
    /// assert_eq!(SmoothBursty::new(2.5)?.rate(), 2.5);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.look().1.rate()
    }

    /// Returns the largest number of permits that can be stored at the current rate.
    ///
    /// ```
    /// use tollgate_smooth::SmoothBursty;
    ///
    /// # fn main() -> Result<(), tollgate_smooth::SmoothError> {
    /// assert_eq!(SmoothBursty::new(2.5)?.max_stored(), 2.5);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn max_stored(&self) -> f64 {
        self.look().1.max()
    }

    /// Returns how many permits are [stored](Self::stored) at this tick. If the next turn is later,
    /// returns the number at that turn.
    #[must_use]
    pub fn stored_at(&self, now: Tick) -> f64 {
        let (state, store) = self.look();
        store.resync(state, self.unit.of(now)).stored
    }

    /// Returns the tick at which the next caller may go, if it asks at this tick: see
    /// [`next_free`](Self::next_free).
    #[must_use]
    pub fn next_free_at(&self, now: Tick) -> Tick {
        match self.load().next {
            NEVER.. => Tick::MAX,
            next => self.unit.tick(next).max(now),
        }
    }
}

impl<K: Curve, C: Clock> Smooth<K, C> {
    /// Takes any number `n` of permits. The reservation says when the caller may go: after the time
    /// that all earlier permits cost. The caller does not wait for its own permits; the next caller
    /// does. A request for 0 permits takes nothing and may go at once.
    ///
    /// This does not wait: [`blocking_acquire_n`](Self::blocking_acquire_n) does.
    ///
    /// # Errors
    ///
    /// [`Denied::Stuck`] if the turn is 36 years after the clock's start (60 bits of nanoseconds)
    /// or later. That takes 36 years' worth of permits, or a call with a tick that late. Nothing is
    /// taken, and every later request is denied too.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_smooth::SmoothBursty;
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

    /// Takes one permit, if it can be used at once.
    ///
    /// # Errors
    ///
    /// [`Denied::Later`] if another caller's turn is still pending, and [`Denied::Stuck`] as for
    /// [`reserve`](Self::reserve). Nothing is taken then.
    #[inline]
    pub fn try_acquire(&self) -> Result<SmoothReservation, Denied> {
        self.try_acquire_at(self.clock.now())
    }

    /// Takes any number `n` of permits, if they can be used at once. The next caller waits for
    /// them.
    ///
    /// # Errors
    ///
    /// The same as for [`try_acquire`](Self::try_acquire).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_smooth::SmoothBursty;
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

    /// Changes the rate to `rate` permits a second. Turns that callers already have do not change.
    /// The stored permits stay the same fraction of [`max_stored`](Self::max_stored).
    ///
    /// # Errors
    ///
    /// [`SmoothError`] if the rate is zero, negative, NaN, infinite, below one in 365 days, above
    /// 10^12, or so high that more than 2^50 permits could be stored. Nothing is changed then.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_smooth::SmoothBursty;
    /// use tollgate::ManualClock;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let limiter = SmoothBursty::with_clock(10.0, clock.clone())?;
    /// clock.advance(Duration::from_millis(500));
    /// limiter.set_rate(20.0)?;
    /// assert_eq!(limiter.stored(), 10.0); // half of the maximum, as before
    /// assert!(limiter.set_rate(-1.0).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_rate(&self, rate: f64) -> Result<(), SmoothError> {
        self.set_rate_at(rate, self.clock.now())
    }

    /// Returns how many permits are stored. For a
    /// [`SmoothWarmingUp`](crate::SmoothWarmingUp), this says how cold it is.
    #[must_use]
    pub fn stored(&self) -> f64 {
        self.stored_at(self.clock.now())
    }

    /// Returns the tick at which the next caller may go: now, or after the time that all permits
    /// taken so far cost. [`Tick::MAX`] if never.
    ///
    /// ```
    /// use tollgate_smooth::SmoothBursty;
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

impl<K: Curve, C: Clock> Metrics for Smooth<K, C> {
    fn value(&self, metric: Metric) -> Option<Value> {
        Some(match metric {
            Metric::Rate => self.rate().into(),
            Metric::Stored => self.stored().into(),
            Metric::MaxStored => self.max_stored().into(),
            _ => return None,
        })
    }
}
