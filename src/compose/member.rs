//! What a composition needs from a limit.

#[cfg(feature = "std")]
use std::boxed::Box;
#[cfg(feature = "std")]
use std::sync::Arc;

use super::held::Held;
use crate::clock::Tick;
#[cfg(feature = "std")]
use crate::concurrency::limiter::Concurrency;
#[cfg(feature = "std")]
use crate::outcome::Granted;
use crate::outcome::{Charged, Denied, Settled};
use crate::store::Place;

/// A limit that can be a member of a composition such as [`All`](super::All). `C` is its clock.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use tollgate::clock::SystemClock;
/// use tollgate::compose::{All, Held, Member};
/// use tollgate::store::Place;
/// use tollgate::{Denied, Granted, Limiter, Quota, Tick};
///
/// /// Denies every request during maintenance.
/// struct Maintenance(AtomicBool);
///
/// impl Member<SystemClock> for Maintenance {
///     fn place(&self) -> Place {
///         Place::of(self)
///     }
///     fn check(&self, n: u64, _: Tick) -> Result<(), Denied> {
///         match self.0.load(Ordering::Relaxed) {
///             true => Err(Denied::busy(n)), // denied now, for an unknown time
///             false => Ok(()),
///         }
///     }
///     fn take(&self, n: u64, now: Tick) -> Result<Held, Denied> {
///         self.check(n, now)?;
///         Ok(Granted::new(n, now).into())
///     }
///     fn available_at(&self, now: Tick) -> u64 {
///         self.check(1, now).map_or(0, |()| u64::MAX)
///     }
///     fn give_back(&self, held: Held, _: Tick) -> u64 {
///         held.granted.n()
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let closed = Maintenance(AtomicBool::new(true));
/// let maintenance: Box<dyn Member<SystemClock> + Send + Sync> = Box::new(closed);
/// let rate = Limiter::token_bucket(Quota::per_hour(100))?;
/// let limits = All::new((&rate, maintenance))?;
/// assert_eq!(limits.try_acquire().unwrap_err().member(), Some(1));
/// assert_eq!(rate.available(), 100);
/// # Ok(())
/// # }
/// ```
///
/// Every limiter of this crate that can [settle](crate::Limiter::settle) implements it, and so do
/// `SlidingLog`, `Leases` and `Concurrency`. To pass a type of your own to a composition, wrap it:
/// in an [`OwnLimiter`](super::OwnLimiter) if it is a limiter, or in a `BoxMember` if it implements
/// this trait.
///
/// A wrapper such as [`OrElse`](super::OrElse) needs a single limit, because it returns a single
/// grant:
///
/// ```compile_fail,E0277
/// use tollgate::compose::{All, OrElse};
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), tollgate::error::ComposeError> {
/// let [a, b, c] = [1, 2, 3].map(|n| Limiter::token_bucket(Quota::per_hour(n)));
/// let several = (a?, b?);
/// let limits = All::new(OrElse::new(several, c?))?; // error: `several` is not a single limit
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a single limit",
    note = "only a single limit can be wrapped; a composition, a tuple, a list or a `Named` can't"
)]
pub trait Member<C> {
    /// Returns the clock, or `None` if the limit needs none. The default returns `None`.
    #[inline]
    fn clock(&self) -> Option<&C> {
        None
    }

    /// Passes each clock that the limit reads to `show`. Only a limit made of several others has
    /// more than one.
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

    /// Returns where the state is. Two members that share their state return the same place. A
    /// member whose first field is another limit has its address: use
    /// `Place::of(self).with_key(1)`.
    fn place(&self) -> Place;

    /// Returns whether a grant can be undone. A composition takes at most one member that can't,
    /// and takes from it last.
    #[inline]
    fn can_undo(&self) -> bool {
        true
    }

    /// Returns what [`take`](Self::take) would answer. It takes nothing.
    ///
    /// # Errors
    ///
    /// The [`Denied`] that the request would get.
    fn check(&self, n: u64, now: Tick) -> Result<(), Denied>;

    /// Takes `n` permits at this tick, or none. A member that counts counts a grant here. It counts
    /// no denial: the request may be granted in another attempt, so the composition lets the member
    /// [count](Self::count) the denial that it returns.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they are not all available.
    fn take(&self, n: u64, now: Tick) -> Result<Held, Denied>;

    /// Takes as [`take`](Self::take) does, in one attempt, and keeps the grant in `held`. `None`
    /// says that nothing was taken and that `take` must decide, for example because another thread
    /// was faster. `held` is written only if permits were taken. The default calls `take`.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permits are not all available.
    #[inline(always)]
    fn take_fast(&self, n: u64, now: Tick, held: &mut Option<Held>) -> Option<Result<(), Denied>> {
        match self.take(n, now) {
            Ok(granted) => {
                *held = Some(granted);
                Some(Ok(()))
            }
            Err(denied) => Some(Err(denied)),
        }
    }

    /// Returns how many permits are available at this tick.
    fn available_at(&self, now: Tick) -> u64;

    /// Returns how many permits were left right after a grant. A member whose grants do not record
    /// this, such as `SlidingLog`, returns how many are available at the grant's tick.
    #[inline]
    fn remaining(&self, held: &Held) -> u64 {
        held.granted.remaining()
    }

    /// Gives a grant back, and returns how many permits came back. A member that can't undo returns
    /// 0.
    fn give_back(&self, held: Held, now: Tick) -> u64;

    /// Gives back a grant that the caller never got, because another member denied the request. A
    /// member that counts has counted the grant, and counts these permits as returned. Limiters do
    /// what
    /// [`roll_back_at`](crate::traits::GiveBackLimiter::roll_back_at) does. The default is
    /// [`give_back`](Self::give_back).
    #[inline]
    fn roll_back(&self, held: Held, now: Tick) -> u64 {
        self.give_back(held, now)
    }

    /// Corrects an estimate, as [`Limiter::settle`](crate::Limiter::settle) does. The default is
    /// for a member that can't settle: it keeps the grant as it is, and returns
    /// [`Settled::default`].
    #[inline]
    fn correct(&self, held: Held, actual: u64, now: Tick) -> Settled {
        let _ = (held, actual, now);
        Settled::default()
    }

    /// Takes `n` permits unconditionally. The default is for a member that can't go into debt: it
    /// takes none.
    #[inline]
    fn charge_to(&self, n: u64, now: Tick) -> Charged {
        let _ = n;
        Charged::new(0, now)
    }

    /// Takes `n` permits ahead of time, or none: the state changes as if they were taken at the
    /// later tick `due`. A member that counts counts a grant here too. Only
    /// [`ReserveMembers`](super::ReserveMembers) do this. The default denies.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they are not all available at that tick.
    #[inline]
    fn take_as_of(&self, n: u64, due: Tick, now: Tick) -> Result<Held, Denied> {
        let _ = (due, now);
        Err(Denied::busy(n))
    }

    /// Gives back what [`take_as_of`](Self::take_as_of) took, if no other caller has taken permits
    /// since. Returns how many permits came back.
    #[inline]
    fn cancel_as_of(&self, held: Held, now: Tick) -> u64 {
        let _ = (held, now);
        0
    }

    /// Returns whether the holder of a grant [leaves](Self::leave) when it is done, as with a
    /// `Concurrency`.
    #[inline]
    fn leaves(&self) -> bool {
        false
    }

    /// Ends the use of a grant whose holder is done, and returns whether the grant is over. Only a
    /// `Concurrency` does anything here: the holder leaves. The composition may skip the call if
    /// [`leaves`](Self::leaves) returns `false`.
    #[inline]
    fn leave(&self, held: &Held) -> bool {
        let _ = held;
        false
    }

    /// Counts an answer that [`take`](Self::take) did not count: that this member denied a request
    /// for `n` permits, or, if `granted`, that a caller who waited in a `Line`
    /// entered it with this weight. The default counts nothing.
    #[inline]
    fn count(&self, granted: bool, n: u64) {
        let _ = (granted, n);
    }

    /// Returns this limit if it is a `Concurrency`. A request that waits in a
    /// [`Line`](super::Line) then enters it instead of taking from this member, and ends with
    /// [`leave`](Self::leave).
    #[cfg(feature = "std")]
    #[inline]
    fn concurrency<'a>(&'a self) -> Option<&'a Concurrency>
    where
        C: 'a,
    {
        None
    }
}

/// Implements methods of [`Member`] by those of the limit inside: `structure` what the limit is,
/// `answers` what it would grant, `taking` what it grants, and `settling` what becomes of its
/// grants.
macro_rules! by_inner {
    (structure $self:ident => $inner:expr) => {
        $crate::compose::member::by_inner! { $self => $inner;
            #[inline] fn clock() -> Option<&C>;
            #[inline] fn each_clock(show: &mut dyn FnMut(&C)) -> ();
            #[inline] fn depth() -> u32;
            #[inline] fn can_undo() -> bool;
            #[inline] fn leaves() -> bool;
            #[inline] fn leave(held: &Held) -> bool;
        }
        #[cfg(feature = "std")]
        #[inline]
        fn concurrency<'a>(&'a $self) -> Option<&'a $crate::concurrency::limiter::Concurrency>
        where
            C: 'a,
        {
            Member::<C>::concurrency($inner)
        }
    };
    (answers $self:ident => $inner:expr) => {
        $crate::compose::member::by_inner! { $self => $inner;
            #[inline] fn place() -> $crate::store::Place;
            #[inline(always)] fn check(n: u64, now: Tick) -> Result<(), Denied>;
            #[inline] fn available_at(now: Tick) -> u64;
            #[inline] fn remaining(held: &Held) -> u64;
        }
    };
    (taking $self:ident => $inner:expr) => {
        $crate::compose::member::by_inner! { $self => $inner;
            #[inline(always)] fn take(n: u64, now: Tick) -> Result<Held, Denied>;
            #[inline(always)]
            fn take_fast(
                n: u64,
                now: Tick,
                held: &mut Option<Held>
            ) -> Option<Result<(), Denied>>;
            #[inline] fn count(granted: bool, n: u64) -> ();
        }
    };
    (settling $self:ident => $inner:expr) => {
        $crate::compose::member::by_inner! { $self => $inner;
            #[inline] fn give_back(held: Held, now: Tick) -> u64;
            #[inline] fn roll_back(held: Held, now: Tick) -> u64;
            #[inline] fn correct(held: Held, actual: u64, now: Tick) -> Settled;
            #[inline] fn charge_to(n: u64, now: Tick) -> Charged;
            #[inline] fn take_as_of(n: u64, due: Tick, now: Tick) -> Result<Held, Denied>;
            #[inline] fn cancel_as_of(held: Held, now: Tick) -> u64;
        }
    };
    ($self:ident => $inner:expr; $(
        $(#[$meta:meta])* fn $method:ident($($argument:ident: $type:ty),*) -> $answer:ty;
    )*) => {$(
        $(#[$meta])*
        fn $method(&$self $(, $argument: $type)*) -> $answer {
            Member::<C>::$method($inner $(, $argument)*)
        }
    )*};
}
pub(super) use by_inner;

/// Implements [`Member`] for a pointer to a limit.
macro_rules! behind {
    ($pointer:ty) => {
        impl<C, M: Member<C> + ?Sized> Member<C> for $pointer {
            by_inner!(structure self => &**self);
            by_inner!(answers self => &**self);
            by_inner!(taking self => &**self);
            by_inner!(settling self => &**self);
        }
    };
}

behind!(&M);
#[cfg(feature = "std")]
behind!(Box<M>);
#[cfg(feature = "std")]
behind!(Arc<M>);

/// Defines what members have in common that a holder enters and leaves.
#[cfg(feature = "std")]
macro_rules! holder_leaves {
    () => {
        #[inline]
        fn available_at(&self, _now: Tick) -> u64 {
            self.free()
        }

        /// The holder leaves. Its weight is no estimate, so nothing is charged.
        #[inline]
        fn correct(&self, held: Held, _actual: u64, _now: Tick) -> Settled {
            Self::leave(self, held.granted.n());
            Settled::charged(0)
        }

        #[inline]
        fn leaves(&self) -> bool {
            true
        }

        #[inline]
        fn leave(&self, held: &Held) -> bool {
            Self::leave(self, held.granted.n());
            true
        }
    };
}
#[cfg(feature = "keyed")]
pub(super) use holder_leaves;

/// A weight of `n` is inside until the grant is dropped, given back or corrected.
#[cfg(feature = "std")]
impl<C> Member<C> for Concurrency {
    #[inline]
    fn place(&self) -> Place {
        Place::of(self)
    }

    #[inline]
    fn check(&self, n: u64, _now: Tick) -> Result<(), Denied> {
        self.check_enter(n)
    }

    #[inline]
    fn take(&self, n: u64, now: Tick) -> Result<Held, Denied> {
        Self::take(self, n, false)?;
        Self::count(self, true, n);
        Ok(Granted::new(n, now)
            .with_remaining(self.free(), core::num::NonZeroU64::MIN)
            .into())
    }

    #[inline]
    fn give_back(&self, held: Held, _now: Tick) -> u64 {
        let n = held.granted.n();
        Self::leave(self, n);
        self.count_returned(n);
        n
    }

    #[inline]
    fn count(&self, granted: bool, n: u64) {
        Self::count(self, granted, n);
    }

    holder_leaves!();

    #[inline]
    fn concurrency<'a>(&'a self) -> Option<&'a Concurrency>
    where
        C: 'a,
    {
        Some(self)
    }
}
