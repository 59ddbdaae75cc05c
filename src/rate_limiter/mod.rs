//! The traits of limiters. The list of verbs is in `verbs.rs`, what is made from it for each
//! limiter in `forms.rs`.

pub(crate) mod forms;
pub(crate) mod verbs;

use crate::clock::{Clock, Tick};
use crate::outcome::{Denied, Granted, Settled};
#[cfg(feature = "std")]
use std::boxed::Box;
#[cfg(feature = "std")]
use std::sync::Arc;
use verbs::each_group_of_verbs;

/// The trait of a group.
macro_rules! declare_traits {
    (
        {}
        $(#[$about:meta])* [$trait:ident] RateLimiter {$(
            $(#[$meta:meta])*
            fn $verb:ident / $verb_at:ident($($argument:ident: $type:ty),*) -> $answer:ty;
        )*}
    ) => {
        /// Something that grants permits: all limiters that have the verbs of a
        /// [`Limiter`](crate::Limiter), and what is wrapped around them. Keys of a table or map
        /// implement it, too; `Concurrency`, the smooth limiters and what waits do not.
        ///
        /// Limiters have these verbs themselves; the trait is for code that works with any of them.
        ///
        /// ```
        /// use tollgate::clock::Clock;
        /// use tollgate::{RateLimiter, Limiter, Quota, Sharded, SlidingLog};
        ///
        /// fn admitted(limiter: &impl RateLimiter<Clock: Clock>) -> usize {
        ///     (0..100).filter(|_| limiter.try_acquire().is_ok()).count()
        /// }
        ///
        /// # fn main() -> Result<(), tollgate::ConfigError> {
        /// let quota = Quota::per_hour(20);
        /// assert_eq!(admitted(&Limiter::token_bucket(quota)?), 20);
        /// assert_eq!(admitted(&Sharded::token_bucket(quota)?), 20);
        /// assert_eq!(admitted(&SlidingLog::new(quota)?), 20);
        /// # Ok(())
        /// # }
        /// ```
        pub trait RateLimiter {
            /// The clock's type. It need not be a [`Clock`] for the verbs that take a tick.
            type Clock;

            /// The clock.
            fn clock(&self) -> &Self::Clock;

            $(
                $(#[$meta])*
                ///
                /// At this tick.
                fn $verb_at(&self, $($argument: $type,)* now: Tick) -> $answer;
            )*

            /// Takes as many of `n` permits as there are, which may be none.
            #[must_use = "it says how many were there"]
            fn take_up_to(&self, n: u64) -> Granted
            where
                Self::Clock: Clock,
            {
                self.take_up_to_at(n, self.clock().now())
            }

            /// How many permits there are. Takes none.
            fn available(&self) -> u64
            where
                Self::Clock: Clock,
            {
                self.available_at(self.clock().now())
            }

            /// Takes one permit at this tick.
            ///
            /// # Errors
            ///
            /// [`Denied`] if it was not there.
            // Only in optimized builds: elsewhere each copy has thousands of instructions.
            #[cfg_attr(debug_assertions, inline)]
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn try_acquire_at(&self, now: Tick) -> Result<Granted, Denied> {
                self.try_acquire_n_at(1, now)
            }

            /// Takes `n` permits, or none.
            ///
            /// # Errors
            ///
            /// [`Denied`] if they were not all there.
            #[cfg_attr(debug_assertions, inline)]
            #[cfg_attr(not(debug_assertions), inline(always))]
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
            #[cfg_attr(debug_assertions, inline)]
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn try_acquire(&self) -> Result<Granted, Denied>
            where
                Self::Clock: Clock,
            {
                self.try_acquire_n(1)
            }
        }
    };
    (
        {}
        $(#[$about:meta])* [$trait:ident] $name:ident {$(
            $(#[$meta:meta])*
            fn $verb:ident / $verb_at:ident($($argument:ident: $type:ty),*) -> $answer:ty;
        )*}
    ) => {
        $(#[$about])*
        pub trait $name: RateLimiter {$(
            $(#[$meta])*
            ///
            /// At this tick.
            fn $verb_at(&self, $($argument: $type,)* now: Tick) -> $answer;

            $(#[$meta])*
            fn $verb(&self, $($argument: $type),*) -> $answer
            where
                Self::Clock: Clock,
            {
                self.$verb_at($($argument,)* self.clock().now())
            }
        )*}
    };
    ({} [$trait:ident] $verbs:tt) => {};
}
each_group_of_verbs!([declare_traits] {});

/// Limiters that can correct an estimate: all that take permits back and can owe them.
pub trait SettleLimiter: GiveBackLimiter + DebtLimiter {
    /// Corrects an estimate when its cost is known, at this tick. If `actual` is less than what was
    /// granted, the rest comes back as [`undo`](GiveBackLimiter::undo_at) gives it back; if it is
    /// more, the difference is [charged](DebtLimiter::charge_at).
    fn settle_at(&self, granted: Granted, actual: u64, now: Tick) -> Settled {
        Settled::by(
            granted,
            actual,
            |unused| self.undo_at(unused, now),
            |more| self.charge_at(more, now),
        )
    }

    /// The same on the limiter's clock.
    ///
    /// ```
    /// use tollgate::clock::Clock;
    /// use tollgate::traits::SettleLimiter;
    /// use tollgate::{Counted, Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// fn call(limiter: &impl SettleLimiter<Clock: Clock>) -> Result<(), tollgate::Denied> {
    ///     let estimate = limiter.try_acquire_n(800)?;
    ///     let used = 650; // what the call says when it is over
    ///     limiter.settle(estimate, used);
    ///     Ok(())
    /// }
    /// let tokens = Counted::new(Limiter::token_bucket(Quota::per_day(90_000))?);
    /// call(&tokens)?;
    /// assert_eq!(tokens.available(), 89_350);
    /// # Ok(())
    /// # }
    /// ```
    fn settle(&self, granted: Granted, actual: u64) -> Settled
    where
        Self::Clock: Clock,
    {
        self.settle_at(granted, actual, self.clock().now())
    }
}

impl<G: GiveBackLimiter + DebtLimiter + ?Sized> SettleLimiter for G {}

/// A limiter whose permits can be had before they are there, by those who wait.
pub trait ReserveLimiter: GiveBackLimiter + DebtLimiter {
    /// Takes `n` permits at this tick, if they are there, or will be at `latest` or sooner:
    /// [`Granted::due`] says when.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they won't: `retry_after` says by how much they will be too late.
    fn reserve_until_at(&self, n: u64, latest: Tick, now: Tick) -> Result<Granted, Denied>;

    /// How many permits were taken that are not due yet at this tick, a started one counted whole.
    fn waiting_at(&self, now: Tick) -> u64;

    /// Takes `n` permits that are there, in one attempt. `None` means that nothing was taken; use
    /// [`reserve_until_at`](Self::reserve_until_at). Only worth writing where it is quicker.
    #[inline(always)]
    fn reserve_fast_at(&self, n: u64, now: Tick) -> Option<Granted> {
        let _ = (n, now);
        None
    }

    /// Gives back at this tick as much of the last `n` permits of a reservation as possible: what
    /// is kept of it, which may be due sooner now, and how many came back.
    fn cancel_at(&self, granted: Granted, n: u64, now: Tick) -> (Granted, u64);
}

/// The trait of a group, for what points to a limiter.
macro_rules! traits_behind {
    (
        {$pointer:ty}
        $(#[$about:meta])* [$trait:ident] $name:ident {$(
            $(#[$meta:meta])*
            fn $verb:ident / $verb_at:ident($($argument:ident: $type:ty),*) -> $answer:ty;
        )*}
    ) => {
        impl<G: $name + ?Sized> $name for $pointer {
            clock_behind!($name);
            $(
                #[inline]
                fn $verb_at(&self, $($argument: $type,)* now: Tick) -> $answer {
                    (**self).$verb_at($($argument,)* now)
                }
            )*
        }
    };
    ($context:tt [$trait:ident] $verbs:tt) => {};
}

macro_rules! clock_behind {
    (RateLimiter) => {
        type Clock = G::Clock;

        #[inline]
        fn clock(&self) -> &G::Clock {
            (**self).clock()
        }

        #[inline]
        fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied>
        where
            G::Clock: Clock,
        {
            (**self).try_acquire_n(n)
        }
    };
    ($name:ident) => {};
}

macro_rules! reserve_behind {
    ($pointer:ty) => {
        impl<G: ReserveLimiter + ?Sized> ReserveLimiter for $pointer {
            #[inline]
            fn reserve_until_at(&self, n: u64, latest: Tick, now: Tick) -> Result<Granted, Denied> {
                (**self).reserve_until_at(n, latest, now)
            }

            #[inline(always)]
            fn reserve_fast_at(&self, n: u64, now: Tick) -> Option<Granted> {
                (**self).reserve_fast_at(n, now)
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
    };
}

each_group_of_verbs!([traits_behind] {&G});
#[cfg(feature = "std")]
each_group_of_verbs!([traits_behind] {Box<G>});
#[cfg(feature = "std")]
each_group_of_verbs!([traits_behind] {Arc<G>});
reserve_behind!(&G);
#[cfg(feature = "std")]
reserve_behind!(Box<G>);
#[cfg(feature = "std")]
reserve_behind!(Arc<G>);
