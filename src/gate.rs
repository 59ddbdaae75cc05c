//! What all limiters have in common: the one list of verbs, from which each limiter's verbs on its
//! own clock are made, and the traits.

use crate::clock::{Clock, Tick};
use crate::outcome::{Denied, Granted};
#[cfg(feature = "std")]
use std::boxed::Box;
#[cfg(feature = "std")]
use std::sync::Arc;

/// The list of verbs, in groups: what the algorithm must be able to do, the trait of limiters that
/// has the verbs, each verb's name and its name with a tick. Invokes `$then` with each group.
macro_rules! each_group_of_verbs {
    ([$($then:tt)+] $context:tt) => {
        $($then)+! { $context [Algorithm] Gate {
            /// Takes `n` permits, or none. `n` = 0 succeeds exactly when the limiter is not in
            /// debt, and changes nothing.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if they were not all there: then nothing was taken.
            fn try_acquire_n / try_acquire_n_at(n: u64) -> Result<$crate::outcome::Granted, $crate::outcome::Denied>;
            /// Takes as many of `n` permits as there are, which may be none.
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::ConfigError> {
            /// let gate = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
            /// assert_eq!(gate.take_up_to(3).n(), 3);
            /// assert_eq!(gate.take_up_to(3).n(), 2);
            /// assert_eq!(gate.take_up_to(3).n(), 0);
            /// # Ok(())
            /// # }
            /// ```
            #[must_use = "it says how many were there"]
            fn take_up_to / take_up_to_at(n: u64) -> $crate::outcome::Granted;
            /// How many permits there are. Takes none.
            fn available / available_at() -> u64;
        }}
        $($then)+! { $context [Algorithm] {
            /// Whether the limiter can no longer be told from a fresh one.
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::ConfigError> {
            /// let gate = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
            /// assert!(gate.is_idle());
            /// gate.charge(1);
            /// assert!(!gate.is_idle());
            /// # Ok(())
            /// # }
            /// ```
            fn is_idle() -> bool;
        }}
        $($then)+! { $context [Forecast] {
            /// How long until `n` permits are there, if nobody takes any; `None` if never. Takes
            /// none.
            ///
            /// ```
            /// use std::time::Duration;
            /// # fn main() -> Result<(), tollgate::ConfigError> {
            /// let gate = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
            /// assert_eq!(gate.time_until(5), Some(Duration::ZERO));
            /// assert_eq!(gate.time_until(6), None);
            /// # Ok(())
            /// # }
            /// ```
            fn time_until(n: u64) -> Option<core::time::Duration>;
        }}
        $($then)+! { $context [Gauge] {
            /// How many permits are counted: what is in the bucket, or in the window. Takes none.
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::ConfigError> {
            /// let window = tollgate::FixedWindow::new(tollgate::Quota::per_day(5))?;
            /// let gate = tollgate::Limiter::new(window);
            /// gate.charge(7);
            /// assert_eq!(gate.level().ceil(), 7);
            /// # Ok(())
            /// # }
            /// ```
            fn level() -> $crate::algorithm::Level;
        }}
        $($then)+! { $context
            /// A limiter that takes permits back.
            [GiveBack] GiveBackGate {
            /// Gives back exactly this grant, or as much of it as can be given without admitting
            /// more than was promised: what the clock has refilled of it already does not come back
            /// a second time. Returns how many permits came back, a part of one counted whole.
            ///
            /// The bound holds net of what came back, counted when it came back: a bucket is never
            /// more than full, whatever is undone in whatever order. Give a grant back to the
            /// limiter that made it. A reset has given back everything that was granted before it.
            ///
            /// ```
            /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// let gate = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
            /// let granted = gate.try_acquire_n(3)?;
            /// assert_eq!(gate.undo(granted), 3);
            /// assert_eq!(gate.available(), 5);
            /// # Ok(())
            /// # }
            /// ```
            fn undo / undo_at(granted: $crate::outcome::Granted) -> u64;
            /// Gives back `n` permits, never above a full bucket. Returns how many came back, a
            /// part of one counted whole.
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::ConfigError> {
            /// let gate = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
            /// gate.charge(2);
            /// assert_eq!(gate.refund(100), 2);
            /// assert_eq!(gate.refund(1), 0);
            /// # Ok(())
            /// # }
            /// ```
            fn refund / refund_at(n: u64) -> u64;
        }}
        $($then)+! { $context
            /// A limiter that can owe permits.
            [Debt] DebtGate {
            /// Takes `n` permits whether they are there or not, into debt: for costs that are known
            /// only afterwards, such as bytes sent or tokens a language model produced. While the
            /// limiter is in debt nothing is granted.
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::ConfigError> {
            /// let gate = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
            /// assert_eq!(gate.charge(7).debt(), 2);
            /// assert!(gate.try_acquire().is_err());
            /// # Ok(())
            /// # }
            /// ```
            fn charge / charge_at(n: u64) -> $crate::outcome::Charged;
        }}
    };
}
pub(crate) use each_group_of_verbs;

/// Implements the verbs of a limiter with an algorithm `A` and a clock `C`, by its `at(now)` and
/// its `clock()`. Further bounds of the algorithm, and the other parameters, come before its type.
macro_rules! limiter_verbs {
    ([$($bound:tt)*] [$($parameters:tt)*] $limiter:ty) => {
        impl<A: $crate::algorithm::Algorithm $($bound)*, C, $($parameters)*> $limiter {
            /// Takes one permit at this tick.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if it was not there.
            #[inline(always)]
            pub fn try_acquire_at(
                &self,
                now: $crate::clock::Tick,
            ) -> Result<$crate::outcome::Granted, $crate::outcome::Denied> {
                self.at(now).try_acquire()
            }

            /// Takes `n` permits, or none, at this tick.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if they were not all there.
            #[inline(always)]
            pub fn try_acquire_n_at(
                &self,
                n: u64,
                now: $crate::clock::Tick,
            ) -> Result<$crate::outcome::Granted, $crate::outcome::Denied> {
                self.at(now).try_acquire_n(n)
            }

            /// Forgets everything: the limiter is fresh and full again. This allows one burst more,
            /// and callers that wait for reserved permits still go when they were told.
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::ConfigError> {
            /// let gate = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
            /// gate.charge(1_000_000);
            /// gate.reset();
            /// assert_eq!(gate.available(), 5);
            /// # Ok(())
            /// # }
            /// ```
            #[inline]
            pub fn reset(&self) {
                // It needs no tick: a fresh word is fresh at all times.
                self.at($crate::clock::Tick::ZERO).reset();
            }
        }

        impl<A: $crate::algorithm::Algorithm $($bound)*, C: $crate::clock::Clock, $($parameters)*>
            $limiter
        {
            /// What the limiter's clock says.
            #[inline]
            pub fn now(&self) -> $crate::clock::Tick {
                $crate::clock::Clock::now(self.clock())
            }

            /// Takes one permit.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if it was not there: then nothing was taken.
            #[inline]
            pub fn try_acquire(&self) -> Result<$crate::outcome::Granted, $crate::outcome::Denied> {
                self.at(self.now()).try_acquire()
            }
        }

        $crate::gate::each_group_of_verbs!(
            [$crate::gate::clock_forms] {[$($bound)*] [$($parameters)*] $limiter}
        );
        $crate::gate::each_group_of_verbs!(
            [$crate::gate::traits_by_views] {[$($bound)*] [$($parameters)*] $limiter}
        );
        $crate::gate::reserve_by_views!([$($bound)*] [$($parameters)*] $limiter);
    };
}
pub(crate) use limiter_verbs;

/// The verbs of a group on the limiter's clock.
macro_rules! clock_forms {
    (
        {[$($bound:tt)*] [$($parameters:tt)*] $limiter:ty}
        $(#[$about:meta])* [$trait:ident] $($gate:ident)? {$(
            $(#[$meta:meta])*
            fn $verb:ident $(/ $verb_at:ident)? ($($argument:ident: $type:ty),*) -> $answer:ty;
        )*}
    ) => {
        impl<A: $crate::algorithm::$trait $($bound)*, C: $crate::clock::Clock, $($parameters)*>
            $limiter
        {$(
            $(#[$meta])*
            #[inline]
            pub fn $verb(&self $(, $argument: $type)*) -> $answer {
                self.at(self.now()).$verb($($argument),*)
            }
        )*}
    };
}
pub(crate) use clock_forms;

/// The trait of a group, implemented by the limiter's views.
macro_rules! traits_by_views {
    (
        {[$($bound:tt)*] [$($parameters:tt)*] $limiter:ty}
        $(#[$about:meta])* [$trait:ident] $gate:ident {$(
            $(#[$meta:meta])*
            fn $verb:ident / $verb_at:ident($($argument:ident: $type:ty),*) -> $answer:ty;
        )*}
    ) => {
        impl<A: $crate::algorithm::$trait $($bound)*, C, $($parameters)*> $crate::gate::$gate
            for $limiter
        {
            $crate::gate::clock_of!($gate C);
            $(
                #[inline]
                fn $verb_at(
                    &self,
                    $($argument: $type,)*
                    now: $crate::clock::Tick,
                ) -> $answer {
                    self.at(now).$verb($($argument),*)
                }
            )*
        }
    };
    // No trait has these verbs.
    ($context:tt [$trait:ident] $verbs:tt) => {};
}
pub(crate) use traits_by_views;

/// What only [`Gate`] has.
macro_rules! clock_of {
    (Gate $clock:ty) => {
        type Clock = $clock;

        #[inline]
        fn clock(&self) -> &$clock {
            self.clock()
        }
    };
    ($gate:ident $clock:ty) => {};
}
pub(crate) use clock_of;

/// The trait of a group.
macro_rules! declare_traits {
    (
        {}
        $(#[$about:meta])* [$trait:ident] Gate {$(
            $(#[$meta:meta])*
            fn $verb:ident / $verb_at:ident($($argument:ident: $type:ty),*) -> $answer:ty;
        )*}
    ) => {
        /// Something that grants permits: each of this crate's limiters, and what is wrapped around
        /// them.
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
    };
    (
        {}
        $(#[$about:meta])* [$trait:ident] $gate:ident {$(
            $(#[$meta:meta])*
            fn $verb:ident / $verb_at:ident($($argument:ident: $type:ty),*) -> $answer:ty;
        )*}
    ) => {
        $(#[$about])*
        pub trait $gate: Gate {$(
            $(#[$meta])*
            ///
            /// At this tick.
            fn $verb_at(&self, $($argument: $type,)* now: Tick) -> $answer;
        )*}
    };
    ({} [$trait:ident] $verbs:tt) => {};
}
each_group_of_verbs!([declare_traits] {});

/// A limiter whose permits can be had before they are there, by those who wait.
pub trait ReserveGate: GiveBackGate + DebtGate {
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

/// Implements [`ReserveGate`] by the limiter's views.
macro_rules! reserve_by_views {
    ([$($bound:tt)*] [$($parameters:tt)*] $limiter:ty) => {
        impl<A: $crate::algorithm::Reserve $($bound)*, C, $($parameters)*> $crate::gate::ReserveGate
            for $limiter
        {
            #[inline(always)]
            fn reserve_until_at(
                &self,
                n: u64,
                latest: $crate::clock::Tick,
                now: $crate::clock::Tick,
            ) -> Result<$crate::outcome::Granted, $crate::outcome::Denied> {
                self.at(now).reserve_until(n, latest)
            }

            #[inline(always)]
            fn reserve_fast_at(
                &self,
                n: u64,
                now: $crate::clock::Tick,
            ) -> Option<$crate::outcome::Granted> {
                self.at(now).reserve_fast(n)
            }

            #[inline]
            fn waiting_at(&self, now: $crate::clock::Tick) -> u64 {
                self.at(now).waiting()
            }

            #[inline]
            fn cancel_at(
                &self,
                granted: $crate::outcome::Granted,
                n: u64,
                now: $crate::clock::Tick,
            ) -> ($crate::outcome::Granted, u64) {
                self.at(now).cancel(granted, n)
            }
        }
    };
}
pub(crate) use reserve_by_views;

/// The trait of a group, for what points to a limiter.
macro_rules! traits_behind {
    (
        {$pointer:ty}
        $(#[$about:meta])* [$trait:ident] $gate:ident {$(
            $(#[$meta:meta])*
            fn $verb:ident / $verb_at:ident($($argument:ident: $type:ty),*) -> $answer:ty;
        )*}
    ) => {
        impl<G: $gate + ?Sized> $gate for $pointer {
            clock_behind!($gate);
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
    (Gate) => {
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
    ($gate:ident) => {};
}

macro_rules! reserve_behind {
    ($pointer:ty) => {
        impl<G: ReserveGate + ?Sized> ReserveGate for $pointer {
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
