//! Macros that generate a limiter's verbs on its own clock, and its traits, from the list of verbs.

/// Implements the verbs of a limiter with an algorithm `A` and a clock `C`, through its `at(now)`
/// and its `clock()`. Additional bounds on the algorithm and other type parameters come before the
/// limiter's type.
macro_rules! limiter_verbs {
    ([$($bound:tt)*] [$($parameters:tt)*] $limiter:ty) => {
        impl<A: $crate::algorithm::Algorithm $($bound)*, C, $($parameters)*> $limiter {
            /// Makes the limiter fresh and full again, which allows one more burst. Reserved
            /// permits stay due at the same time.
            ///
            /// ```
            /// # fn main() -> Result<(), tollgate::error::QuotaError> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(5))?;
            /// limiter.charge(1_000_000);
            /// limiter.reset();
            /// assert_eq!(limiter.available(), 5);
            /// # Ok(())
            /// # }
            /// ```
            #[inline]
            pub fn reset(&self) {
                // A reset needs no tick, because a fresh word is fresh at every tick.
                self.at($crate::clock::Tick::ZERO).reset();
            }
        }

        impl<A: $crate::algorithm::Algorithm $($bound)*, C: $crate::clock::Clock, $($parameters)*>
            $limiter
        {
            /// Reads the limiter's clock.
            #[inline]
            pub fn now(&self) -> $crate::clock::Tick {
                $crate::clock::Clock::now(self.clock())
            }

            /// Takes one permit.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if it is not available. In that case nothing is taken.
            #[inline]
            pub fn try_acquire(&self) -> Result<$crate::outcome::Granted, $crate::outcome::Denied> {
                self.at(self.now()).try_acquire()
            }
        }

        $crate::traits::verbs::each_group_of_verbs!(
            [$crate::traits::forms::clock_forms] {[$($bound)*] [$($parameters)*] $limiter}
        );
        $crate::traits::verbs::each_group_of_verbs!(
            [$crate::traits::forms::traits_by_views] {[$($bound)*] [$($parameters)*] $limiter}
        );
        $crate::traits::forms::reserve_by_views!([$($bound)*] [$($parameters)*] $limiter);
        $crate::traits::forms::settle_form!(
            [A: $crate::algorithm::GiveBack + $crate::algorithm::Debt $($bound)*, C: $crate::clock::Clock, $($parameters)*]
            $limiter
        );
    };
}
pub(crate) use limiter_verbs;

/// Implements the verb `settle` for a limiter that implements `GiveBackLimiter` and `DebtLimiter`.
macro_rules! settle_form {
    ([$($parameters:tt)*] $limiter:ty) => {
        impl<$($parameters)*> $limiter {
            /// Corrects a grant for an estimated cost, once the actual cost is known. Use it for
            /// the tokens of a language model, the bytes of a response, or the time of a query.
            ///
            /// If `actual` is less than what was granted, the rest is returned, as
            /// [`undo`](Self::undo) does: permits that the clock has already refilled are not
            /// returned a second time, and a window that is over gets nothing back. If `actual` is
            /// more, the difference is [charged](Self::charge), into debt if it is not available.
            /// So bound a cost that a client reports: see [`Denied::Stuck`](crate::Denied::Stuck).
            ///
            /// ```
            /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(100))?;
            /// let estimate = limiter.try_acquire_n(30)?;
            /// assert_eq!(limiter.settle(estimate, 10).returned, 20);
            /// let estimate = limiter.try_acquire_n(30)?;
            /// assert_eq!(limiter.settle(estimate, 35).charged, 5);
            /// assert_eq!(limiter.available(), 55);
            /// # Ok(())
            /// # }
            /// ```
            #[inline]
            pub fn settle(
                &self,
                granted: $crate::outcome::Granted,
                actual: u64,
            ) -> $crate::outcome::Settled {
                $crate::traits::SettleLimiter::settle_at(self, granted, actual, self.now())
            }
        }
    };
}
pub(crate) use settle_form;

/// Implements the verbs of a group on the limiter's clock.
macro_rules! clock_forms {
    (
        {[$($bound:tt)*] [$($parameters:tt)*] $limiter:ty}
        $(#[$about:meta])* [$trait:ident] $($name:ident)? {$(
            $(#[$meta:meta])*
            fn $verb:ident / $verb_at:ident($($argument:ident: $type:ty),*) -> $answer:ty;
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

/// Implements the verbs of a group on the limiter's clock, by the forms that take a tick.
#[cfg(feature = "std")]
macro_rules! clock_forms_by_ticks {
    (
        {[$($parameters:tt)*] $limiter:ty}
        $(#[$about:meta])* [$trait:ident] $($name:ident)? {$(
            $(#[$meta:meta])*
            fn $verb:ident / $verb_at:ident($($argument:ident: $type:ty),*) -> $answer:ty;
        )*}
    ) => {
        impl<$($parameters)*> $limiter {$(
            $(#[$meta])*
            #[inline(always)]
            pub fn $verb(&self $(, $argument: $type)*) -> $answer {
                self.$verb_at($($argument,)* self.now())
            }
        )*}
    };
}
#[cfg(feature = "std")]
pub(crate) use clock_forms_by_ticks;

/// Implements the trait of a group through the limiter's views.
macro_rules! traits_by_views {
    (
        {[$($bound:tt)*] [$($parameters:tt)*] $limiter:ty}
        $(#[$about:meta])* [$trait:ident] $name:ident {$(
            $(#[$meta:meta])*
            fn $verb:ident / $verb_at:ident($($argument:ident: $type:ty),*) -> $answer:ty;
        )*}
    ) => {
        impl<A: $crate::algorithm::$trait $($bound)*, C, $($parameters)*> $crate::traits::$name
            for $limiter
        {
            $crate::traits::forms::clock_of!($name C);
            $crate::traits::forms::roll_back_by_view!($name);
            $(
                #[cfg_attr(debug_assertions, inline)]
                #[cfg_attr(not(debug_assertions), inline(always))]
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
    // This group has no trait.
    ($context:tt [$trait:ident] $verbs:tt) => {};
}
pub(crate) use traits_by_views;

/// Defines the items that only [`TryAcquire`] has.
macro_rules! clock_of {
    (TryAcquire $clock:ty) => {
        type Clock = $clock;

        #[inline]
        fn clock(&self) -> &$clock {
            self.clock()
        }
    };
    ($name:ident $clock:ty) => {};
}
pub(crate) use clock_of;

/// Defines rolling back, which only [`GiveBackLimiter`] has, through the limiter's view.
macro_rules! roll_back_by_view {
    (GiveBackLimiter) => {
        #[inline]
        fn roll_back_at(&self, granted: $crate::outcome::Granted, now: $crate::clock::Tick) -> u64 {
            self.at(now).roll_back(granted)
        }
    };
    ($name:ident) => {};
}
pub(crate) use roll_back_by_view;

/// Implements [`ReserveLimiter`] through the limiter's views.
macro_rules! reserve_by_views {
    ([$($bound:tt)*] [$($parameters:tt)*] $limiter:ty) => {
        impl<A: $crate::algorithm::Reserve $($bound)*, C, $($parameters)*> $crate::traits::ReserveLimiter
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
