//! Which limits can be members.

#[cfg(feature = "keyed")]
use core::num::NonZeroU64;
#[cfg(feature = "keyed")]
use core::ops::Deref;
#[cfg(feature = "keyed")]
use std::sync::Arc;

use super::held::Held;
use super::member::Member;
use super::members::{ReserveMembers, one_member};
use crate::algorithm::{Debt, Gcra, GiveBack, TokenBucket};
#[cfg(feature = "std")]
use crate::algorithm::{Lend, Split};
use crate::clock::Tick;
#[cfg(feature = "keyed")]
use crate::keyed::{ConcurrencyKey, Key, Keyed, KeyedConcurrency};
use crate::limiter::Limiter;
#[cfg(feature = "keyed")]
use crate::outcome::Granted;
use crate::outcome::{Charged, Denied, Settled};
use crate::store::{AtomicWord, Place, Store};
use crate::sync::inject_fault;
use crate::traits::{DebtLimiter, GiveBackLimiter, SettleLimiter, TryAcquire};

/// Implements [`Member`] for a limiter: what it grants, and `$more`.
macro_rules! grants {
    ([$($parameters:tt)*] $clock:ty, $limiter:ty, $self:ident => $inner:expr, {$($more:tt)*}) => {
        impl<$($parameters)*> Member<$clock> for $limiter {
            #[inline]
            fn clock(&$self) -> Option<&$clock> {
                Some(TryAcquire::clock($inner))
            }

            #[inline(always)]
            fn check(&$self, n: u64, now: Tick) -> Result<(), Denied> {
                TryAcquire::check_n_at($inner, n, now)
            }

            #[inline(always)]
            fn take(&$self, n: u64, now: Tick) -> Result<Held, Denied> {
                TryAcquire::try_acquire_n_at($inner, n, now).map(Held::from)
            }

            #[inline]
            fn available_at(&$self, now: Tick) -> u64 {
                TryAcquire::available_at($inner, now)
            }

            $($more)*
        }
    };
}

/// Implements [`Member`] for a limiter that can settle. `by_view`: its view makes single attempts,
/// and takes as of a later tick.
macro_rules! settles {
    (by_view [$($parameters:tt)*] $clock:ty, $limiter:ty) => {
        settles!([$($parameters)*] $clock, $limiter, self => self, {
            #[inline]
            fn place(&self) -> Place {
                let place = Store::place(&self.at(Tick::ZERO).store);
                place.unwrap_or_else(|| Place::of(self))
            }

            #[inline(always)]
            fn take_fast(
                &self,
                n: u64,
                now: Tick,
                held: &mut Option<Held>,
            ) -> Option<Result<(), Denied>> {
                match self.at(now).try_acquire_fast(n)? {
                    Ok(granted) => {
                        *held = Some(granted.into());
                        Some(Ok(()))
                    }
                    Err(denied) => Some(Err(denied)),
                }
            }

            fn take_as_of(&self, n: u64, due: Tick, now: Tick) -> Result<Held, Denied> {
                self.at(now).take_as_of(n, due).map(Held::from)
            }

            fn cancel_as_of(&self, held: Held, now: Tick) -> u64 {
                self.at(now).cancel_as_of(held.granted)
            }
        });
    };
    ([$($parameters:tt)*] $clock:ty, $limiter:ty) => {
        settles!([$($parameters)*] $clock, $limiter, self => self, {
            #[inline]
            fn place(&self) -> Place {
                Place::of(self)
            }
        });
    };
    ([$($parameters:tt)*] $clock:ty, $limiter:ty, $self:ident => $inner:expr, {$($more:tt)*}) => {
        grants!([$($parameters)*] $clock, $limiter, $self => $inner, {
            #[inline]
            fn give_back(&$self, held: Held, now: Tick) -> u64 {
                GiveBackLimiter::undo_at($inner, held.granted, now)
            }

            #[inline]
            fn roll_back(&$self, held: Held, now: Tick) -> u64 {
                let refunds = inject_fault!(RefundsInstead); // FAULT
                match refunds {
                    true => GiveBackLimiter::refund_at($inner, held.granted.n(), now),
                    false => GiveBackLimiter::roll_back_at($inner, held.granted, now),
                }
            }

            #[inline]
            fn correct(&$self, held: Held, actual: u64, now: Tick) -> Settled {
                SettleLimiter::settle_at($inner, held.granted, actual, now)
            }

            #[inline]
            fn charge_to(&$self, n: u64, now: Tick) -> Charged {
                DebtLimiter::charge_at($inner, n, now)
            }

            $($more)*
        });

        one_member!(owes [$($parameters)*] $clock, $limiter);
    };
}

/// Implements [`Member`] for a limiter that grants, but can't undo.
#[cfg(feature = "std")]
macro_rules! cannot_undo {
    ([$($parameters:tt)*] $limiter:ty, {$($more:tt)*}) => {
        grants!([C, $($parameters)*] C, $limiter, self => self, {
            #[inline]
            fn place(&self) -> Place {
                Place::of(self)
            }

            #[inline]
            fn can_undo(&self) -> bool {
                false
            }

            #[inline]
            fn give_back(&self, held: Held, now: Tick) -> u64 {
                let _ = (held, now);
                0
            }

            $($more)*
        });

        one_member!([C, $($parameters)*] C, $limiter);
    };
}

settles!(by_view [A: GiveBack + Debt, C, P: AtomicWord] C, Limiter<A, C, P>);

#[cfg(feature = "wide")]
settles!(by_view [A: GiveBack + Debt + crate::algorithm::Settings, C] C, crate::adjustable::limiter::Adjustable<A, C>);
#[cfg(feature = "std")]
settles!([A: Split + Debt, C] C, crate::sharded::limiter::Sharded<A, C>);
#[cfg(feature = "std")]
settles!([C] C, crate::multiword::slotted::SlottedWindow<C>);
#[cfg(feature = "keyed")]
settles!(by_view [A: GiveBack + Debt, C, S] C, Key<&Keyed<A, C, S>>);
#[cfg(feature = "keyed")]
settles!(by_view [A: GiveBack + Debt, C, S] C, Key<Arc<Keyed<A, C, S>>>);

macro_rules! reserves {
    ($($algorithm:ty)*) => {$(
        impl<C, P: AtomicWord> ReserveMembers<C> for Limiter<$algorithm, C, P> {}

        #[cfg(feature = "wide")]
        impl<C> ReserveMembers<C> for crate::adjustable::limiter::Adjustable<$algorithm, C> {}

        #[cfg(feature = "keyed")]
        impl<C, S> ReserveMembers<C> for Key<&Keyed<$algorithm, C, S>> {}

        #[cfg(feature = "keyed")]
        impl<C, S> ReserveMembers<C> for Key<Arc<Keyed<$algorithm, C, S>>> {}
    )*};
}

reserves!(TokenBucket Gcra);

#[cfg(feature = "std")]
one_member!([C] C, crate::concurrency::limiter::Concurrency);

#[cfg(feature = "keyed")]
one_member!([C, S, R: Deref<Target = KeyedConcurrency<S>>] C, ConcurrencyKey<R>);

/// A weight of `n` is inside until the grant is dropped, given back or corrected.
#[cfg(feature = "keyed")]
impl<C, S, R: Deref<Target = KeyedConcurrency<S>>> Member<C> for ConcurrencyKey<R> {
    #[inline]
    fn place(&self) -> Place {
        Store::place(&self.key()).unwrap_or_else(|| Place::of(self))
    }

    #[inline]
    fn check(&self, n: u64, _now: Tick) -> Result<(), Denied> {
        self.key().at(Tick::ZERO).check_n(n)
    }

    #[inline]
    fn take(&self, n: u64, now: Tick) -> Result<Held, Denied> {
        self.enter(n)?;
        let granted = Granted::new(n, now);
        Ok(granted.with_remaining(self.free(), NonZeroU64::MIN).into())
    }

    #[inline]
    fn give_back(&self, held: Held, _now: Tick) -> u64 {
        Self::leave(self, held.granted.n());
        held.granted.n()
    }

    super::member::holder_leaves!();
}

#[cfg(feature = "std")]
cannot_undo!([] crate::multiword::log::SlidingLog<C>, {
    #[inline]
    fn remaining(&self, held: &Held) -> u64 {
        self.available_at(held.granted.at())
    }
});
#[cfg(feature = "std")]
cannot_undo!([A: Lend] crate::leases::limiter::Leases<A, C>, {});

/// A limiter of your own as a member: any [`SettleLimiter`](crate::traits::SettleLimiter). The
/// limiters of this crate are members themselves.
///
/// A composition recognizes a limit that other compositions share by the place of this value. So
/// share this value, for example by reference, and not the limiter in it. To count it, wrap it in a
/// `Counted`. A `Counted` inside it misses the denials that a composition finds before it takes.
///
/// ```
/// use tollgate::compose::{All, OwnLimiter};
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let my_limiter = Limiter::token_bucket(Quota::per_hour(10))?;
/// let service = Limiter::token_bucket(Quota::per_hour(1000))?;
/// let limits = All::new((OwnLimiter(my_limiter), &service))?;
/// limits.try_acquire_n(4)?.settle([2, 2])?;
/// assert_eq!(service.available(), 998);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct OwnLimiter<L>(pub L);

settles!([L: SettleLimiter] L::Clock, OwnLimiter<L>, self => &self.0, {
    #[inline]
    fn place(&self) -> Place {
        // Not the place of a limiter in the first field, which has the same address.
        Place::of(self).with_key(u64::MAX)
    }
});
