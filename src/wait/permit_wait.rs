use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use pin_project_lite::pin_project;

use super::AsyncLimiter;
use crate::clock::{Clock, Tick, Timer};
use crate::outcome::{Denied, Granted};
use crate::rate_limiter::ReserveLimiter;

pin_project! {
    /// The turn of a waiting future: its reservation, and the sleep until that is due.
    #[derive(Debug)]
    pub(super) struct PermitWait<S> {
        taken: Option<Reserved>,
        #[pin]
        sleep: Option<S>,
    }
}

#[derive(Debug)]
struct Reserved {
    granted: Granted,
    wakes: Tick,
}

/// When a limiter that is stuck is asked again.
#[cfg(feature = "futures")]
const STUCK: Duration = Duration::from_secs(1);

impl<S> PermitWait<S> {
    pub(super) const fn new() -> Self {
        Self {
            taken: None,
            sleep: None,
        }
    }
}

impl<S: Future<Output = ()>> PermitWait<S> {
    /// Reserves, if that is not done, and sleeps until it is due.
    pub(super) fn poll_permits<G, T>(
        self: Pin<&mut Self>,
        on: &AsyncLimiter<G, T>,
        n: u64,
        timeout: Duration,
        context: &mut Context<'_>,
    ) -> Poll<Result<Granted, Denied>>
    where
        G: ReserveLimiter<Clock: Clock>,
        T: Timer<Sleep = S>,
    {
        let mut this = self.project();
        let mut was_early = false;
        loop {
            let wakes = this.taken.as_ref().map(|taken| taken.wakes);
            match (wakes, this.sleep.as_mut().as_pin_mut()) {
                (Some(wakes), Some(sleep)) => {
                    ready!(sleep.poll(context));
                    let now = on.limiter.clock().now();
                    if let Some(taken) = this.taken.take_if(|_| now >= wakes) {
                        this.sleep.set(None);
                        return Poll::Ready(Ok(taken.granted.when_due()));
                    }
                    // Woken early, or by a clock of another speed.
                    let left = wakes.saturating_since(now);
                    this.sleep.set(Some(on.timer.sleep(left)));
                    if was_early {
                        // A timer that does not sleep is not to keep others from running.
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    was_early = true;
                }
                _ => {
                    let now = on.limiter.clock().now();
                    let latest = now.saturating_add(timeout);
                    let granted = on.limiter.reserve_until_at(n, latest, now)?;
                    let due = granted.due();
                    if due <= now {
                        this.sleep.set(None);
                        return Poll::Ready(Ok(granted.when_due()));
                    }
                    // Not beyond the timeout.
                    let wakes = due.saturating_add(on.jitter.draw()).min(latest.max(due));
                    *this.taken = Some(Reserved { granted, wakes });
                    let wait = wakes.saturating_since(now);
                    this.sleep.set(Some(on.timer.sleep(wait)));
                }
            }
        }
    }

    /// The same for one permit, however long it takes.
    #[cfg(feature = "futures")]
    pub(super) fn poll_one<G, T>(
        mut self: Pin<&mut Self>,
        on: &AsyncLimiter<G, T>,
        context: &mut Context<'_>,
    ) -> Poll<Granted>
    where
        G: ReserveLimiter<Clock: Clock>,
        T: Timer<Sleep = S>,
    {
        let turn = self.as_mut();
        if let Ok(granted) = ready!(turn.poll_permits(on, 1, Duration::MAX, context)) {
            return Poll::Ready(granted);
        }
        // A caller has set the limiter beyond its clock's end, and may reset it.
        let mut this = self.project();
        if this.sleep.is_none() {
            this.sleep.set(Some(on.timer.sleep(STUCK)));
        }
        if let Some(sleep) = this.sleep.as_mut().as_pin_mut() {
            ready!(sleep.poll(context));
        }
        this.sleep.set(None);
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Cancels the reservation, if there is one: it is not waited for any more.
    pub(super) fn give_up<G: ReserveLimiter<Clock: Clock>, T>(
        self: Pin<&mut Self>,
        on: &AsyncLimiter<G, T>,
    ) {
        let mut this = self.project();
        this.sleep.set(None);
        if let Some(Reserved { granted, .. }) = this.taken.take() {
            let (n, now) = (granted.n(), on.limiter.clock().now());
            _ = on.limiter.cancel_at(granted, n, now);
        }
    }
}
