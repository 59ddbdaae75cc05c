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

use tollgate::clock::{ManualSleep, Timer};
use tollgate::compose::{AllDenied, AllGranted, Line};
use tollgate::concurrency::ConcurrencyGuard;

use crate::support::*;

type Rate = Limiter<TokenBucket, ManualClock>;
type Members = (Rate, Arc<Concurrency>);
type Limits = Arc<All<Members, ManualClock>>;
type Grant = AllGranted<Limits, Members, ManualClock>;

fn rate(quota: Quota, clock: &ManualClock) -> Rate {
    Limiter::with_clock(TokenBucket::new(quota).expect("a quota"), clock.clone())
}

fn is_permanent<G>(answer: Result<G, AllDenied>) -> bool {
    answer.is_err_and(|denied| denied.is_permanent())
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

    /// Two permits, one a second, and room for two.
    fn one_a_second() -> Self {
        Self::new(Quota::per_second(1).burst(2), 2)
    }

    /// The same without the permits.
    fn spent() -> Self {
        let tested = Self::one_a_second();
        drop(tested.line.try_acquire_n(2).expect("there are two"));
        tested
    }

    /// The same with the permits and no room: a caller from outside has it.
    fn full() -> (Self, ConcurrencyGuard<Arc<Concurrency>>) {
        let tested = Self::one_a_second();
        let outside = tested.inside.try_enter_owned(2).expect("room");
        (tested, outside)
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
            acquire: Polled::new(async move { line.with_timer(timer).acquire_n(n).await }),
            sleeps,
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

/// A caller that is polled by hand.
struct Caller<'l> {
    acquire: Polled<'l, Result<Grant, AllDenied>>,
    sleeps: Arc<AtomicU64>,
}

impl Caller<'_> {
    fn poll(&mut self) -> Poll<Result<Grant, AllDenied>> {
        self.acquire.poll()
    }

    fn was_woken(&self) -> bool {
        self.acquire.was_woken()
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
