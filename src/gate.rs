//! What all limiters have in common.

use std::boxed::Box;
use std::sync::Arc;

#[cfg(feature = "wide")]
use crate::adjustable::Adjustable;
use crate::algorithm::Algorithm;
use crate::algorithm::Debt;
use crate::algorithm::GiveBack;
use crate::algorithm::Lend;
use crate::algorithm::Reserve;
#[cfg(feature = "wide")]
use crate::algorithm::Settings;
use crate::algorithm::Split;
use crate::clock::{Clock, Tick};
use crate::limiter::Limiter;
use crate::outcome::{Charged, Denied, Granted};
use crate::spread::{Leases, Sharded};
use crate::window::{SlidingLog, SlottedWindow};

/// Something that grants permits: each of this crate's limiters, and what is wrapped around them.
///
/// Limiters have these verbs themselves; the trait is for code that works with any of them.
///
/// ```
/// use tollgate::{Clock, Gate, Limiter, Quota, Sharded, SlidingLog, TokenBucket};
///
/// fn admitted(gate: &impl Gate<Clock: Clock>) -> usize {
///     (0..100).filter(|_| gate.try_acquire().is_ok()).count()
/// }
///
/// # fn main() -> Result<(), tollgate::ConfigError> {
/// let quota = Quota::per_hour(20);
/// assert_eq!(admitted(&Limiter::token_bucket(quota)?), 20);
/// assert_eq!(admitted(&Sharded::new(TokenBucket::new(quota)?)?), 20);
/// assert_eq!(admitted(&SlidingLog::new(quota)?), 20);
/// # Ok(())
/// # }
/// ```
pub trait Gate {
    /// The clock, which those that are always told the time need not be able to read.
    type Clock;

    /// The clock.
    fn clock(&self) -> &Self::Clock;

    /// Takes `n` permits, or none, at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there.
    fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied>;

    /// Takes as many of `n` permits as there are at this tick, which may be none.
    #[must_use = "it says how many were there"]
    fn take_up_to_at(&self, n: u64, now: Tick) -> Granted;

    /// How many permits there are at this tick. Takes none.
    fn available_at(&self, now: Tick) -> u64;

    /// Takes one permit at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if it was not there.
    #[inline]
    fn try_acquire_at(&self, now: Tick) -> Result<Granted, Denied> {
        self.try_acquire_n_at(1, now)
    }

    /// Takes `n` permits, or none.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there.
    #[inline]
    fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied>
    where
        Self::Clock: Clock,
    {
        self.try_acquire_n_at(n, self.clock().now())
    }

    /// Takes one permit.
    ///
    /// # Errors
    ///
    /// [`Denied`] if it was not there.
    #[inline]
    fn try_acquire(&self) -> Result<Granted, Denied>
    where
        Self::Clock: Clock,
    {
        self.try_acquire_n(1)
    }
}

/// A limiter that takes permits back.
pub trait GiveBackGate: Gate {
    /// Gives back this grant at this tick, as far as it can be; how many permits came back.
    fn undo_at(&self, granted: Granted, now: Tick) -> u64;

    /// Gives back `n` permits at this tick, as far as they can be; how many came back.
    fn refund_at(&self, n: u64, now: Tick) -> u64;
}

/// A limiter that can owe permits.
pub trait DebtGate: Gate {
    /// Takes `n` permits at this tick, whether they are there or not.
    fn charge_at(&self, n: u64, now: Tick) -> Charged;
}

/// A limiter whose permits can be had before they are there, by those who wait.
pub trait ReserveGate: GiveBackGate + DebtGate {
    /// Takes `n` permits at this tick, if they are there, or will be at `latest` or sooner: [`Granted::due`] says
    /// when.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they won't: `retry_after` says by how much they will be too late.
    fn reserve_until_at(&self, n: u64, latest: Tick, now: Tick) -> Result<Granted, Denied>;

    /// How many permits were taken that are not due yet at this tick, a started one counted whole.
    fn waiting_at(&self, now: Tick) -> u64;

    /// Takes `n` permits that are there, in one turn, for the sake of those who need not wait: `None` may mean
    /// anything but that they were taken. Leave it as it is where that would be no quicker.
    #[inline(always)]
    fn reserve_once_at(&self, n: u64, now: Tick) -> Option<Granted> {
        let _ = (n, now);
        None
    }

    /// Gives back at this tick as much of the last `n` permits of a reservation as can be: what is kept of it,
    /// which may be due sooner now, and how many came back.
    fn cancel_at(&self, granted: Granted, n: u64, now: Tick) -> (Granted, u64);
}

/// Implements what the algorithm allows by a view's verbs. Of a gate of more than an algorithm and a clock, what
/// else there is to know of the algorithm, and the other parameters, come before it.
macro_rules! gate_of_views {
    ([$($bound:tt)*] [$($parameters:tt)*] $gate:ty) => {
        impl<A: Algorithm $($bound)*, $($parameters)*> Gate for $gate {
            type Clock = C;

            #[inline]
            fn clock(&self) -> &C {
                self.clock()
            }

            #[inline]
            fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
                self.at(now).try_acquire_n(n)
            }

            #[inline]
            fn take_up_to_at(&self, n: u64, now: Tick) -> Granted {
                self.at(now).take_up_to(n)
            }

            #[inline]
            fn available_at(&self, now: Tick) -> u64 {
                self.at(now).available()
            }
        }

        impl<A: GiveBack $($bound)*, $($parameters)*> GiveBackGate for $gate {
            #[inline]
            fn undo_at(&self, granted: Granted, now: Tick) -> u64 {
                self.at(now).undo(granted)
            }

            #[inline]
            fn refund_at(&self, n: u64, now: Tick) -> u64 {
                self.at(now).refund(n)
            }
        }

        impl<A: Debt $($bound)*, $($parameters)*> DebtGate for $gate {
            #[inline]
            fn charge_at(&self, n: u64, now: Tick) -> Charged {
                self.at(now).charge(n)
            }
        }

        impl<A: Reserve $($bound)*, $($parameters)*> ReserveGate for $gate {
            #[inline(always)]
            fn reserve_until_at(&self, n: u64, latest: Tick, now: Tick) -> Result<Granted, Denied> {
                self.at(now).reserve_until(n, latest)
            }

            #[inline(always)]
            fn reserve_once_at(&self, n: u64, now: Tick) -> Option<Granted> {
                self.at(now).reserve_once(n)
            }

            #[inline]
            fn waiting_at(&self, now: Tick) -> u64 {
                self.at(now).waiting()
            }

            #[inline]
            fn cancel_at(&self, granted: Granted, n: u64, now: Tick) -> (Granted, u64) {
                self.at(now).cancel(granted, n)
            }
        }
    };
    ($gate:ty $(, $bound:ident)?) => {
        gate_of_views!([$(+ $bound)?] [C] $gate);
    };
}
#[cfg(any(feature = "keyed", feature = "map"))]
pub(crate) use gate_of_views;

gate_of_views!(Limiter<A, C>);
#[cfg(feature = "wide")]
gate_of_views!(Adjustable<A, C>, Settings);

impl<A: Split, C> Gate for Sharded<A, C> {
    type Clock = C;

    #[inline]
    fn clock(&self) -> &C {
        self.clock()
    }

    #[inline]
    fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.at(now).try_acquire_n(n)
    }

    /// It may read the clock again: see [`Sharded`].
    #[inline]
    fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied>
    where
        C: Clock,
    {
        self.try_acquire_n(n)
    }

    #[inline]
    fn take_up_to_at(&self, n: u64, now: Tick) -> Granted {
        self.at(now).take_up_to(n)
    }

    #[inline]
    fn available_at(&self, now: Tick) -> u64 {
        self.at(now).available()
    }
}

impl<A: Split, C> GiveBackGate for Sharded<A, C> {
    #[inline]
    fn undo_at(&self, granted: Granted, now: Tick) -> u64 {
        self.at(now).undo(granted)
    }

    #[inline]
    fn refund_at(&self, n: u64, now: Tick) -> u64 {
        self.at(now).refund(n)
    }
}

impl<A: Split + Debt, C> DebtGate for Sharded<A, C> {
    #[inline]
    fn charge_at(&self, n: u64, now: Tick) -> Charged {
        self.at(now).charge(n)
    }
}

/// Without a lease.
impl<A: Lend, C> Gate for Leases<A, C> {
    type Clock = C;

    #[inline]
    fn clock(&self) -> &C {
        self.limiter().clock()
    }

    #[inline]
    fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.limiter().at(now).try_acquire_n(n)
    }

    #[inline]
    fn take_up_to_at(&self, n: u64, now: Tick) -> Granted {
        self.limiter().at(now).take_up_to(n)
    }

    #[inline]
    fn available_at(&self, now: Tick) -> u64 {
        self.limiter().at(now).available()
    }
}

/// Implements [`Gate`] by the inherent verbs of the same names.
macro_rules! gate_of_its_own {
    ($gate:ident) => {
        impl<C> Gate for $gate<C> {
            type Clock = C;

            #[inline]
            fn clock(&self) -> &C {
                self.clock()
            }

            #[inline]
            fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
                self.try_acquire_n_at(n, now)
            }

            #[inline]
            fn take_up_to_at(&self, n: u64, now: Tick) -> Granted {
                self.take_up_to_at(n, now)
            }

            #[inline]
            fn available_at(&self, now: Tick) -> u64 {
                self.available_at(now)
            }
        }
    };
}

gate_of_its_own!(SlottedWindow);
gate_of_its_own!(SlidingLog);

impl<C> GiveBackGate for SlottedWindow<C> {
    #[inline]
    fn undo_at(&self, granted: Granted, now: Tick) -> u64 {
        self.undo_at(granted, now)
    }

    #[inline]
    fn refund_at(&self, n: u64, now: Tick) -> u64 {
        self.refund_at(n, now)
    }
}

impl<C> DebtGate for SlottedWindow<C> {
    #[inline]
    fn charge_at(&self, n: u64, now: Tick) -> Charged {
        self.charge_at(n, now)
    }
}

/// Implements the traits for what points to a limiter.
macro_rules! gate_behind {
    ($pointer:ty) => {
        impl<G: Gate + ?Sized> Gate for $pointer {
            type Clock = G::Clock;

            #[inline]
            fn clock(&self) -> &G::Clock {
                (**self).clock()
            }

            #[inline]
            fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
                (**self).try_acquire_n_at(n, now)
            }

            #[inline]
            fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied>
            where
                G::Clock: Clock,
            {
                (**self).try_acquire_n(n)
            }

            #[inline]
            fn take_up_to_at(&self, n: u64, now: Tick) -> Granted {
                (**self).take_up_to_at(n, now)
            }

            #[inline]
            fn available_at(&self, now: Tick) -> u64 {
                (**self).available_at(now)
            }
        }

        impl<G: GiveBackGate + ?Sized> GiveBackGate for $pointer {
            #[inline]
            fn undo_at(&self, granted: Granted, now: Tick) -> u64 {
                (**self).undo_at(granted, now)
            }

            #[inline]
            fn refund_at(&self, n: u64, now: Tick) -> u64 {
                (**self).refund_at(n, now)
            }
        }

        impl<G: ReserveGate + ?Sized> ReserveGate for $pointer {
            #[inline]
            fn reserve_until_at(&self, n: u64, latest: Tick, now: Tick) -> Result<Granted, Denied> {
                (**self).reserve_until_at(n, latest, now)
            }

            #[inline(always)]
            fn reserve_once_at(&self, n: u64, now: Tick) -> Option<Granted> {
                (**self).reserve_once_at(n, now)
            }

            #[inline]
            fn waiting_at(&self, now: Tick) -> u64 {
                (**self).waiting_at(now)
            }

            #[inline]
            fn cancel_at(&self, granted: Granted, n: u64, now: Tick) -> (Granted, u64) {
                (**self).cancel_at(granted, n, now)
            }
        }

        impl<G: DebtGate + ?Sized> DebtGate for $pointer {
            #[inline]
            fn charge_at(&self, n: u64, now: Tick) -> Charged {
                (**self).charge_at(n, now)
            }
        }
    };
}

gate_behind!(&G);
gate_behind!(Box<G>);
gate_behind!(Arc<G>);
