use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
#[cfg(any(feature = "futures", feature = "tokio"))]
use std::boxed::Box;

use pin_project_lite::pin_project;

use super::AsyncLimiter;
use super::sleep_check::SleepCheck;
use crate::clock::{Clock, Tick, Timer};
use crate::outcome::{Denied, Granted};
use crate::traits::ReserveLimiter;

pin_project! {
    /// The state of a future that waits for permits: its stage, and the sleep until the stage ends.
    #[derive(Debug)]
    pub(super) struct PermitWait<S> {
        stage: Option<Stage>,
        check: SleepCheck,
        #[pin]
        sleep: Option<S>,
    }
}

#[derive(Debug)]
enum Stage {
    /// Sleeps until the jitter ends, and then reserves permits that are due at `latest` or sooner.
    Jitter { ends: Tick, latest: Tick },
    /// The permits are reserved, and due at this tick.
    Reserved { granted: Granted, due: Tick },
}

impl Stage {
    fn wakes(&self) -> Tick {
        match self {
            Self::Jitter { ends, .. } => *ends,
            Self::Reserved { due, .. } => *due,
        }
    }

    /// Reserves permits that are due at `latest` or sooner.
    fn reserved<G: ReserveLimiter<Clock: Clock>, T>(
        on: &AsyncLimiter<G, T>,
        n: u64,
        latest: Tick,
        now: Tick,
    ) -> Result<Self, Denied> {
        let granted = on.limiter.reserve_until_at(n, latest, now)?;
        let due = granted.due();
        Ok(Self::Reserved { granted, due })
    }

    /// Like `reserved`, but first delays a caller that has to wait. The delay is the jitter, or the
    /// time that its timeout leaves over if that is shorter.
    fn jittered<G: ReserveLimiter<Clock: Clock>, T>(
        on: &AsyncLimiter<G, T>,
        n: u64,
        latest: Tick,
        now: Tick,
    ) -> Result<Self, Denied> {
        let late = match Self::reserved(on, n, now, now) {
            Err(Denied::Later { retry_after, .. }) => retry_after,
            Err(_) => return Self::reserved(on, n, latest, now),
            done => return done,
        };
        let spare = latest.saturating_since(now.saturating_add(late));
        match on.jitter.draw().min(spare) {
            Duration::ZERO => Self::reserved(on, n, latest, now),
            jitter => Ok(Self::Jitter {
                ends: now.saturating_add(jitter),
                latest,
            }),
        }
    }
}

/// How long to wait before asking a stuck limiter again.
#[cfg(feature = "futures")]
const STUCK: Duration = Duration::from_secs(1);

impl<S> PermitWait<S> {
    pub(super) const fn new() -> Self {
        Self {
            stage: None,
            check: SleepCheck::new(),
            sleep: None,
        }
    }
}

impl<S: Future<Output = ()>> PermitWait<S> {
    /// Reserves permits, unless that is done already, and sleeps until they are due. With jitter, a
    /// caller that has to wait sleeps for the jitter first and reserves afterwards.
    pub(super) fn poll_permits<G, T>(
        mut self: Pin<&mut Self>,
        on: &AsyncLimiter<G, T>,
        n: u64,
        timeout: Duration,
        context: &mut Context<'_>,
    ) -> Poll<Result<Granted, Denied>>
    where
        G: ReserveLimiter<Clock: Clock>,
        T: Timer<Sleep = S>,
    {
        let mut was_early = false;
        loop {
            let mut this = self.as_mut().project();
            let wakes = this.stage.as_ref().map(Stage::wakes);
            let (Some(wakes), Some(sleep)) = (wakes, this.sleep.as_mut().as_pin_mut()) else {
                let now = on.limiter.clock().now();
                let latest = now.saturating_add(timeout);
                let stage = match on.jitter.is_none() {
                    true => Stage::reserved(on, n, latest, now)?,
                    false => Stage::jittered(on, n, latest, now)?,
                };
                match self.as_mut().begin(on, stage, now) {
                    Some(granted) => return Poll::Ready(Ok(granted)),
                    None => continue,
                }
            };
            ready!(sleep.poll(context));
            let now = on.limiter.clock().now();
            if now >= wakes {
                match this.stage.take() {
                    Some(Stage::Jitter { latest, .. }) => {
                        this.sleep.set(None);
                        let stage = Stage::reserved(on, n, latest, now)?;
                        if let Some(granted) = self.as_mut().begin(on, stage, now) {
                            return Poll::Ready(Ok(granted));
                        }
                    }
                    Some(Stage::Reserved { granted, .. }) => {
                        this.sleep.set(None);
                        return Poll::Ready(Ok(granted.when_due()));
                    }
                    None => {}
                }
                continue;
            }
            if this.check.finds_mismatch(now) {
                self.give_up(on);
                return Poll::Ready(Err(Denied::timer_mismatch(n)));
            }
            // The timer woke too early, or does not run at the speed of the limiter's clock.
            let left = wakes.saturating_since(now);
            this.check.begins(now, left);
            this.sleep.set(Some(on.timer.sleep(left)));
            if was_early {
                // Yield, or a timer that never sleeps would keep other tasks from running.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            was_early = true;
        }
    }

    /// Returns the grant if it is due. Otherwise starts the sleep of this stage.
    fn begin<G, T>(
        self: Pin<&mut Self>,
        on: &AsyncLimiter<G, T>,
        stage: Stage,
        now: Tick,
    ) -> Option<Granted>
    where
        G: ReserveLimiter<Clock: Clock>,
        T: Timer<Sleep = S>,
    {
        let mut this = self.project();
        let wakes = stage.wakes();
        match stage {
            Stage::Reserved { granted, due } if due <= now => {
                this.sleep.set(None);
                return Some(granted.when_due());
            }
            stage => *this.stage = Some(stage),
        }
        let wait = wakes.saturating_since(now);
        this.check.begins(now, wait);
        this.sleep.set(Some(on.timer.sleep(wait)));
        None
    }

    /// Like `poll_permits`, for one permit and without an error: retries for as long as it takes.
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
        let denied = match ready!(turn.poll_permits(on, 1, Duration::MAX, context)) {
            Ok(granted) => return Poll::Ready(granted),
            Err(denied) => denied,
        };
        // The algorithm has no reservations and says when to try again. Or the limiter is stuck,
        // until a caller resets it, or the timer does not follow the clock. Try again later.
        let mut this = self.project();
        if this.sleep.is_none() {
            let wait = denied.retry_after().unwrap_or(STUCK);
            this.sleep.set(Some(on.timer.sleep(wait)));
        }
        if let Some(sleep) = this.sleep.as_mut().as_pin_mut() {
            ready!(sleep.poll(context));
        }
        this.sleep.set(None);
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Cancels the reservation, if there is one.
    pub(super) fn give_up<G: ReserveLimiter<Clock: Clock>, T>(
        self: Pin<&mut Self>,
        on: &AsyncLimiter<G, T>,
    ) {
        let mut this = self.project();
        this.sleep.set(None);
        if let Some(Stage::Reserved { granted, .. }) = this.stage.take() {
            let (n, now) = (granted.n(), on.limiter.clock().now());
            _ = on.limiter.cancel_at(granted, n, now);
        }
    }
}

/// The same timer with boxed sleeps, so that types which hold a sleep are `Unpin`.
#[cfg(any(feature = "futures", feature = "tokio"))]
#[derive(Debug, Clone, Copy)]
pub(super) struct BoxedSleeps<T>(T);

#[cfg(any(feature = "futures", feature = "tokio"))]
impl<T: Timer> Timer for BoxedSleeps<T> {
    type Sleep = Pin<Box<T::Sleep>>;

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        Box::pin(self.0.sleep(duration))
    }
}

#[cfg(any(feature = "futures", feature = "tokio"))]
impl<G, T> AsyncLimiter<G, T> {
    pub(super) fn boxed_sleeps(self) -> AsyncLimiter<G, BoxedSleeps<T>> {
        AsyncLimiter {
            limiter: self.limiter,
            timer: BoxedSleeps(self.timer),
            jitter: self.jitter,
        }
    }
}
