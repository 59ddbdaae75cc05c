//! Constructors that take a quota, such as `Limiter::token_bucket(quota)`: one for each limiter and
//! each algorithm. Each is named like the algorithm in text form.

#[cfg(feature = "wide")]
use crate::adjustable::limiter::Adjustable;
use crate::algorithm::{FixedWindow, Gcra, Intervals, LeakyBucket, SlidingWindow, TokenBucket};
#[cfg(feature = "keyed")]
use crate::keyed::limiter::Keyed;
#[cfg(feature = "std")]
use crate::leases::limiter::Leases;
use crate::limiter::Limiter;
use crate::quota::{ConfigError, Quota};
#[cfg(feature = "std")]
use crate::sharded::limiter::Sharded;
use crate::sync::const_unless_loom;

/// Invokes `$then` for each constructor, with the algorithm, the constructor's name, the function
/// of the algorithm that it calls, and its description.
macro_rules! each_algorithm {
    ($then:ident! $limiter:tt) => {
        each_that_lends!($then! $limiter);
        $then! { $limiter LeakyBucket leaky_queue queue
        "Creates a [`LeakyBucket`] limiter as a queue: a grant says how long to wait." }
    };
}

/// Invokes `$then` for each constructor except the queue's, because a queue can't lend permits.
macro_rules! each_that_lends {
    ($then:ident! $limiter:tt) => {
        $then! { $limiter TokenBucket token_bucket new
        "Creates a [`TokenBucket`] limiter: permits are added at a steady rate, up to a burst." }
        $then! { $limiter Gcra gcra new
        "Creates a [`Gcra`] limiter, which decides as the token bucket does." }
        $then! { $limiter LeakyBucket leaky_meter meter
        "Creates a [`LeakyBucket`] limiter as a meter: a request that overflows it is denied." }
        $then! { $limiter FixedWindow fixed_window new
        "Creates a [`FixedWindow`] limiter: at most `n` permits in each period of the clock." }
        $then! { $limiter SlidingWindow sliding_window new
        "Creates a [`SlidingWindow`] limiter: at most `n` permits in the last period." }
        $then! { $limiter Intervals intervals new
        "Creates an [`Intervals`] limiter: its bucket is refilled once in each period." }
    };
}

/// Defines one constructor of one limiter. In `$made`, `$algorithm` is the algorithm.
macro_rules! constructor {
    (
        {
            $define:ident! $limiter:ident ($($argument:ident: $type:ty),*) $algorithm:ident => $made:expr;
            $before:literal $after:literal
        }
        $kind:ident $name:ident $new:ident $about:literal
    ) => {
        impl $limiter<$kind> {
            $define! {
                #[doc = $about]
                /// It uses the system clock.
                ///
                /// # Errors
                ///
                /// [`ConfigError`] names the invalid field and what is allowed.
                ///
                /// ```
                #[doc = concat!("use tollgate::{", stringify!($limiter), ", Quota};")]
                ///
                /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
                #[doc = concat!("let ", $before, stringify!($name), $after)]
                /// # Ok(())
                /// # }
                /// ```
                // Without `inline`, every constructor would be compiled into this crate, and with
                // it all code of its limiter.
                #[inline]
                pub fn $name(
                    quota: Quota $(, $argument: $type)*
                ) -> Result<Self, ConfigError> {
                    match $kind::$new(quota) {
                        Ok($algorithm) => $made,
                        Err(error) => Err(error),
                    }
                }
            }
        }
    };
}

/// Expands to its input: `const_unless_loom!` takes this place for constructors that are `const`.
#[cfg(feature = "std")]
macro_rules! as_is {
    ($($item:tt)*) => { $($item)* };
}

each_algorithm!(constructor! {
    const_unless_loom! Limiter () algorithm => Ok(Self::new(algorithm));
    "limiter = Limiter::" "(Quota::per_hour(5))?;
limiter.try_acquire()?;"
});

#[cfg(feature = "std")]
each_algorithm!(constructor! {
    as_is! Sharded () algorithm => Self::new(algorithm);
    "limiter = Sharded::" "(Quota::per_hour(1000))?;
limiter.try_acquire()?;"
});

#[cfg(feature = "std")]
each_that_lends!(constructor! {
    as_is! Leases (total: u64) algorithm => Self::new(algorithm, total);
    "limiter = Leases::" "(Quota::per_hour(1000), 100)?; // leases hold at most 100
limiter.lease(10).try_acquire()?;"
});

#[cfg(feature = "wide")]
each_algorithm!(constructor! {
    as_is! Adjustable () algorithm => Ok(Self::new(algorithm));
    "limiter = Adjustable::" "(Quota::per_hour(5))?;
limiter.try_acquire()?;"
});

#[cfg(feature = "keyed")]
each_algorithm!(constructor! {
    as_is! Keyed (capacity: usize) algorithm => Self::new(algorithm, capacity);
    "limiter = Keyed::" "(Quota::per_hour(5), 1000)?; // for 1000 keys
limiter.try_acquire(\"alice\")?;"
});
