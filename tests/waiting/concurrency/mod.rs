//! A [`Concurrency`] never admits more than its limit, admits waiters in the order in which they
//! began to wait, and loses nothing.

mod model;
mod steps;
mod storms;
mod threads;
mod verbs;
mod wakers;

use tollgate::concurrency::{ConcurrencyGuard, EnterFuture};

use crate::support::*;

type Tested = Arc<Concurrency>;
type Entered = Result<ConcurrencyGuard<Tested>, Denied>;

fn limiter(limit: u64) -> Tested {
    Arc::new(Concurrency::new(limit).expect("a limit"))
}

/// A limiter whose callers wait for at most `waiting` permits.
fn bounded(limit: u64, waiting: u64) -> Tested {
    let limiter = Concurrency::new(limit).expect("a limit");
    Arc::new(limiter.max_waiting_permits(waiting))
}

/// Asserts that no caller is inside or waits, and that the whole limit is available.
fn assert_empty(limiter: &Tested) {
    assert_eq!((limiter.inside(), limiter.waiting()), (0, 0));
    assert_eq!(limiter.waiting_permits(), 0);
    let all = limiter.try_enter_n(limiter.limit()).expect("there is room");
    assert!(limiter.try_enter().is_err());
    drop(all);
}

/// A waiter that is polled by hand.
struct Waiter {
    enter: EnterFuture<Tested>,
    wake_counter: Arc<WakeCounter>,
}

impl Waiter {
    fn new(limiter: &Tested, n: u64) -> Self {
        Self {
            enter: limiter.enter_owned(n),
            wake_counter: Arc::default(),
        }
    }

    fn poll(&mut self) -> Poll<Entered> {
        poll_by(Pin::new(&mut self.enter), &self.wake_counter.clone().into())
    }

    /// Creates a waiter that stands in the queue.
    fn standing(limiter: &Tested, n: u64) -> Self {
        let mut waiter = Self::new(limiter, n);
        assert!(waiter.poll().is_pending());
        waiter
    }
}
