//! A `TryAcquire` in a `Counted`.

use core::borrow::Borrow;

use super::{Counted, Counters, LimiterStats};
use crate::clock::{Clock, Tick};
use crate::outcome::{Charged, Denied, Granted};
use crate::store::Place;
use crate::traits::{DebtLimiter, GiveBackLimiter, ReserveLimiter, TryAcquire};

impl<G: TryAcquire, S: Borrow<Counters>> Counted<G, S> {
    /// Returns what was counted so far.
    #[must_use]
    pub fn stats(&self) -> LimiterStats {
        self.counts()
    }
}

impl<G: TryAcquire<Clock: Clock>, S: Borrow<Counters>> Counted<G, S> {
    /// Reads the limiter's clock.
    #[inline]
    pub fn now(&self) -> Tick {
        self.limiter.clock().now()
    }

    /// Takes `n` permits or none.
    ///
    /// # Errors
    ///
    /// [`Denied`] if fewer than `n` permits are available.
    #[inline(always)]
    pub fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied> {
        let outcome = self.limiter.try_acquire_n(n);
        self.counters().outcome(&outcome);
        outcome
    }

    /// Takes one permit.
    ///
    /// # Errors
    ///
    /// [`Denied`] if no permit is available.
    #[inline]
    pub fn try_acquire(&self) -> Result<Granted, Denied> {
        self.try_acquire_n(1)
    }

    /// Takes up to `n` permits: as many as are available, which may be none. Getting fewer than `n`
    /// does not count as a denial.
    #[inline]
    #[must_use = "the grant says how many permits were taken"]
    pub fn take_up_to(&self, n: u64) -> Granted {
        self.take_up_to_at(n, self.now())
    }

    /// Returns what [`try_acquire_n`](Self::try_acquire_n) would answer. Takes and counts nothing.
    ///
    /// # Errors
    ///
    /// The [`Denied`] that the request would get.
    #[inline]
    pub fn check_n(&self, n: u64) -> Result<(), Denied> {
        self.limiter.check_n_at(n, self.now())
    }

    /// Returns how many permits are available. Takes and counts none.
    #[inline]
    pub fn available(&self) -> u64 {
        self.limiter.available_at(self.now())
    }
}

impl<G: GiveBackLimiter<Clock: Clock>, S: Borrow<Counters>> Counted<G, S> {
    /// Gives back this grant as far as possible, and returns how many permits came back.
    #[inline]
    pub fn undo(&self, granted: Granted) -> u64 {
        self.undo_at(granted, self.now())
    }

    /// Gives back `n` permits as far as possible, and returns how many came back.
    #[inline]
    pub fn refund(&self, n: u64) -> u64 {
        self.refund_at(n, self.now())
    }
}

impl<G: DebtLimiter<Clock: Clock>, S: Borrow<Counters>> Counted<G, S> {
    /// Takes `n` permits unconditionally; the limiter may go into debt.
    #[inline]
    pub fn charge(&self, n: u64) -> Charged {
        self.charge_at(n, self.now())
    }
}

impl<G: TryAcquire, S: Borrow<Counters>> TryAcquire for Counted<G, S> {
    type Clock = G::Clock;

    #[inline]
    fn clock(&self) -> &G::Clock {
        self.limiter.clock()
    }

    #[inline]
    fn place(&self) -> Place {
        self.limiter.place()
    }

    #[inline(always)]
    fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        let outcome = self.limiter.try_acquire_n_at(n, now);
        self.counters().outcome(&outcome);
        outcome
    }

    #[inline]
    fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied>
    where
        G::Clock: Clock,
    {
        self.try_acquire_n(n)
    }

    #[inline]
    fn take_up_to_at(&self, n: u64, now: Tick) -> Granted {
        let granted = self.limiter.take_up_to_at(n, now);
        self.counters().granted(granted.n());
        granted
    }

    #[inline]
    fn check_n_at(&self, n: u64, now: Tick) -> Result<(), Denied> {
        self.limiter.check_n_at(n, now)
    }

    #[inline]
    fn available_at(&self, now: Tick) -> u64 {
        self.limiter.available_at(now)
    }
}

impl<G: GiveBackLimiter, S: Borrow<Counters>> GiveBackLimiter for Counted<G, S> {
    #[inline]
    fn undo_at(&self, granted: Granted, now: Tick) -> u64 {
        let n = self.limiter.undo_at(granted, now);
        self.counters().returned(n);
        n
    }

    #[inline]
    fn refund_at(&self, n: u64, now: Tick) -> u64 {
        let n = self.limiter.refund_at(n, now);
        self.counters().returned(n);
        n
    }

    #[inline]
    fn roll_back_at(&self, granted: Granted, now: Tick) -> u64 {
        let n = self.limiter.roll_back_at(granted, now);
        self.counters().returned(n);
        n
    }
}

impl<G: DebtLimiter, S: Borrow<Counters>> DebtLimiter for Counted<G, S> {
    #[inline]
    fn charge_at(&self, n: u64, now: Tick) -> Charged {
        let charged = self.limiter.charge_at(n, now);
        self.counters().charged(charged.n());
        charged
    }
}

/// A reservation counts as granted when it is made. Its cancelled permits count as returned.
impl<G: ReserveLimiter, S: Borrow<Counters>> ReserveLimiter for Counted<G, S> {
    #[inline]
    fn reserve_until_at(&self, n: u64, latest: Tick, now: Tick) -> Result<Granted, Denied> {
        let outcome = self.limiter.reserve_until_at(n, latest, now);
        self.counters().outcome(&outcome);
        outcome
    }

    #[inline]
    fn waiting_at(&self, now: Tick) -> u64 {
        self.limiter.waiting_at(now)
    }

    #[inline(always)]
    fn reserve_fast_at(&self, n: u64, now: Tick) -> Option<Granted> {
        let granted = self.limiter.reserve_fast_at(n, now)?;
        self.counters().granted(granted.n());
        Some(granted)
    }

    #[inline]
    fn cancel_at(&self, granted: Granted, n: u64, now: Tick) -> (Granted, u64) {
        let (kept, returned) = self.limiter.cancel_at(granted, n, now);
        self.counters().returned(returned);
        (kept, returned)
    }
}
