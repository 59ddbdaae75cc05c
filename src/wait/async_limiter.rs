use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use pin_project_lite::pin_project;

use super::Jitter;
use super::permit_wait::PermitWait;
use crate::clock::{Clock, Timer};
use crate::outcome::{Denied, Granted};
use crate::traits::ReserveLimiter;

/// A limiter whose callers wait in futures, on any runtime.
/// [`Limiter::with_timer`](crate::Limiter::with_timer) returns one.
///
/// A future takes its permits when it is first polled, with one atomic exchange. It then knows when
/// they are due, and sleeps once until that tick. It may wake late, never early. Futures are due in
/// the order of their first polls. Dropping a future that waits cancels its reservation: see
/// [`Reservation::cancel`](crate::Reservation::cancel).
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # pollster(async {
/// let clock = ManualClock::new(); // with tokio: `TokioTimer` and the system's clock
/// let bucket = TokenBucket::new(Quota::per_second(1).burst(2))?;
/// let limiter = Limiter::with_clock(bucket, clock.clone());
///
/// let waits = limiter.with_timer(&clock);
/// waits.acquire().await?;
/// waits.acquire_n(1).await?;
/// let denied = waits.acquire_timeout(1, Duration::from_millis(999)).await.unwrap_err();
/// assert_eq!(denied.retry_after(), Some(Duration::from_millis(1)));
/// # Ok(())
/// # })
/// # }
/// # fn pollster<T>(future: impl Future<Output = T>) -> T {
/// #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// #     match std::pin::pin!(future).poll(&mut context) {
/// #         std::task::Poll::Ready(done) => done,
/// #         std::task::Poll::Pending => unreachable!("nothing waits here"),
/// #     }
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct AsyncLimiter<G, T> {
    pub(super) limiter: G,
    pub(super) timer: T,
    pub(super) jitter: Jitter,
}

impl<G, T> AsyncLimiter<G, T> {
    /// Makes a limiter whose callers wait with this timer. The limiter may be borrowed, or shared
    /// in an `Arc`.
    pub const fn new(limiter: G, timer: T) -> Self {
        Self {
            limiter,
            timer,
            jitter: Jitter::NONE,
        }
    }

    /// Adds a random delay for each caller that has to wait, which spreads callers out. The caller
    /// takes its permits after the delay. The limit is still kept, but callers may be served out of
    /// order: a later one with a shorter delay may go first.
    ///
    /// A caller that does not have to wait is not delayed. With a timeout, the delay is at most
    /// what the wait itself leaves of the timeout. If other callers take permits during the delay,
    /// the caller may be denied after it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::wait::Jitter;
    /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), tollgate::error::QuotaError> {
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::new(Quota::per_second(20).burst(1))?;
    /// let limiter = Limiter::with_clock(bucket, clock.clone());
    /// let jitter = Jitter::between(Duration::from_millis(5), Duration::from_millis(50));
    /// let polite = limiter.with_timer(&clock).jitter(jitter);
    /// # _ = polite;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn jitter(self, jitter: Jitter) -> Self {
        Self { jitter, ..self }
    }

    /// Returns the limiter.
    pub const fn limiter(&self) -> &G {
        &self.limiter
    }
}

impl<G: ReserveLimiter<Clock: Clock>, T: Timer> AsyncLimiter<G, T> {
    /// Takes one permit, and waits until it is available.
    ///
    /// The future returns [`Denied`] if the permit will never be available, or if the timer does
    /// not follow the limiter's clock.
    ///
    /// A caller that gives up in the middle of the line loses its permit if others already wait
    /// behind it: they were told when they are due, and that does not change. See
    /// [`Reservation::cancel`](crate::Reservation::cancel).
    /// [`acquire_timeout`](Self::acquire_timeout) avoids this: if the wait would be too long, it
    /// takes nothing and returns at once.
    pub fn acquire(&self) -> AcquireFuture<'_, G, T> {
        self.acquire_n(1)
    }

    /// Takes `n` permits together, and waits until they are available.
    ///
    /// The future returns [`Denied`] if the permits will never be available, or if the timer does
    /// not follow the limiter's clock.
    pub fn acquire_n(&self, n: u64) -> AcquireFuture<'_, G, T> {
        self.acquire_timeout(n, Duration::MAX)
    }

    /// Takes `n` permits, waiting for at most `timeout`. If they would be available only later, the
    /// future takes nothing and returns [`Denied`] at once.
    pub fn acquire_timeout(&self, n: u64, timeout: Duration) -> AcquireFuture<'_, G, T> {
        AcquireFuture {
            on: self,
            n,
            timeout,
            has_ended: false,
            turn: PermitWait::new(),
        }
    }
}

#[cfg(any(feature = "futures", feature = "tokio"))]
impl<G: ReserveLimiter<Clock: Clock>, T> AsyncLimiter<G, T> {
    /// Gives back all permits of a grant but the first `used`.
    pub(super) fn settle(&self, granted: Granted, used: u64) {
        let unused = granted.n().saturating_sub(used);
        if unused > 0 {
            let now = self.limiter.clock().now();
            _ = self.limiter.cancel_at(granted, unused, now);
        }
    }
}

pin_project! {
    /// The future of [`AsyncLimiter::acquire`], which waits for permits. Dropping it while it waits
    /// gives its permits back as far as possible. If it is polled again after it has completed, it
    /// stays pending forever.
    #[must_use = "futures do nothing unless they are polled"]
    pub struct AcquireFuture<'o, G, T>
    where
        G: ReserveLimiter,
        G::Clock: Clock,
        T: Timer,
    {
        on: &'o AsyncLimiter<G, T>,
        n: u64,
        timeout: Duration,
        has_ended: bool,
        #[pin]
        turn: PermitWait<T::Sleep>,
    }

    impl<G, T> PinnedDrop for AcquireFuture<'_, G, T>
    where
        G: ReserveLimiter,
        G::Clock: Clock,
        T: Timer,
    {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            this.turn.give_up(this.on);
        }
    }
}

impl<G: ReserveLimiter<Clock: Clock>, T: Timer> Future for AcquireFuture<'_, G, T> {
    type Output = Result<Granted, Denied>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if *this.has_ended {
            return Poll::Pending;
        }
        let polled = this
            .turn
            .poll_permits(this.on, *this.n, *this.timeout, context);
        *this.has_ended = polled.is_ready();
        polled
    }
}

impl<G: ReserveLimiter<Clock: Clock>, T: Timer> fmt::Debug for AcquireFuture<'_, G, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireFuture")
            .field("n", &self.n)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
