//! Generates the methods of limiters whose state is more than one word, from the common lists of
//! methods.

/// Implements a limiter's clock-reading methods, its [view](crate::store::View), and its traits, by
/// its methods that take a tick.
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
            pub const fn at(&self, now: $crate::clock::Tick) -> $crate::store::View<&Self> {
                $crate::store::View::new(self, now)
            }
        }

        impl<C> $crate::store::View<&$limiter<C>> {
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
                self.try_acquire_n(1)
            }
        }

        impl<C: core::fmt::Debug> core::fmt::Debug for $crate::store::View<&$limiter<C>> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let mut shown = f.debug_struct("View");
                shown.field("store", &self.store).field("now", &self.now).finish()
            }
        }

        $(
            $crate::traits::verbs::$group!(
                [$crate::traits::forms::clock_forms_by_ticks]
                {[C: $crate::clock::Clock] $limiter<C>}
            );
            $crate::traits::verbs::$group!([$crate::multiword::verbs::views_by_ticks] {$limiter});
            $crate::traits::verbs::$group!([$crate::multiword::verbs::traits_by_ticks] {$limiter});
        )*
    };
}
pub(crate) use verbs_by_ticks;

/// Implements the methods of a group on the limiter's view.
macro_rules! views_by_ticks {
    (
        {$limiter:ident}
        $(#[$about:meta])* [$trait:ident] $($name:ident)? {$(
            $(#[$meta:meta])*
            fn $verb:ident / $verb_at:ident($($argument:ident: $type:ty),*) -> $answer:ty;
        )*}
    ) => {
        impl<C> $crate::store::View<&$limiter<C>> {$(
            $(#[$meta])*
            #[inline]
            pub fn $verb(&self $(, $argument: $type)*) -> $answer {
                self.store.$verb_at($($argument,)* self.now)
            }
        )*}
    };
}
pub(crate) use views_by_ticks;

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
