//! The line before a composition: first come, first served, and none waits for longer than its
//! members do.

mod blocking;
mod bounded;
mod dropped;
mod lines;
mod order;
mod panics;
mod queue_limit;
mod timeouts;
mod verbs;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

use tollgate::clock::{ManualSleep, Timer};
use tollgate::compose::{All, AllDenied, AllGranted, Line};
use tollgate::{Concurrency, Limiter, ManualClock, Quota, TokenBucket};

use crate::support::{WakeCounter, poll_by};

type Rate = Limiter<TokenBucket, ManualClock>;
type Members = (Rate, Arc<Concurrency>);
type Limits = Arc<All<Members, ManualClock>>;
type Grant = AllGranted<Limits, Members, ManualClock>;

fn rate(quota: Quota, clock: &ManualClock) -> Rate {
    Limiter::with_clock(TokenBucket::new(quota).expect("a quota"), clock.clone())
}

/// A line before a rate and a concurrency.
struct Tested {
    clock: ManualClock,
    inside: Arc<Concurrency>,
    limits: Limits,
    line: Line<Limits>,
}

impl Tested {
    fn new(quota: Quota, limit: u64) -> Self {
        let clock = ManualClock::new();
        let inside = Arc::new(Concurrency::new(limit).expect("a limit"));
        let members = (rate(quota, &clock), Arc::clone(&inside));
        let limits = Arc::new(All::new(members).expect("two limits"));
        let line = Line::new(Arc::clone(&limits));
        Self {
            clock,
            inside,
            limits,
            line,
        }
    }

    /// Returns how many permits the rate has.
    fn rate(&self) -> u64 {
        self.limits.inner().0.available()
    }

    /// Asserts that no caller waits or is inside.
    fn assert_empty(&self) {
        let waiting = (self.line.waiting(), self.inside.waiting());
        assert_eq!((waiting, self.clock.sleepers()), ((0, 0), 0));
        assert_eq!(self.inside.inside(), 0);
    }

    /// A caller that has not been polled.
    fn caller(&self, n: u64) -> Caller<'_> {
        let timer = CountedSleeps {
            clock: self.clock.clone(),
            sleeps: Arc::default(),
        };
        let (line, sleeps) = (&self.line, Arc::clone(&timer.sleeps));
        Caller {
            acquire: Box::pin(async move { line.with_timer(timer).acquire_n(n).await }),
            wakes: Arc::default(),
            sleeps,
            seen: 0,
        }
    }

    /// A caller that waits.
    fn waiting(&self, n: u64) -> Caller<'_> {
        let mut caller = self.caller(n);
        assert!(caller.poll().is_pending());
        caller
    }
}

/// A timer that counts its sleeps.
struct CountedSleeps {
    clock: ManualClock,
    sleeps: Arc<AtomicU64>,
}

impl Timer for CountedSleeps {
    type Sleep = ManualSleep;

    fn sleep(&self, duration: Duration) -> ManualSleep {
        self.sleeps.fetch_add(1, SeqCst);
        self.clock.sleep(duration)
    }
}

/// A future that is polled by hand.
struct Caller<'l> {
    acquire: Pin<Box<dyn Future<Output = Result<Grant, AllDenied>> + Send + 'l>>,
    wakes: Arc<WakeCounter>,
    sleeps: Arc<AtomicU64>,
    /// The number of wake-ups before the latest poll.
    seen: u64,
}

impl Caller<'_> {
    fn poll(&mut self) -> Poll<Result<Grant, AllDenied>> {
        self.seen = self.wakes.wakes();
        poll_by(self.acquire.as_mut(), &self.wakes.clone().into())
    }

    fn was_woken(&self) -> bool {
        self.wakes.wakes() > self.seen
    }

    fn sleeps(&self) -> u64 {
        self.sleeps.load(SeqCst)
    }

    /// The grant of a caller that was woken.
    fn granted(&mut self) -> Grant {
        assert!(self.was_woken(), "it was not woken");
        match self.poll() {
            Poll::Ready(Ok(granted)) => granted,
            other => panic!("no grant: {other:?}"),
        }
    }
}
