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
#[cfg(feature = "std")]
use crate::limiter_error::LimiterError;
use crate::quota::{Quota, QuotaError};
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
            $define:ident! $limiter:ident ($($argument:ident: $type:ty),*) -> $error:ident;
            $algorithm:ident => $made:expr, $why:ident => $refused:expr;
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
                #[doc = concat!("[`", stringify!($error), "`] names the invalid field and what is")]
                /// allowed.
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
                ) -> Result<Self, $error> {
                    match $kind::$new(quota) {
                        Ok($algorithm) => $made,
                        Err($why) => $refused,
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
    const_unless_loom! Limiter () -> QuotaError;
    algorithm => Ok(Self::new(algorithm)), error => Err(error);
    "limiter = Limiter::" "(Quota::per_hour(5))?;
limiter.try_acquire()?;"
});

#[cfg(feature = "std")]
each_algorithm!(constructor! {
    as_is! Sharded () -> LimiterError;
    algorithm => Self::new(algorithm), error => Err(error.into());
    "limiter = Sharded::" "(Quota::per_hour(1000))?;
limiter.try_acquire()?;"
});

#[cfg(feature = "std")]
each_that_lends!(constructor! {
    as_is! Leases (total: u64) -> LimiterError;
    algorithm => Self::new(algorithm, total), error => Err(error.into());
    "limiter = Leases::" "(Quota::per_hour(1000), 100)?; // leases hold at most 100
limiter.lease(10).try_acquire()?;"
});

#[cfg(feature = "wide")]
each_algorithm!(constructor! {
    as_is! Adjustable () -> QuotaError;
    algorithm => Ok(Self::new(algorithm)), error => Err(error);
    "limiter = Adjustable::" "(Quota::per_hour(5))?;
limiter.try_acquire()?;"
});

#[cfg(feature = "keyed")]
each_algorithm!(constructor! {
    as_is! Keyed (capacity: usize) -> LimiterError;
    algorithm => Self::new(algorithm, capacity), error => Err(error.into());
    "limiter = Keyed::" "(Quota::per_hour(5), 1000)?; // for 1000 keys
limiter.try_acquire(\"alice\")?;"
});
