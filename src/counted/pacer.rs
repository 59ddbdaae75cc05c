//! `Pacer` in a `Counted`.

use core::borrow::Borrow;

use super::{Counted, Counters, LimiterStats};
use crate::algorithm::Gcra;
use crate::clock::{Clock, SleepClock, Tick};
use crate::limiter::Limiter;
use crate::outcome::Denied;
use crate::wait::{Pacer, Reservation, acquire};

type Paced<'p, C> = Counted<&'p Limiter<Gcra, C>, &'p Counters>;

impl<C, S: Borrow<Counters>> Counted<Pacer<C>, S> {
    /// Returns what was counted so far.
    #[must_use]
    pub fn stats(&self) -> LimiterStats {
        self.counts()
    }

    #[inline]
    fn paced(&self) -> Paced<'_, C> {
        self.part(self.limiter.limiter())
    }

    /// Reserves one permit at this tick and counts: see [`Pacer::reserve_at`].
    ///
    /// # Errors
    ///
    /// [`Denied`] if the clock can't represent the tick at which the permit is due.
    pub fn reserve_at(&self, now: Tick) -> Result<Reservation<Paced<'_, C>>, Denied> {
        Reservation::until(self.paced(), 1, Tick::MAX, now)
    }
}

impl<C: Clock, S: Borrow<Counters>> Counted<Pacer<C>, S> {
    /// Reserves one permit and counts: see [`Pacer::reserve`].
    ///
    /// # Errors
    ///
    /// [`Denied`] if the clock can't represent the tick at which the permit is due.
    ///
    /// ```
    /// use tollgate::{Counted, ManualClock, Pacer, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pacer = Pacer::with_clock(Quota::per_second(100), 0, ManualClock::new())?;
    /// let pacer = Counted::new(pacer);
    /// let (_first, second) = (pacer.reserve()?, pacer.reserve()?);
    /// second.cancel();
    /// assert_eq!((pacer.stats().granted, pacer.stats().returned), (2, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn reserve(&self) -> Result<Reservation<Paced<'_, C>>, Denied> {
        self.reserve_at(self.limiter.limiter().now())
    }

    /// Returns a limiter that waits on this timer and counts: see [`Pacer::with_timer`].
    #[cfg(feature = "wait")]
    pub fn with_timer<T: crate::clock::Timer>(
        &self,
        timer: T,
    ) -> crate::wait::AsyncLimiter<Paced<'_, C>, T> {
        crate::wait::AsyncLimiter::new(self.paced(), timer)
    }
}

impl<C: SleepClock, S: Borrow<Counters>> Counted<Pacer<C>, S> {
    /// Waits for one permit and counts: see [`Pacer::acquire`].
    ///
    /// # Errors
    ///
    /// [`Denied`] if the clock can't represent the tick at which the permit is due.
    pub fn acquire(&self) -> Result<Tick, Denied> {
        let now = self.limiter.limiter().now();
        Ok(acquire(&self.paced(), 1, now, Tick::MAX)?.at())
    }
}
