use core::time::Duration;

use crate::clock::{Clock, SleepClock, Tick};
use crate::outcome::{Denied, Granted, Settled};
use crate::rate_limiter::ReserveLimiter;

/// Permits that are taken, and may be used when they are [due](Self::due).
///
/// Reservations are due in the order in which they were made, and each is made by one exchange,
/// however many wait. Dropping one keeps its permits taken; [`cancel`](Self::cancel) gives back
/// what can be given back.
///
/// **Bound.** A permit that is used counts at the tick at which it is due (or was made, if that was
/// later), and keeps the bucket's bound there, whatever else is cancelled. (Permits that others
/// [give back](crate::Limiter::undo) count as not taken from then on; so while callers wait, use
/// `cancel`, which knows of them. After a [reset](crate::Limiter::reset) callers that waited before
/// it go besides, and their reservations should not be cancelled.)
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new();
/// let bucket = TokenBucket::new(Quota::per_second(10).burst(1))?;
/// let limiter = Limiter::with_clock(bucket, clock.clone());
///
/// assert!(limiter.reserve(1)?.is_due());
/// let second = limiter.reserve(1)?;
/// let third = limiter.reserve(1)?;
/// assert_eq!(second.delay(), Duration::from_millis(100));
/// assert_eq!(third.delay(), Duration::from_millis(200));
///
/// // The last in line gives back all; the next one has its turn.
/// assert_eq!(third.cancel().returned, 1);
/// assert_eq!(limiter.reserve(1)?.delay(), Duration::from_millis(200));
///
/// // One in the middle can't: those after it have been told when to go.
/// assert_eq!(second.cancel().lost, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the permits are taken, and should be used, waited for or cancelled"]
pub struct Reservation<G> {
    limiter: G,
    granted: Granted,
}

/// The outcome of cancelling a reservation. The sum is the number of permits that were to be
/// cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Cancelled {
    /// How many permits others can have now, a part of one counted whole.
    pub returned: u64,
    /// How many are lost: the clock has refilled them already, or a later waiter stands after them.
    pub lost: u64,
}

impl<G> Reservation<G> {
    /// How many permits.
    pub const fn n(&self) -> u64 {
        self.granted.n()
    }

    /// The tick from which on they may be used.
    pub const fn due(&self) -> Tick {
        self.granted.due()
    }

    /// How long that is after the reservation was made.
    pub const fn delay(&self) -> Duration {
        self.granted.delay()
    }

    /// Keeps the permits: the grant, which says when it is [due](Granted::due).
    pub fn into_granted(self) -> Granted {
        self.granted
    }
}

impl<G: ReserveLimiter> Reservation<G> {
    /// Takes `n` permits at this tick if they are due at `latest` or sooner.
    pub(crate) fn until(limiter: G, n: u64, latest: Tick, now: Tick) -> Result<Self, Denied> {
        let granted = limiter.reserve_until_at(n, latest, now)?;
        Ok(Self { limiter, granted })
    }

    /// [`cancel`](Self::cancel) at this tick.
    pub fn cancel_at(self, now: Tick) -> Cancelled {
        let n = self.n();
        let (_, returned) = self.limiter.cancel_at(self.granted, n, now);
        let lost = n.saturating_sub(returned);
        Cancelled { returned, lost }
    }

    /// [`settle`](Self::settle) at this tick.
    pub fn settle_at(self, actual: u64, now: Tick) -> (Granted, Settled) {
        let taken = self.n();
        if actual < taken {
            let unused = taken - actual;
            let (kept, returned) = self.limiter.cancel_at(self.granted, unused, now);
            return (kept, Settled::too_many(unused, returned));
        }
        let charged = match actual - taken {
            0 => 0,
            more => self.limiter.charge_at(more, now).n(),
        };
        (self.granted, Settled::charged(charged))
    }
}

impl<G: ReserveLimiter<Clock: Clock>> Reservation<G> {
    /// Whether the permits may be used.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.time_left().is_zero()
    }

    /// How long until the permits may be used.
    pub fn time_left(&self) -> Duration {
        self.due().saturating_since(self.limiter.clock().now())
    }

    /// Gives back what can be given back without admitting more than was promised.
    ///
    /// The last in line gives back all. One in the middle gives back nothing while a caller waits:
    /// callers after it have been told when to go, and if its permits came back, the next newcomer
    /// would go at the same tick as one of them. When no caller waits any more, what the clock has
    /// refilled already does not come back a second time.
    pub fn cancel(self) -> Cancelled {
        let now = self.limiter.clock().now();
        self.cancel_at(now)
    }

    /// Corrects an estimate when the cost is known. If the estimate was too high, it gives back the
    /// rest, as far as [`cancel`](Self::cancel) can; if it was too low, it takes more, into debt if
    /// it is not there. Returns the permits that are kept, which may be due sooner if the
    /// reservation was the last in line.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(100))?;
    /// let estimate = limiter.reserve(30)?;
    /// assert_eq!(estimate.settle(10).1.returned, 20);
    /// let estimate = limiter.reserve(30)?;
    /// assert_eq!(estimate.settle(35).1.charged, 5);
    /// assert_eq!(limiter.available(), 55);
    /// # Ok(())
    /// # }
    /// ```
    pub fn settle(self, actual: u64) -> (Granted, Settled) {
        let now = self.limiter.clock().now();
        self.settle_at(actual, now)
    }
}

impl<G: ReserveLimiter<Clock: SleepClock>> Reservation<G> {
    /// Blocks this thread until the permits may be used.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_second(1000).burst(1))?;
    /// let first = limiter.reserve(1)?;
    /// let second = limiter.reserve(1)?.wait();
    /// assert!(limiter.now() >= second.at());
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(self) -> Granted {
        let clock = self.limiter.clock();
        clock.sleep_until(self.due(), clock.now());
        self.granted.when_due()
    }
}
