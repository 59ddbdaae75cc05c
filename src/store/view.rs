//! The view: a store and a tick. All verbs (the methods of limiters) are written here, once.

use core::fmt;
use core::time::Duration;

use crate::algorithm::{Algorithm, Debt, Forecast, Gauge, GiveBack, Level, Reserve};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted, Settled};
use crate::store::Store;
use crate::store::as_of::{CancelAsOf, TakeAsOf};
#[cfg(feature = "std")]
use crate::store::operations::TakeSome;
use crate::store::operations::{
    Acquire, Cancel, Charge, Check, Look, Refund, ReserveUntil, TakeUpTo, Undo,
};
use crate::sync::inject_fault;

/// A limiter at one tick: every method runs at that tick, without reading a clock. The method `at`
/// of a limiter creates a view.
///
/// ```
/// use tollgate::{Limiter, Quota, Tick};
///
/// # fn main() -> Result<(), tollgate::error::QuotaError> {
/// let limiter = Limiter::gcra(Quota::per_second(1))?;
/// let view = limiter.at(Tick::from_nanos(7));
/// assert!(view.try_acquire().is_ok());
/// assert!(view.try_acquire().is_err());
/// # Ok(())
/// # }
/// ```
///
/// `Debug` shows how many permits are available, if one attempt can read that. It changes nothing:
/// it does not start a limiter, and does not insert a key into a table.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
/// # let bucket = TokenBucket::new(Quota::per_second(100).burst(20))?;
/// # let limiter = Limiter::with_clock(bucket, ManualClock::new());
/// limiter.try_acquire_n(3)?;
/// let shown = format!("{:?}", limiter.at(limiter.now()));
/// assert!(shown.contains("algorithm: token-bucket 100/s burst 20"));
/// assert!(shown.contains("available: 17"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct View<S> {
    pub(crate) store: S,
    pub(crate) now: Tick,
}

impl<S> View<S> {
    /// Creates a view of a store at this tick.
    #[inline]
    pub const fn new(store: S, now: Tick) -> Self {
        Self { store, now }
    }

    /// Returns the tick of this view.
    #[inline]
    pub const fn now(&self) -> Tick {
        self.now
    }
}

impl<S: Store> View<S> {
    /// Takes one permit, as [`Limiter::try_acquire`](crate::Limiter::try_acquire) does.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permit is not available.
    #[inline(always)]
    pub fn try_acquire(&self) -> Result<Granted, Denied> {
        self.try_acquire_n(1)
    }

    /// Takes `n` permits or none, as [`Limiter::try_acquire_n`](crate::Limiter::try_acquire_n)
    /// does.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permits are not all available.
    #[inline(always)]
    pub fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied> {
        self.store.apply(self.now, Acquire { n })
    }

    /// Takes `n` permits or none, in one attempt. `None` means that it does not tell, and that
    /// nothing was taken; use [`try_acquire_n`](Self::try_acquire_n).
    #[inline(always)]
    pub(crate) fn try_acquire_fast(&self, n: u64) -> Option<Result<Granted, Denied>> {
        self.store.try_fast(self.now, Acquire { n })
    }

    /// Takes up to `n` permits, as [`Limiter::take_up_to`](crate::Limiter::take_up_to) does.
    #[inline]
    #[must_use = "it says how many permits were taken"]
    pub fn take_up_to(&self, n: u64) -> Granted {
        let Ok(granted) = self.store.apply(self.now, TakeUpTo { n });
        granted
    }

    /// Returns the denial of a request for one permit. `None` if a permit is available, or if the
    /// short path can't tell.
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn denial(&self) -> Option<Denied> {
        self.look(|algorithm, word, now| algorithm.step_fast(word, now, 1)?.err())
    }

    /// Takes up to `n` permits, but at least one. `n` is not 0.
    ///
    /// # Errors
    ///
    /// [`Denied`] if no permit is available.
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn take_some(&self, n: u64) -> Result<Granted, Denied> {
        self.store.apply(self.now, TakeSome { n })
    }

    /// Returns what [`try_acquire_n`](Self::try_acquire_n) would answer, as
    /// [`Limiter::check_n`](crate::Limiter::check_n) does.
    ///
    /// # Errors
    ///
    /// The [`Denied`] that the request would get.
    #[inline(always)]
    pub fn check_n(&self, n: u64) -> Result<(), Denied> {
        self.store.apply(self.now, Check { n })
    }

    /// Returns how many permits are available, as [`Limiter::available`](crate::Limiter::available)
    /// does.
    #[inline]
    pub fn available(&self) -> u64 {
        self.look(|algorithm, word, now| algorithm.available(word, now))
    }

    /// Returns whether the limiter is idle: it behaves like a fresh one from this tick on.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.look(|algorithm, word, now| algorithm.is_idle(word, now))
    }

    /// Makes the limiter full again, as [`Limiter::reset`](crate::Limiter::reset) does.
    #[inline]
    pub fn reset(&self) {
        self.store.reset(self.now);
    }

    #[inline(always)]
    fn look<T>(&self, ask: impl FnMut(&S::Algorithm, u64, Tick) -> T) -> T {
        self.store.look(self.now, ask)
    }
}

impl<S: Store<Algorithm: Forecast>> View<S> {
    /// Returns how long until `n` permits are available, as
    /// [`Limiter::time_until`](crate::Limiter::time_until) does.
    #[inline]
    pub fn time_until(&self, n: u64) -> Option<Duration> {
        let due = self.look(|algorithm, word, now| algorithm.due(word, now, n))?;
        Some(due.saturating_since(self.now))
    }
}

impl<S: Store<Algorithm: Gauge>> View<S> {
    /// Returns how many permits are counted, as [`Limiter::level`](crate::Limiter::level) does.
    #[inline]
    pub fn level(&self) -> Level {
        self.look(|algorithm, word, now| algorithm.level(word, now))
    }
}

impl<S: Store<Algorithm: GiveBack>> View<S> {
    /// Takes `n` permits at the later tick `due`, or none.
    pub(crate) fn take_as_of(&self, n: u64, due: Tick) -> Result<Granted, Denied> {
        self.store.apply(self.now, TakeAsOf { n, due })
    }

    /// Gives back what was taken at a later tick, if no permit was taken since.
    pub(crate) fn cancel_as_of(&self, granted: Granted) -> u64 {
        let Ok(back) = self.store.apply(self.now, CancelAsOf { granted });
        back
    }

    /// Gives a grant back, as [`Limiter::undo`](crate::Limiter::undo) does.
    #[inline]
    pub fn undo(&self, granted: Granted) -> u64 {
        self.undo_grant(granted, false)
    }

    /// Gives back a grant that no caller used, as
    /// [`GiveBackLimiter::roll_back_at`](crate::traits::GiveBackLimiter::roll_back_at) does.
    #[inline]
    pub(crate) fn roll_back(&self, granted: Granted) -> u64 {
        let is_unused = !inject_fault!(RollsBackByUndo); // FAULT
        self.undo_grant(granted, is_unused)
    }

    #[inline(always)]
    fn undo_grant(&self, granted: Granted, is_unused: bool) -> u64 {
        let undo = Undo { granted, is_unused };
        let Ok(back) = self.store.apply(self.now, undo);
        back
    }

    /// Gives back `n` permits, as [`Limiter::refund`](crate::Limiter::refund) does.
    #[inline]
    pub fn refund(&self, n: u64) -> u64 {
        let Ok(back) = self.store.apply(self.now, Refund { n });
        back
    }
}

impl<S: Store<Algorithm: Debt>> View<S> {
    /// Takes `n` permits unconditionally, as [`Limiter::charge`](crate::Limiter::charge) does.
    #[inline]
    pub fn charge(&self, n: u64) -> Charged {
        let Ok(charged) = self.store.apply(self.now, Charge { n });
        charged
    }
}

impl<S: Store<Algorithm: GiveBack + Debt>> View<S> {
    /// Corrects an estimate, as [`Limiter::settle`](crate::Limiter::settle) does.
    #[inline]
    pub fn settle(&self, granted: Granted, actual: u64) -> Settled {
        Settled::by(
            granted,
            actual,
            |unused| self.undo(unused),
            |more| self.charge(more),
        )
    }
}

impl<S: Store<Algorithm: Reserve>> View<S> {
    /// Takes `n` permits if they are available, or will be at `latest` or sooner. [`Granted::due`]
    /// says when. `Limiter::reserve` and all waiting methods use this.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permits will not be available in time: `retry_after` says by how much they
    /// will be too late.
    ///
    /// ```
    /// use tollgate::clock::NoClock;
    /// use tollgate::{Limiter, Quota, Tick, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::unstarted(TokenBucket::new(Quota::per_second(1))?, NoClock);
    /// let view = limiter.at(Tick::ZERO);
    /// let (soon, late) = (Tick::from_nanos(999_999_999), Tick::from_nanos(1_000_000_000));
    /// assert_eq!(view.reserve_until(1, soon)?.due(), Tick::ZERO);
    /// assert!(view.reserve_until(1, soon).is_err());
    /// assert_eq!(view.reserve_until(1, late)?.due(), late);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn reserve_until(&self, n: u64, latest: Tick) -> Result<Granted, Denied> {
        self.store.apply(
            self.now,
            ReserveUntil {
                n,
                latest,
                now: self.now,
            },
        )
    }

    /// Takes `n` permits that are available now, in one attempt. `None` means that nothing was
    /// taken; use [`reserve_until`](Self::reserve_until).
    #[inline(always)]
    pub(crate) fn reserve_fast(&self, n: u64) -> Option<Granted> {
        let now = self.now;
        let latest = now;
        self.store
            .try_fast(now, ReserveUntil { n, latest, now })?
            .ok()
    }

    /// Returns how many permits are taken but not yet due, rounded up. This includes the permits of
    /// cancelled reservations that could not be given back.
    #[inline]
    pub fn waiting(&self) -> u64 {
        self.look(|algorithm, word, now| algorithm.waiting(word, now))
    }

    /// Gives back as much of the last `n` permits of a reservation as possible. Returns the rest of
    /// the reservation, which may now be due sooner, and how many permits came back. A reservation
    /// that another quota granted gives nothing back.
    #[inline]
    pub fn cancel(&self, granted: Granted, n: u64) -> (Granted, u64) {
        let Ok(cancelled) = self.store.apply(self.now, Cancel { granted, n });
        cancelled
    }
}

impl<S: Store + fmt::Debug> fmt::Debug for View<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `View::look` would start an unstarted limiter.
        let look = Look(|algorithm: &S::Algorithm, word, now| algorithm.available(word, now));
        let mut shown = f.debug_struct("View");
        shown.field("store", &self.store);
        if let Some(Ok(available)) = self.store.try_fast(self.now, look) {
            shown.field("available", &available);
        }
        shown.field("now", &self.now).finish()
    }
}
