use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use pin_project_lite::pin_project;

use super::Jitter;
use super::turn::Turn;
use crate::clock::{Clock, Timer};
use crate::gate::ReserveGate;
use crate::outcome::{Denied, Granted};

/// A limiter whose callers wait in futures, on any runtime: [`Limiter::on`](crate::Limiter::on)
/// makes it.
///
/// Each waiting future takes its permits when it is first polled, by one exchange, learns when they
/// are due, and sleeps once until then. It may wake late, never early; the first to come is due
/// first. A future that is dropped while it waits cancels its reservation: see
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
/// let gate = Limiter::with_clock(bucket, clock.clone());
///
/// let waits = gate.on(&clock);
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
pub struct On<G, T> {
    pub(super) gate: G,
    pub(super) timer: T,
    pub(super) jitter: Jitter,
}

impl<G, T> On<G, T> {
    /// The callers of this limiter wait by this timer. The limiter may be borrowed, or shared in an
    /// `Arc`.
    pub const fn new(gate: G, timer: T) -> Self {
        Self {
            gate,
            timer,
            jitter: Jitter::NONE,
        }
    }

    /// Lets each caller wait a little longer, by a random time, so that not all wake at once.
    #[must_use]
    pub fn jitter(self, jitter: Jitter) -> Self {
        Self { jitter, ..self }
    }

    /// The limiter.
    pub const fn gate(&self) -> &G {
        &self.gate
    }
}

impl<G: ReserveGate<Clock: Clock>, T: Timer> On<G, T> {
    /// Takes one permit, and waits until it is there.
    ///
    /// Its result is an error if it will never be there.
    pub fn acquire(&self) -> Acquire<'_, G, T> {
        self.acquire_n(1)
    }

    /// Takes `n` permits, and waits until they are there.
    ///
    /// Its result is an error if they will never be there.
    pub fn acquire_n(&self, n: u64) -> Acquire<'_, G, T> {
        self.acquire_timeout(n, Duration::MAX)
    }

    /// The same if that takes no longer than `timeout`; else nothing is taken, and nobody waits.
    pub fn acquire_timeout(&self, n: u64, timeout: Duration) -> Acquire<'_, G, T> {
        Acquire {
            on: self,
            n,
            timeout,
            has_ended: false,
            turn: Turn::new(),
        }
    }
}

#[cfg(any(feature = "futures", feature = "tokio"))]
impl<G: ReserveGate<Clock: Clock>, T> On<G, T> {
    /// Only so many permits of a grant were used.
    pub(super) fn settle(&self, granted: Granted, used: u64) {
        let unused = granted.n().saturating_sub(used);
        if unused > 0 {
            let now = self.gate.clock().now();
            _ = self.gate.cancel_at(granted, unused, now);
        }
    }
}

pin_project! {
    /// Waits for permits. Dropped while it waits, it gives back what can be given back. It gives
    /// its answer once: to await it again never ends.
    #[must_use = "futures do nothing unless they are polled"]
    pub struct Acquire<'o, G, T>
    where
        G: ReserveGate,
        G::Clock: Clock,
        T: Timer,
    {
        on: &'o On<G, T>,
        n: u64,
        timeout: Duration,
        has_ended: bool,
        #[pin]
        turn: Turn<T::Sleep>,
    }

    impl<G, T> PinnedDrop for Acquire<'_, G, T>
    where
        G: ReserveGate,
        G::Clock: Clock,
        T: Timer,
    {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            this.turn.give_up(this.on);
        }
    }
}

impl<G: ReserveGate<Clock: Clock>, T: Timer> Future for Acquire<'_, G, T> {
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

impl<G: ReserveGate<Clock: Clock>, T: Timer> fmt::Debug for Acquire<'_, G, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire")
            .field("n", &self.n)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
