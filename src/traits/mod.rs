//! Traits for code that works with any limiter: the common one, and those for verbs that only some
//! algorithms support, such as reserving and giving back permits.

// `verbs.rs` lists the verbs, and `forms.rs` generates each limiter's methods from that list.

pub(crate) mod forms;
pub(crate) mod verbs;

use crate::clock::{Clock, Tick, behind_pointers};
use crate::outcome::{Denied, Granted, Settled};
#[cfg(feature = "std")]
use std::boxed::Box;
#[cfg(feature = "std")]
use std::sync::Arc;
use verbs::each_group_of_verbs;

/// Declares what only [`GiveBackLimiter`] has.
macro_rules! roll_back_of {
    (GiveBackLimiter) => {
        /// Gives back a grant that no caller used, because another limit denied the request after
        /// this one had granted it. Returns how many permits were returned, rounded up. A
        /// composition calls it after a lost race. The default is [`undo_at`](Self::undo_at).
        ///
        /// A limiter with reservations returns nothing while a caller waits behind the grant.
        /// Otherwise the next caller could use permits that the waiting caller already has.
        ///
        /// ```
        /// use tollgate::traits::GiveBackLimiter;
        /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
        ///
        /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// let bucket = TokenBucket::new(Quota::per_second(10))?;
        /// let limiter = Limiter::with_clock(bucket, ManualClock::new());
        /// let (first, granted) = (limiter.try_acquire_n(1)?, limiter.try_acquire_n(3)?);
        /// assert_eq!(limiter.roll_back_at(granted, limiter.now()), 3);
        ///
        /// let waiting = limiter.reserve(10)?; // due when the first permit is refilled
        /// assert_eq!(limiter.roll_back_at(first, limiter.now()), 0);
        /// # let _ = waiting;
        /// # Ok(())
        /// # }
        /// ```
        fn roll_back_at(&self, granted: Granted, now: Tick) -> u64 {
            self.undo_at(granted, now)
        }
    };
    ($name:ident) => {};
}

/// Declares the trait of a group.
macro_rules! declare_traits {
    (
        {}
        $(#[$about:meta])* [$trait:ident] TryAcquire {$(
            $(#[$meta:meta])*
            fn $verb:ident / $verb_at:ident($($argument:ident: $type:ty),*) -> $answer:ty;
        )*}
    ) => {
        /// A limiter that grants permits. All limiters with the verbs of a
        /// [`Limiter`](crate::Limiter) (`try_acquire`, `take_up_to`, `available` and so on)
        /// implement it, and so do their wrappers and the keys of a table. `Concurrency` and the
        /// waiting types do not.
        ///
        /// Limiters also have these verbs as inherent methods. Use the trait for code that works
        /// with any limiter.
        ///
        /// ```
        /// use tollgate::clock::Clock;
        /// use tollgate::{TryAcquire, Limiter, Quota, Sharded, SlidingLog};
        ///
        /// fn admitted(limiter: &impl TryAcquire<Clock: Clock>) -> usize {
        ///     (0..100).filter(|_| limiter.try_acquire().is_ok()).count()
        /// }
        ///
        /// # fn main() -> Result<(), tollgate::error::LimiterError> {
        /// let quota = Quota::per_hour(20);
        /// assert_eq!(admitted(&Limiter::token_bucket(quota)?), 20);
        /// assert_eq!(admitted(&Sharded::token_bucket(quota)?), 20);
        /// assert_eq!(admitted(&SlidingLog::new(quota)?), 20);
        /// # Ok(())
        /// # }
        /// ```
        pub trait TryAcquire {
            /// The type of the clock. Verbs that take a tick do not require it to be a [`Clock`].
            type Clock;

            /// Returns the clock.
            fn clock(&self) -> &Self::Clock;

            $(
                $(#[$meta])*
                ///
                /// Uses the tick `now`, and reads no clock.
                fn $verb_at(&self, $($argument: $type,)* now: Tick) -> $answer;

                $(#[$meta])*
                #[cfg_attr(debug_assertions, inline)]
                #[cfg_attr(not(debug_assertions), inline(always))]
                fn $verb(&self, $($argument: $type),*) -> $answer
                where
                    Self::Clock: Clock,
                {
                    self.$verb_at($($argument,)* self.clock().now())
                }
            )*

            /// Takes one permit.
            ///
            /// # Errors
            ///
            /// [`Denied`] if it is not available.
            // Always inlined only in optimized builds. Without optimization each inlined copy has
            // thousands of instructions.
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
        pub trait $name: TryAcquire {$(
            $(#[$meta])*
            ///
            /// Uses the tick `now`, and reads no clock.
            fn $verb_at(&self, $($argument: $type,)* now: Tick) -> $answer;

            $(#[$meta])*
            fn $verb(&self, $($argument: $type),*) -> $answer
            where
                Self::Clock: Clock,
            {
                self.$verb_at($($argument,)* self.clock().now())
            }
        )*
            roll_back_of!($name);
        }
    };
    ({} [$trait:ident] $verbs:tt) => {};
}
each_group_of_verbs!([declare_traits] {});

/// A limiter that can correct a grant for an estimated cost. Every limiter that takes permits back
/// and can owe permits implements it.
pub trait SettleLimiter: GiveBackLimiter + DebtLimiter {
    /// Corrects a grant for an estimated cost, at this tick, once the actual cost is known. If
    /// `actual` is less than what was granted, the rest is returned by
    /// [`undo`](GiveBackLimiter::undo_at). If it is more, the difference is
    /// [charged](DebtLimiter::charge_at).
    fn settle_at(&self, granted: Granted, actual: u64, now: Tick) -> Settled {
        Settled::by(
            granted,
            actual,
            |unused| self.undo_at(unused, now),
            |more| self.charge_at(more, now),
        )
    }

    /// Corrects a grant for an estimated cost, on the limiter's clock, once the actual cost is
    /// known.
    ///
    /// ```
    /// use tollgate::clock::Clock;
    /// use tollgate::traits::SettleLimiter;
    /// use tollgate::{Counted, Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// fn call(limiter: &impl SettleLimiter<Clock: Clock>) -> Result<(), tollgate::Denied> {
    ///     let estimate = limiter.try_acquire_n(800)?;
    ///     let used = 650; // reported at the end of the call
    ///     limiter.settle(estimate, used);
    ///     Ok(())
    /// }
    /// let tokens = Counted::new(Limiter::token_bucket(Quota::per_day(9_000))?);
    /// call(&tokens)?;
    /// assert_eq!(tokens.available(), 8_350);
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

/// A limiter that grants permits before they are available, to callers that wait.
pub trait ReserveLimiter: GiveBackLimiter + DebtLimiter {
    /// Takes `n` permits at this tick, if they are available by the tick `latest`. [`Granted::due`]
    /// says when they are.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permits will not be available by `latest`. Its `retry_after` is the time
    /// between `latest` and the tick at which they will be.
    fn reserve_until_at(&self, n: u64, latest: Tick, now: Tick) -> Result<Granted, Denied>;

    /// Takes `n` permits that are available now, in one attempt. `None` means that nothing was
    /// taken; use [`reserve_until_at`](Self::reserve_until_at). The default always returns `None`:
    /// override it only if one attempt is faster.
    #[inline(always)]
    fn reserve_fast_at(&self, n: u64, now: Tick) -> Option<Granted> {
        let _ = (n, now);
        None
    }

    /// Gives back the last `n` permits of a reservation at this tick, or as many of them as
    /// possible. Returns the rest of the reservation, which may now be due sooner, and the number
    /// of permits that were returned.
    fn cancel_at(&self, granted: Granted, n: u64, now: Tick) -> (Granted, u64);
}

/// Implements the trait of a group for pointers to a limiter.
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
    (TryAcquire) => {
        type Clock = G::Clock;

        behind_pointers!(
            fn clock() -> &Self::Clock;
        );
    };
    (GiveBackLimiter) => {
        behind_pointers!(
            fn roll_back_at(granted: Granted, now: Tick) -> u64;
        );
    };
    ($name:ident) => {};
}

each_group_of_verbs!([traits_behind] {&G});
#[cfg(feature = "std")]
each_group_of_verbs!([traits_behind] {Box<G>});
#[cfg(feature = "std")]
each_group_of_verbs!([traits_behind] {Arc<G>});
behind_pointers!(ReserveLimiter {
    fn reserve_until_at(n: u64, latest: Tick, now: Tick) -> Result<Granted, Denied>;
    fn reserve_fast_at(n: u64, now: Tick) -> Option<Granted>;
    fn cancel_at(granted: Granted, n: u64, now: Tick) -> (Granted, u64);
});
