//! The verbs of limiters that are no stores, made from the list of verbs.

/// Implements the verbs on its clock, and the traits, of a limiter that is no store: by its verbs
/// that take a tick. Its groups of verbs come after its type.
macro_rules! verbs_by_ticks {
    ($limiter:ident: $($group:ident),*) => {
        impl<C> $limiter<C> {
            /// The quota that it was made from.
            pub const fn quota(&self) -> $crate::quota::Quota {
                self.quota
            }

            /// The clock.
            pub const fn clock(&self) -> &C {
                &self.clock
            }

            /// Takes one permit at this tick.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if it was not there.
            #[inline]
            pub fn try_acquire_at(
                &self,
                now: $crate::clock::Tick,
            ) -> Result<$crate::outcome::Granted, $crate::outcome::Denied> {
                self.try_acquire_n_at(1, now)
            }
        }

        impl<C: $crate::clock::Clock> $limiter<C> {
            /// What the limiter's clock says.
            #[inline]
            pub fn now(&self) -> $crate::clock::Tick {
                self.clock.now()
            }

            /// Takes one permit.
            ///
            /// # Errors
            ///
            /// [`Denied`](crate::Denied) if it was not there: then nothing was taken.
            #[inline]
            pub fn try_acquire(&self) -> Result<$crate::outcome::Granted, $crate::outcome::Denied> {
                self.try_acquire_n_at(1, self.now())
            }
        }

        $(
            $crate::rate_limiter::verbs::$group!(
                [$crate::multiword::verbs::clock_forms_by_ticks] {$limiter}
            );
            $crate::rate_limiter::verbs::$group!(
                [$crate::multiword::verbs::traits_by_ticks] {$limiter}
            );
        )*
    };
}
pub(crate) use verbs_by_ticks;

/// The verbs of a group on the clock of a limiter that is no store.
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
    };
}
pub(crate) use clock_forms_by_ticks;

/// The trait of a group, implemented by a limiter's own verbs that take a tick.
macro_rules! traits_by_ticks {
    (
        {$limiter:ident}
        $(#[$about:meta])* [$trait:ident] $name:ident {$(
            $(#[$meta:meta])*
            fn $verb:ident / $verb_at:ident($($argument:ident: $type:ty),*) -> $answer:ty;
        )*}
    ) => {
        impl<C> $crate::rate_limiter::$name for $limiter<C> {
            $crate::rate_limiter::forms::clock_of!($name C);
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
