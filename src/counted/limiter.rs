//! A `TryAcquire` in a `Counted`.

use core::borrow::Borrow;

use super::{Counted, Counters};
use crate::clock::{Clock, Tick};
use crate::outcome::{Denied, Granted};
use crate::traits::forms::clock_forms_by_ticks;
use crate::traits::verbs::{debt_verbs, each_group_of_verbs, give_back_verbs, take_verbs};
use crate::traits::{DebtLimiter, GiveBackLimiter, ReserveLimiter, TryAcquire};

/// Counts the answer of a verb.
macro_rules! count {
    (try_acquire_n($n:ident), $counters:expr, $answer:ident) => {
        $counters.answer($answer.is_ok(), $n)
    };
    (take_up_to($n:ident), $counters:expr, $answer:ident) => {
        $counters.granted($answer.n())
    };
    (charge($n:ident), $counters:expr, $answer:ident) => {
        $counters.charged($answer.n())
    };
    (undo($granted:ident), $counters:expr, $answer:ident) => {
        $counters.returned($answer)
    };
    (refund($n:ident), $counters:expr, $answer:ident) => {
        $counters.returned($answer)
    };
    // It takes nothing and returns nothing.
    ($verb:ident $arguments:tt, $counters:expr, $answer:ident) => {};
}

/// Implements the trait of a group: asks the limiter, and counts the answer.
macro_rules! counted_traits {
    (
        {}
        $(#[$about:meta])* [$trait:ident] $name:ident {$(
            $(#[$meta:meta])*
            fn $verb:ident / $verb_at:ident($($argument:ident: $type:ty),*) -> $answer:ty;
        )*}
    ) => {
        impl<G: $name, S: Borrow<Counters>> $name for Counted<G, S> {
            what_the_limiter_has!($name);
            $(
                #[inline(always)]
                fn $verb_at(&self, $($argument: $type,)* now: Tick) -> $answer {
                    let answer = self.limiter.$verb_at($($argument,)* now);
                    count!($verb($($argument),*), self.counters(), answer);
                    answer
                }
            )*
        }
    };
    // This group has no trait.
    ({} [$trait:ident] $verbs:tt) => {};
}

/// Defines the items that only [`TryAcquire`] or [`GiveBackLimiter`] has.
macro_rules! what_the_limiter_has {
    (TryAcquire) => {
        type Clock = G::Clock;

        #[inline]
        fn clock(&self) -> &G::Clock {
            self.limiter.clock()
        }
    };
    (GiveBackLimiter) => {
        #[inline]
        fn roll_back_at(&self, granted: Granted, now: Tick) -> u64 {
            self.returned(self.limiter.roll_back_at(granted, now))
        }
    };
    ($name:ident) => {};
}

impl<G: TryAcquire<Clock: Clock>, S: Borrow<Counters>> Counted<G, S> {
    /// Reads the limiter's clock.
    #[inline]
    pub fn now(&self) -> Tick {
        self.limiter.clock().now()
    }

    /// Takes one permit.
    ///
    /// # Errors
    ///
    /// [`Denied`] if no permit is available.
    #[inline]
    pub fn try_acquire(&self) -> Result<Granted, Denied> {
        self.try_acquire_n(1)
    }
}

take_verbs!([clock_forms_by_ticks] {
    [G: TryAcquire<Clock: Clock>, S: Borrow<Counters>] Counted<G, S>
});
give_back_verbs!([clock_forms_by_ticks] {
    [G: GiveBackLimiter<Clock: Clock>, S: Borrow<Counters>] Counted<G, S>
});
debt_verbs!([clock_forms_by_ticks] {
    [G: DebtLimiter<Clock: Clock>, S: Borrow<Counters>] Counted<G, S>
});
each_group_of_verbs!([counted_traits] {});

/// A reservation counts as granted when it is made. Its cancelled permits count as returned.
impl<G: ReserveLimiter, S: Borrow<Counters>> ReserveLimiter for Counted<G, S> {
    #[inline]
    fn reserve_until_at(&self, n: u64, latest: Tick, now: Tick) -> Result<Granted, Denied> {
        let outcome = self.limiter.reserve_until_at(n, latest, now);
        self.counters().answer(outcome.is_ok(), n);
        outcome
    }

    #[inline(always)]
    fn reserve_fast_at(&self, n: u64, now: Tick) -> Option<Granted> {
        let granted = self.limiter.reserve_fast_at(n, now)?;
        self.counters().granted(granted.n());
        Some(granted)
    }

    #[inline]
    fn cancel_at(&self, granted: Granted, n: u64, now: Tick) -> (Granted, u64) {
        let (kept, returned) = self.limiter.cancel_at(granted, n, now);
        self.counters().returned(returned);
        (kept, returned)
    }
}
