use core::time::Duration;

use crate::clock::{Clock, SleepClock, Tick};
use crate::outcome::{Denied, Granted, Settled};
use crate::traits::ReserveLimiter;

/// Permits that are taken, and may be used once they are [due](Self::due).
///
/// Reservations are due in the order in which they were made. Making one is one atomic exchange,
/// however many callers wait. Dropping a reservation keeps its permits taken;
/// [`cancel`](Self::cancel) gives them back as far as possible.
///
/// **Bound.** A permit that is used counts at the tick at which it was due, or at which it was
/// reserved if that is later. Counted this way, used permits keep the limit's bound, even if other
/// reservations are cancelled. There are two exceptions:
///
/// - [`undo`](crate::Limiter::undo) and `refund` give permits back without regard to callers that
///   wait. While callers wait, use `cancel`, which takes those callers into account.
/// - A [reset](crate::Limiter::reset) grants a new burst, and callers that were already waiting
///   still go. Do not cancel their reservations.
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
/// // The last reservation in line gives back all its permits, and the next one gets its place.
/// assert_eq!(third.cancel().returned, 1);
/// assert_eq!(limiter.reserve(1)?.delay(), Duration::from_millis(200));
///
/// // One in the middle gives back none: the caller behind it was told when to go.
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

/// The outcome of cancelling a reservation. The two fields add up to the number of permits to
/// cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Cancelled {
    /// How many permits are available again, rounded up.
    pub returned: u64,
    /// How many permits are lost: the clock has refilled them already, or a later waiter depends on
    /// them.
    pub lost: u64,
}

impl<G> Reservation<G> {
    /// Returns the number of permits.
    pub const fn n(&self) -> u64 {
        self.granted.n()
    }

    /// Returns the tick from which the permits may be used.
    pub const fn due(&self) -> Tick {
        self.granted.due()
    }

    /// Returns the time from making the reservation until its permits are due.
    pub const fn delay(&self) -> Duration {
        self.granted.delay()
    }

    /// Keeps the permits, and returns the grant, which says when it is [due](Granted::due).
    pub fn into_granted(self) -> Granted {
        self.granted
    }
}

impl<G: ReserveLimiter> Reservation<G> {
    /// Takes `n` permits at the tick `now` if they are due at `latest` or sooner.
    pub(crate) fn until(limiter: G, n: u64, latest: Tick, now: Tick) -> Result<Self, Denied> {
        let granted = limiter.reserve_until_at(n, latest, now)?;
        Ok(Self { limiter, granted })
    }

    /// [`cancel`](Self::cancel) at the tick `now`.
    pub fn cancel_at(self, now: Tick) -> Cancelled {
        let n = self.n();
        let (_, returned) = self.limiter.cancel_at(self.granted, n, now);
        let lost = n.saturating_sub(returned);
        Cancelled { returned, lost }
    }

    /// [`settle`](Self::settle) at the tick `now`.
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
    /// Returns whether the permits may be used now.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.time_left().is_zero()
    }

    /// Returns how long it is until the permits may be used.
    pub fn time_left(&self) -> Duration {
        self.due().saturating_since(self.limiter.clock().now())
    }

    /// Gives the permits back as far as possible without breaking the bound.
    ///
    /// - The last reservation in line gives back all its permits. (A
    ///   [`SlidingWindow`](crate::SlidingWindow) may have to keep some, until the window in which
    ///   they are due begins.)
    /// - While a caller waits, one in the middle gives back nothing. The callers behind it were
    ///   told when to go, and a newcomer with its permits would go at the same tick as one of them.
    /// - If no caller waits, a reservation gives back the permits that the clock has not refilled
    ///   yet.
    pub fn cancel(self) -> Cancelled {
        let now = self.limiter.clock().now();
        self.cancel_at(now)
    }

    /// Corrects an estimate once the actual cost is known. If the estimate was too high, gives back
    /// the difference, as far as [`cancel`](Self::cancel) can. If it was too low, takes the
    /// difference unconditionally; the limiter may go into debt. Returns the permits that are kept,
    /// which may be due sooner if the reservation was the last in line.
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
