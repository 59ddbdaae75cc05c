use core::fmt;
use core::future::Future;
use core::ops::Deref;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use super::queue::{GaveUp, QueueTicket};
use super::{Concurrency, ConcurrencyGuard};
use crate::outcome::Denied;
use crate::sync::Sleeper;

/// A future that enters a [`Concurrency`] when there is room and its turn has come. Await it on any
/// runtime, or call [`wait`](Self::wait) in a thread.
///
/// [`Concurrency::enter`] returns it. It stands in line from its first poll or wait until it is
/// inside or dropped. If it is dropped while it waits, it leaves the line, and any room that it was
/// given goes to the next waiter. It resolves to a guard, or to [`Denied::Never`] if its weight
/// exceeds the limit, which may have been lowered meanwhile. If it is polled after that, it starts
/// again.
///
/// A future may be inside before its task runs again. If it is leaked or never polled again, it
/// keeps that room.
///
/// ```
/// use std::thread;
/// use std::time::Duration;
/// use tollgate::{Concurrency, Denied};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Concurrency::new(1)?;
/// let guard = limiter.try_enter()?;
/// let late = limiter.enter().wait_timeout(Duration::from_millis(1));
/// assert!(matches!(late, Err(Denied::Busy { .. })));
/// thread::scope(|scope| {
///     scope.spawn(|| limiter.enter().wait().unwrap());
///     drop(guard); // lets the other one in
/// });
/// # Ok(())
/// # }
/// ```
#[must_use = "it enters only when it is awaited or waited for"]
pub struct EnterFuture<G: Deref<Target = Concurrency>> {
    limiter: G,
    n: u64,
    /// The place in line, if it stands there.
    ticket: Option<QueueTicket>,
}

impl<G: Deref<Target = Concurrency>> EnterFuture<G> {
    #[inline]
    pub(super) fn new(limiter: G, n: u64) -> Self {
        Self {
            limiter,
            n,
            ticket: None,
        }
    }

    /// Tries to enter. If it must wait, the thread that lets it in wakes this waker.
    fn ask(&mut self, waker: &Waker) -> Poll<Result<(), Denied>> {
        self.limiter.ask(self.n, &mut self.ticket, waker)
    }
}

impl<G: Deref<Target = Concurrency> + Clone> EnterFuture<G> {
    /// Counts the answer, and makes the guard.
    fn answer(&self, entered: Result<(), Denied>) -> Result<ConcurrencyGuard<G>, Denied> {
        self.limiter.count(entered.is_ok(), self.n);
        entered.map(|()| ConcurrencyGuard::new(self.limiter.clone(), self.n))
    }

    /// Blocks this thread until the future is inside.
    ///
    /// # Errors
    ///
    /// [`Denied::Never`] if its weight exceeds the limit.
    pub fn wait(self) -> Result<ConcurrencyGuard<G>, Denied> {
        self.wait_at_most(None)
    }

    /// Blocks this thread until the future is inside, for at most `timeout`. With a timeout of zero
    /// it only tries, and does not stand in line.
    ///
    /// # Errors
    ///
    /// [`Denied::Busy`] if its turn has not come by then; [`Denied::Never`] if its weight exceeds
    /// the limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Concurrency;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Concurrency::new(1)?;
    /// let guard = limiter.enter().wait_timeout(Duration::ZERO)?;
    /// assert!(limiter.enter().wait_timeout(Duration::ZERO).is_err());
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_timeout(self, timeout: Duration) -> Result<ConcurrencyGuard<G>, Denied> {
        self.wait_at_most(Some(timeout))
    }

    #[inline]
    fn wait_at_most(self, timeout: Option<Duration>) -> Result<ConcurrencyGuard<G>, Denied> {
        if self.ticket.is_some() {
            // It was polled before, so it stands in line or is already inside.
            return self
                .wait_until(timeout.and_then(|timeout| Instant::now().checked_add(timeout)));
        }
        match self.limiter.take(self.n, false) {
            Err(denied) if timeout != Some(Duration::ZERO) && !denied.is_permanent() => {
                // A deadline past the clock's range is no deadline.
                self.wait_until(timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
            }
            entered => self.answer(entered),
        }
    }

    fn wait_until(mut self, deadline: Option<Instant>) -> Result<ConcurrencyGuard<G>, Denied> {
        let sleeper = Sleeper::here();
        let waker = Waker::from(Arc::clone(&sleeper));
        loop {
            if let Poll::Ready(asked) = self.ask(&waker) {
                return self.answer(asked);
            }
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => sleeper.sleep(),
                Some(Duration::ZERO) => return self.too_late(),
                Some(left) => sleeper.sleep_at_most(left),
            }
        }
    }

    fn too_late(mut self) -> Result<ConcurrencyGuard<G>, Denied> {
        let ticket = self.ticket.take();
        let entered = match ticket.map(|ticket| self.limiter.give_up(ticket)) {
            // It was let in at the last moment.
            Some(GaveUp::Inside) => Ok(()),
            Some(GaveUp::Refused(limit)) => Err(Denied::never(self.n, limit)),
            _ => Err(Denied::busy(self.n)),
        };
        self.answer(entered)
    }
}

impl<G: Deref<Target = Concurrency> + Clone + Unpin> Future for EnterFuture<G> {
    type Output = Result<ConcurrencyGuard<G>, Denied>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let asked = this.ask(context.waker());
        asked.map(|entered| this.answer(entered))
    }
}

impl<G: Deref<Target = Concurrency>> Drop for EnterFuture<G> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            drop(self.limiter.quit(self.n, Some(ticket), false));
        }
    }
}

impl<G: Deref<Target = Concurrency>> fmt::Debug for EnterFuture<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnterFuture")
            .field("n", &self.n)
            .field("waits", &self.ticket.is_some())
            .finish()
    }
}
