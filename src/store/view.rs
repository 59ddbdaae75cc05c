//! The view: a store and a tick. The one place where the verbs are written.

use core::fmt;
use core::time::Duration;

use crate::algorithm::{Algorithm, Debt, Forecast, Gauge, GiveBack, Level, Reserve};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted, Settled};
use crate::store::Store;
#[cfg(feature = "std")]
use crate::store::operations::TakeSome;
use crate::store::operations::{
    Acquire, Cancel, Charge, Look, Refund, ReserveUntil, TakeUpTo, Undo,
};

/// A limiter at one tick: every verb runs at that tick, without reading a clock. The `at` of each
/// limiter makes one.
///
/// ```
/// use tollgate::{Limiter, Quota, Tick};
///
/// # fn main() -> Result<(), tollgate::ConfigError> {
/// let limiter = Limiter::gcra(Quota::per_second(1))?;
/// let view = limiter.at(Tick::from_nanos(7));
/// assert!(view.try_acquire().is_ok());
/// assert!(view.try_acquire().is_err());
/// # Ok(())
/// # }
/// ```
///
/// `Debug` shows what is available, if one attempt finds it out. It changes nothing: it starts no
/// limiter, and brings no key into a table.
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
    /// The view of a store at this tick.
    #[inline]
    pub const fn new(store: S, now: Tick) -> Self {
        Self { store, now }
    }

    /// The tick of this view.
    #[inline]
    pub const fn now(&self) -> Tick {
        self.now
    }
}

impl<S: Store> View<S> {
    /// [`Limiter::try_acquire`](crate::Limiter::try_acquire) at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permit was not there.
    #[inline(always)]
    pub fn try_acquire(&self) -> Result<Granted, Denied> {
        self.try_acquire_n(1)
    }

    /// [`Limiter::try_acquire_n`](crate::Limiter::try_acquire_n) at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permits were not all there.
    #[inline(always)]
    pub fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied> {
        self.store.apply(self.now, Acquire { n })
    }

    /// [`Limiter::take_up_to`](crate::Limiter::take_up_to) at this tick.
    #[inline]
    #[must_use = "it says how many were there"]
    pub fn take_up_to(&self, n: u64) -> Granted {
        let Ok(granted) = self.store.apply(self.now, TakeUpTo { n });
        granted
    }

    /// The denial of one permit, if that is short and there is none.
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn denial(&self) -> Option<Denied> {
        self.look(|algorithm, word, now| algorithm.short_step(word, now, 1)?.err())
    }

    /// Takes as many of `n` permits as there are, if there is one. `n` is not 0.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is none.
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn take_some(&self, n: u64) -> Result<Granted, Denied> {
        self.store.apply(self.now, TakeSome { n })
    }

    /// [`Limiter::available`](crate::Limiter::available) at this tick.
    #[inline]
    pub fn available(&self) -> u64 {
        self.look(|algorithm, word, now| algorithm.available(word, now))
    }

    /// Whether the limiter can no longer be told from a fresh one at this tick.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.look(|algorithm, word, now| algorithm.is_idle(word, now))
    }

    /// [`Limiter::reset`](crate::Limiter::reset).
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
    /// [`Limiter::time_until`](crate::Limiter::time_until) at this tick.
    #[inline]
    pub fn time_until(&self, n: u64) -> Option<Duration> {
        let due = self.look(|algorithm, word, now| algorithm.due(word, now, n))?;
        Some(due.saturating_since(self.now))
    }
}

impl<S: Store<Algorithm: Gauge>> View<S> {
    /// [`Limiter::level`](crate::Limiter::level) at this tick.
    #[inline]
    pub fn level(&self) -> Level {
        self.look(|algorithm, word, now| algorithm.level(word, now))
    }
}

impl<S: Store<Algorithm: GiveBack>> View<S> {
    /// [`Limiter::undo`](crate::Limiter::undo) at this tick.
    #[inline]
    pub fn undo(&self, granted: Granted) -> u64 {
        let Ok(back) = self.store.apply(self.now, Undo { granted });
        back
    }

    /// [`Limiter::refund`](crate::Limiter::refund) at this tick.
    #[inline]
    pub fn refund(&self, n: u64) -> u64 {
        let Ok(back) = self.store.apply(self.now, Refund { n });
        back
    }
}

impl<S: Store<Algorithm: Debt>> View<S> {
    /// [`Limiter::charge`](crate::Limiter::charge) at this tick.
    #[inline]
    pub fn charge(&self, n: u64) -> Charged {
        let Ok(charged) = self.store.apply(self.now, Charge { n });
        charged
    }
}

impl<S: Store<Algorithm: GiveBack + Debt>> View<S> {
    /// [`Limiter::settle`](crate::Limiter::settle) at this tick.
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
    /// Takes `n` permits if they are there, or will be at `latest` or sooner: [`Granted::due`] says
    /// when. `Limiter::reserve` and all waiting verbs are built on it.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they won't: `retry_after` says by how much they will be too late.
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

    /// Takes `n` permits that are there, in one attempt. `None` means that nothing was taken; use
    /// [`reserve_until`](Self::reserve_until).
    #[inline(always)]
    pub(crate) fn reserve_fast(&self, n: u64) -> Option<Granted> {
        let now = self.now;
        let latest = now;
        self.store.try_fast(now, ReserveUntil { n, latest, now })
    }

    /// How many permits were taken that are not due yet, a started one counted whole. Those of
    /// cancelled reservations that were lost are among them.
    #[inline]
    pub fn waiting(&self) -> u64 {
        self.look(|algorithm, word, now| algorithm.waiting(word, now))
    }

    /// Gives back as much of the last `n` permits of a reservation as can be: what is kept of it,
    /// which may be due sooner now, and how many came back. Nothing comes back of a reservation
    /// that another quota granted.
    #[inline]
    pub fn cancel(&self, granted: Granted, n: u64) -> (Granted, u64) {
        let Ok(cancelled) = self.store.apply(self.now, Cancel { granted, n });
        cancelled
    }
}

impl<S: Store + fmt::Debug> fmt::Debug for View<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A look would start a limiter.
        let look = Look(|algorithm: &S::Algorithm, word, now| algorithm.available(word, now));
        let mut shown = f.debug_struct("View");
        shown.field("store", &self.store);
        if let Some(available) = self.store.try_fast(self.now, look) {
            shown.field("available", &available);
        }
        shown.field("now", &self.now).finish()
    }
}
