//! Generates the methods of limiters whose state is more than one word, from the common lists of
//! methods.

use crate::clock::Tick;

/// A [`SlidingLog`](crate::SlidingLog) or a [`SlottedWindow`](crate::SlottedWindow) at one tick:
/// every method runs at that tick, without reading a clock. The method `at` of the limiter creates
/// it.
///
/// ```
/// use tollgate::{Quota, SlidingLog, Tick};
///
/// # fn main() -> Result<(), tollgate::error::LimiterError> {
/// let log = SlidingLog::new(Quota::per_second(1))?;
/// let view = log.at(Tick::from_nanos(7));
/// assert!(view.try_acquire().is_ok());
/// assert_eq!(view.available(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct WindowView<'a, L> {
    pub(crate) window: &'a L,
    pub(crate) now: Tick,
}

/// Implements a limiter's clock-reading methods, its view, and its traits, by its methods that
/// take a tick.
/// Each `$group` names a list of methods in `traits::verbs`.
macro_rules! verbs_by_ticks {
    ($limiter:ident: $($group:ident),*) => {
        impl<C> $limiter<C> {
            /// Returns the quota that the limiter was created with.
            pub const fn quota(&self) -> $crate::quota::Quota {
                self.quota
            }

            /// Returns the clock.
            pub const fn clock(&self) -> &C {
                &self.clock
            }

            /// Returns a view whose methods run at this tick and read no clock.
            #[inline]
            pub const fn at(&self, now: $crate::clock::Tick) -> $crate::multiword::WindowView<'_, Self> {
                $crate::multiword::WindowView { window: self, now }
            }
        }

        impl<C> $crate::multiword::WindowView<'_, $limiter<C>> {
            /// Takes one permit.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if no permit is available. Then nothing was taken.
            #[inline]
            pub fn try_acquire(&self) -> Result<$crate::outcome::Granted, $crate::outcome::Denied> {
                self.try_acquire_n(1)
            }
        }

        impl<C: $crate::clock::Clock> $limiter<C> {
            /// Reads the limiter's clock.
            #[inline]
            pub fn now(&self) -> $crate::clock::Tick {
                self.clock.now()
            }

            /// Takes one permit.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if no permit is available. Then nothing was taken.
            #[inline]
            pub fn try_acquire(&self) -> Result<$crate::outcome::Granted, $crate::outcome::Denied> {
                self.try_acquire_n_at(1, self.now())
            }
        }

        $(
            $crate::traits::verbs::$group!(
                [$crate::multiword::verbs::clock_forms_by_ticks] {$limiter}
            );
            $crate::traits::verbs::$group!(
                [$crate::multiword::verbs::traits_by_ticks] {$limiter}
            );
        )*
    };
}
pub(crate) use verbs_by_ticks;

/// Generates the methods of a group, on the limiter's clock and in its view.
macro_rules! clock_forms_by_ticks {
    (
        {$limiter:ident}
        $(#[$about:meta])* [$trait:ident] $($name:ident)? {$(
            $(#[$meta:meta])*
            fn $verb:ident / $verb_at:ident($($argument:ident: $type:ty),*) -> $answer:ty;
        )*}
    ) => {
        impl<C: $crate::clock::Clock> $limiter<C> {$(
            $(#[$meta])*
            #[inline]
            pub fn $verb(&self $(, $argument: $type)*) -> $answer {
                self.$verb_at($($argument,)* self.now())
            }
        )*}

        impl<C> $crate::multiword::WindowView<'_, $limiter<C>> {$(
            $(#[$meta])*
            #[inline]
            pub fn $verb(&self $(, $argument: $type)*) -> $answer {
                self.window.$verb_at($($argument,)* self.now)
            }
        )*}
    };
}
pub(crate) use clock_forms_by_ticks;

/// Implements the trait of a group by the limiter's own methods that take a tick.
macro_rules! traits_by_ticks {
    (
        {$limiter:ident}
        $(#[$about:meta])* [$trait:ident] $name:ident {$(
            $(#[$meta:meta])*
            fn $verb:ident / $verb_at:ident($($argument:ident: $type:ty),*) -> $answer:ty;
        )*}
    ) => {
        impl<C> $crate::traits::$name for $limiter<C> {
            $crate::traits::forms::clock_of!($name C);
            $(
                #[inline]
                fn $verb_at(
                    &self,
                    $($argument: $type,)*
                    now: $crate::clock::Tick,
                ) -> $answer {
                    self.$verb_at($($argument,)* now)
                }
            )*
        }
    };
    ($context:tt [$trait:ident] $verbs:tt) => {};
}
pub(crate) use traits_by_ticks;
