use core::time::Duration;

use super::{Reservation, blocking};
use crate::algorithm::{ChangeQuota, Reserve};
use crate::clock::{Clock, SleepClock, Tick};
use crate::limiter::Limiter;
use crate::metrics::{Metric, Metrics, Value};
use crate::outcome::{Denied, Granted};
use crate::rate_limiter::ReserveLimiter;
use crate::store::AtomicWord;

/// A limiter with a waiting room of limited size.
///
/// A newcomer takes a permit at once if one is available. Otherwise it waits its turn, or is denied
/// at once if the room is full. So low traffic is never delayed, high traffic is smoothed, and
/// overload is denied while the caller still has time to go elsewhere. Waiters are served in order
/// of arrival at the limiter's rate; no newcomer overtakes them.
///
/// The longest wait and the size of the room are one limit: the room holds as many permits as the
/// limiter grants within that wait.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, ManualClock, Quota, TokenBucket, WaitingRoom};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let bucket = TokenBucket::new(Quota::per_second(10).burst(2))?;
/// let limiter = Limiter::with_clock(bucket, ManualClock::new());
/// let room = WaitingRoom::for_wait(limiter, Duration::from_millis(300));
/// let waits: Vec<_> = (0..5).map(|_| room.reserve(1).unwrap().delay().as_millis()).collect();
/// assert_eq!(waits, [0, 0, 100, 200, 300]);
/// assert!(room.reserve(1).is_err());
/// assert_eq!(room.waiting_permits(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct WaitingRoom<G> {
    limiter: G,
    longest: Duration,
}

impl<G> WaitingRoom<G> {
    /// Makes a room in which no caller waits longer than `longest`. It holds as many permits as the
    /// limiter grants in that time.
    pub const fn for_wait(limiter: G, longest: Duration) -> Self {
        Self { limiter, longest }
    }

    /// Returns the limiter.
    pub const fn limiter(&self) -> &G {
        &self.limiter
    }

    /// Returns the longest time that a caller waits.
    pub const fn longest_wait(&self) -> Duration {
        self.longest
    }
}

impl<A: Reserve + ChangeQuota, C, P: AtomicWord> WaitingRoom<Limiter<A, C, P>> {
    /// Makes a room in which callers wait for at most `waiting` permits at once. Of a request for
    /// several permits, only those that are not available yet count.
    ///
    /// Ticks are whole nanoseconds, so each waiter's tick is rounded up, and the room allows a
    /// nanosecond for each of them. A waiter that is due within `waiting` nanoseconds may therefore
    /// no longer count as waiting.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket, WaitingRoom};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_second(3).burst(1))?;
    /// let room = WaitingRoom::for_permits(Limiter::with_clock(bucket, ManualClock::new()), 2);
    /// assert!(room.reserve(1)?.is_due());
    /// assert!(!room.reserve(1)?.is_due());
    /// assert!(!room.reserve(1)?.is_due());
    /// assert!(room.reserve(1).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn for_permits(limiter: Limiter<A, C, P>, waiting: u64) -> Self {
        let quota = limiter.quota();
        let (period, permits) = (
            quota.period().as_nanos(),
            u128::from(quota.permits().max(1)),
        );
        let time = match quota.burst_size() {
            1 => Self::one_by_one(&limiter, waiting),
            _ => {
                let time = period.saturating_mul(waiting.into()).div_ceil(permits);
                // Allow a nanosecond for each waiter, but less than the time to serve one more.
                time.saturating_add(u128::from(waiting).min(period / permits / 2))
            }
        };
        let longest = Duration::from_nanos(u64::try_from(time).unwrap_or(u64::MAX));
        Self { limiter, longest }
    }

    /// Returns how many nanoseconds the last of `waiting` callers waits if each is due a whole
    /// number of nanoseconds after the one before. Extrapolates from at most 10 000 callers, and
    /// adds a nanosecond.
    fn one_by_one(limiter: &Limiter<A, C, P>, waiting: u64) -> u128 {
        let some = waiting.min(10_000);
        let (mut word, mut due) = (0, Tick::ZERO);
        for _ in 0..=some {
            let reserved = limiter.algorithm().reserve(word, Tick::ZERO, 1, Tick::MAX);
            if let Ok((next, granted)) = reserved {
                (word, due) = (next, granted.due());
            }
        }
        let time = u128::from(due.as_nanos()).saturating_mul(waiting.into());
        time.div_ceil(some.max(1).into()).saturating_add(1)
    }
}

impl<G: ReserveLimiter> WaitingRoom<G> {
    /// [`reserve`](Self::reserve) at the tick `now`.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the room is full.
    pub fn reserve_at(&self, n: u64, now: Tick) -> Result<Reservation<&G>, Denied> {
        Reservation::until(&self.limiter, n, now.saturating_add(self.longest), now)
    }
}

impl<G: ReserveLimiter<Clock: Clock>> WaitingRoom<G> {
    /// Reserves a place without blocking. The caller waits until the reservation is due.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the room is full: `retry_after` says when there will be a place.
    /// [`Denied::Never`] if `n` permits do not fit into the empty room.
    pub fn reserve(&self, n: u64) -> Result<Reservation<&G>, Denied> {
        self.reserve_at(n, self.limiter.clock().now())
    }

    /// Returns how many permits callers wait for, rounded up. This includes permits that were
    /// charged into debt, and permits that were lost when a waiter gave up.
    pub fn waiting_permits(&self) -> u64 {
        self.limiter.waiting_at(self.limiter.clock().now())
    }

    /// Takes `n` permits and waits for them in a future.
    ///
    /// ```
    /// use std::time::Duration;
    /// # #[cfg(feature = "tokio")]
    /// use tollgate::wait::TokioTimer;
    /// use tollgate::{Limiter, Quota, WaitingRoom};
    ///
    /// # #[cfg(feature = "tokio")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    /// # runtime.block_on(async {
    /// let limiter = Limiter::token_bucket(Quota::per_second(1000).burst(1))?;
    /// let room = WaitingRoom::for_wait(limiter, Duration::from_millis(50));
    /// for _ in 0..3 {
    ///     room.enter_with_timer(TokioTimer, 1).await?;
    /// }
    /// # Ok(())
    /// # })
    /// # }
    /// # #[cfg(not(feature = "tokio"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    ///
    /// [`Denied`] if the room is full.
    #[cfg(feature = "wait")]
    pub async fn enter_with_timer<T: crate::clock::Timer>(
        &self,
        timer: T,
        n: u64,
    ) -> Result<Granted, Denied> {
        let on = super::AsyncLimiter::new(&self.limiter, timer);
        on.acquire_timeout(n, self.longest).await
    }
}

impl<G: ReserveLimiter<Clock: SleepClock>> WaitingRoom<G> {
    /// Takes `n` permits, and blocks this thread until they are available.
    ///
    /// # Errors
    ///
    /// [`Denied`] at once if the room is full: `retry_after` says when there will be a place.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, Quota, WaitingRoom};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::token_bucket(Quota::per_second(1000).burst(1))?;
    /// let room = WaitingRoom::for_wait(limiter, Duration::from_millis(50));
    /// room.enter(1)?;
    /// room.enter(1)?; // a millisecond later
    /// # Ok(())
    /// # }
    /// ```
    pub fn enter(&self, n: u64) -> Result<Granted, Denied> {
        let now = self.limiter.clock().now();
        blocking::acquire(&self.limiter, n, now, now.saturating_add(self.longest))
    }
}

impl<G: ReserveLimiter<Clock: Clock>> Metrics for WaitingRoom<G> {
    fn value(&self, metric: Metric) -> Option<Value> {
        match metric {
            Metric::WaitingPermits => Some(self.waiting_permits().into()),
            Metric::LongestWait => Some(self.longest.as_secs_f64().into()),
            _ => None,
        }
    }
}
