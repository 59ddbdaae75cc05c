//! A `Counted` whose permits can be reserved and waited for.

use super::{Counted, Counters};
use crate::clock::{Clock, SleepClock};
use crate::traits::ReserveLimiter;
use crate::wait::waits;

waits!(
    [G: ReserveLimiter]
    [G: ReserveLimiter<Clock: Clock>]
    [G: ReserveLimiter<Clock: SleepClock>]
    borrowed Counted<G>
);
// The key of a counted table is a view, and a reservation holds a copy of it.
waits!(
    [G: ReserveLimiter + Copy]
    [G: ReserveLimiter<Clock: Clock> + Copy]
    [G: ReserveLimiter<Clock: SleepClock> + Copy]
    copied Counted<G, &Counters>
);
