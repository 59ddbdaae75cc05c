//! What a composition needs from a limit.

use crate::clock::Tick;
#[cfg(feature = "std")]
use crate::concurrency::limiter::Concurrency;
use crate::outcome::{Charged, Denied, Granted, Settled};
use crate::rate_limiter::{RateLimiter, SettleLimiter};
use crate::store::Place;
use crate::sync::inject_fault;

/// A limit that can be a member of a composition such as [`All`](super::All). `C` is its clock.
///
/// Every limiter that can [settle](crate::Limiter::settle) implements it, and so do
/// [`SlidingLog`](crate::SlidingLog), [`Leases`](crate::Leases) and
/// [`Concurrency`](crate::Concurrency). A limit of your own that implements it is a member in a
/// [`BoxMember`](super::BoxMember).
pub trait Member<C> {
    /// Returns the clock, or `None` if the limit needs none.
    fn clock(&self) -> Option<&C>;

    /// Shows each clock that the limit reads. Only a limit made of several others has more than one.
    #[inline]
    fn each_clock(&self, show: &mut dyn FnMut(&C)) {
        if let Some(clock) = self.clock() {
            show(clock);
        }
    }

    /// Returns how deep the limit is nested: 0 for a plain limit, and one more for each
    /// [`OrElse`](super::OrElse) around another.
    #[inline]
    fn depth(&self) -> u32 {
        0
    }

    /// Returns where the state is: see [`RateLimiter::place`].
    fn place(&self) -> Place;

    /// Returns whether a grant can be undone. A composition takes at most one member that can't,
    /// and takes from it last.
    #[inline]
    fn can_undo(&self) -> bool {
        true
    }

    /// Returns what [`take`](Self::take) would answer. It writes nothing.
    ///
    /// # Errors
    ///
    /// The [`Denied`] that the request would get.
    fn check(&self, n: u64, now: Tick) -> Result<(), Denied>;

    /// Takes `n` permits at this tick, or none.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they are not all available.
    fn take(&self, n: u64, now: Tick) -> Result<Granted, Denied>;

    /// Returns how many permits are available at this tick.
    fn available_at(&self, now: Tick) -> u64;

    /// Gives a grant back, and returns how many permits came back. A member that can't undo returns
    /// 0.
    fn give_back(&self, granted: Granted, now: Tick) -> u64;

    /// Corrects an estimate: see [`SettleLimiter::settle_at`]. A member that can't settle keeps the
    /// grant as it is.
    fn correct(&self, granted: Granted, actual: u64, now: Tick) -> Settled;

    /// Takes `n` permits unconditionally. A member that can't go into debt takes none.
    fn charge_to(&self, n: u64, now: Tick) -> Charged;

    /// Ends the use of a grant whose holder is done, and returns whether the grant is over. Only
    /// [`Concurrency`] does anything here: the holder leaves.
    #[inline]
    fn leave(&self, granted: &Granted) -> bool {
        let _ = granted;
        false
    }
}

impl<L: SettleLimiter + ?Sized> Member<L::Clock> for L {
    #[inline]
    fn clock(&self) -> Option<&L::Clock> {
        Some(RateLimiter::clock(self))
    }

    #[inline]
    fn place(&self) -> Place {
        RateLimiter::place(self)
    }

    #[inline(always)]
    fn check(&self, n: u64, now: Tick) -> Result<(), Denied> {
        self.check_n_at(n, now)
    }

    #[inline(always)]
    fn take(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.try_acquire_n_at(n, now)
    }

    #[inline]
    fn available_at(&self, now: Tick) -> u64 {
        RateLimiter::available_at(self, now)
    }

    #[inline]
    fn give_back(&self, granted: Granted, now: Tick) -> u64 {
        match inject_fault!(RefundsInstead) {
            true => self.refund_at(granted.n(), now),
            false => self.undo_at(granted, now),
        }
    }

    #[inline]
    fn correct(&self, granted: Granted, actual: u64, now: Tick) -> Settled {
        self.settle_at(granted, actual, now)
    }

    #[inline]
    fn charge_to(&self, n: u64, now: Tick) -> Charged {
        self.charge_at(n, now)
    }
}

/// Implements [`Member`] for limiters that grant, but can't undo.
#[cfg(feature = "std")]
macro_rules! cannot_undo {
    ([$($parameters:tt)*] $limiter:ty) => {
        impl<C, $($parameters)*> Member<C> for $limiter {
            #[inline]
            fn clock(&self) -> Option<&C> {
                Some(RateLimiter::clock(self))
            }

            #[inline]
            fn place(&self) -> Place {
                RateLimiter::place(self)
            }

            #[inline]
            fn can_undo(&self) -> bool {
                false
            }

            #[inline(always)]
            fn check(&self, n: u64, now: Tick) -> Result<(), Denied> {
                RateLimiter::check_n_at(self, n, now)
            }

            #[inline(always)]
            fn take(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
                RateLimiter::try_acquire_n_at(self, n, now)
            }

            #[inline]
            fn available_at(&self, now: Tick) -> u64 {
                RateLimiter::available_at(self, now)
            }

            #[inline]
            fn give_back(&self, granted: Granted, now: Tick) -> u64 {
                let _ = (granted, now);
                0
            }

            #[inline]
            fn correct(&self, granted: Granted, actual: u64, now: Tick) -> Settled {
                let _ = (granted, actual, now);
                Settled::charged(0)
            }

            #[inline]
            fn charge_to(&self, n: u64, now: Tick) -> Charged {
                let _ = n;
                Charged::new(0, now)
            }
        }
    };
}
#[cfg(feature = "std")]
cannot_undo!([] crate::multiword::SlidingLog<C>);
#[cfg(feature = "std")]
cannot_undo!([A: crate::algorithm::Lend] crate::leases::limiter::Leases<A, C>);

/// A weight of `n` is inside until the grant is dropped, given back or corrected.
#[cfg(feature = "std")]
impl<C> Member<C> for Concurrency {
    #[inline]
    fn clock(&self) -> Option<&C> {
        None
    }

    #[inline]
    fn place(&self) -> Place {
        Place::of(self)
    }

    #[inline]
    fn check(&self, n: u64, _now: Tick) -> Result<(), Denied> {
        self.check_enter(n)
    }

    #[inline]
    fn take(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        Self::take(self, n, false)?;
        Ok(Granted::new(n, now).with_room(self.room(), core::num::NonZeroU64::MIN))
    }

    #[inline]
    fn available_at(&self, _now: Tick) -> u64 {
        self.room()
    }

    #[inline]
    fn give_back(&self, granted: Granted, _now: Tick) -> u64 {
        Self::leave(self, granted.n());
        granted.n()
    }

    /// The holder leaves. Its weight is no estimate, so nothing is charged.
    #[inline]
    fn correct(&self, granted: Granted, _actual: u64, _now: Tick) -> Settled {
        Self::leave(self, granted.n());
        Settled::charged(0)
    }

    /// A weight can only be taken by a caller that leaves again.
    #[inline]
    fn charge_to(&self, _n: u64, now: Tick) -> Charged {
        Charged::new(0, now)
    }

    #[inline]
    fn leave(&self, granted: &Granted) -> bool {
        Self::leave(self, granted.n());
        true
    }
}
