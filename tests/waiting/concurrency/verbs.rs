//! What each verb says: bad input, timeouts, threads that wait, waiters that were let in already.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use tollgate::{Concurrency, ConfigError, Denied, MAX_CONCURRENCY};

use super::{Entered, Gate, Waiter, assert_empty, gate};
use crate::support::deadline;

#[test]
fn a_limit_that_can_not_be_is_refused() {
    let above = |limit| ConfigError::ConcurrencyTooLarge {
        limit,
        max: MAX_CONCURRENCY,
    };
    let gate = gate(3);
    for (limit, error) in [
        (0, ConfigError::ZeroConcurrency),
        (MAX_CONCURRENCY + 1, above(MAX_CONCURRENCY + 1)),
        (1 << 32, above(1 << 32)),
        (u64::MAX, above(u64::MAX)),
    ] {
        assert_eq!(Concurrency::new(limit).err(), Some(error));
        assert_eq!(gate.set_limit(limit), Err(error));
        assert_eq!((error.field(), gate.limit()), ("limit", 3));
    }
    let message = "limit is 1099511627776, but must be from 1 to 2147483647";
    assert_eq!(above(1 << 40).to_string(), message);
    let message = "limit is 0, but must be at least 1";
    assert_eq!(ConfigError::ZeroConcurrency.to_string(), message);
}

#[test]
fn busy_says_later_and_not_when() {
    let gate = gate(1);
    let _held = gate.try_enter();
    let denied = gate.try_enter().expect_err("it is full");
    assert_eq!(denied, Denied::busy(1));
    assert!(!denied.is_permanent());
    assert_eq!((denied.retry_after(), denied.requested()), (None, 1));
    let message = "limit reached: 1 more when others have left";
    assert_eq!(denied.to_string(), message);
}

/// Until one more waits.
fn until_it_waits<T: Send + 'static>(
    gate: &Gate,
    work: fn(&Concurrency) -> T,
) -> thread::JoinHandle<T> {
    let before = gate.waiting();
    let thread = thread::spawn({
        let gate = Arc::clone(gate);
        move || work(&gate)
    });
    while gate.waiting() == before {
        thread::yield_now();
    }
    thread
}

#[test]
fn a_thread_that_waits_is_let_in_or_refused_or_gives_up() {
    deadline("threads that wait for room", || {
        let gate = gate(2);
        let held = gate.enter_n(2).wait_timeout(Duration::ZERO).expect("room");
        for timeout in [Duration::ZERO, Duration::from_millis(1)] {
            let denied = gate.enter().wait_timeout(timeout).err();
            assert_eq!(denied, Some(Denied::busy(1)));
            assert_eq!((gate.waiting(), gate.inside()), (0, 2));
        }
        let threads = [
            until_it_waits(&gate, |gate| gate.enter().wait().map(|guard| guard.n())),
            until_it_waits(&gate, |gate| gate.enter_n(2).wait().map(|guard| guard.n())),
            until_it_waits(&gate, |gate| {
                let entered = gate.enter_n(2).wait_timeout(Duration::MAX);
                entered.map(|guard| guard.n())
            }),
            until_it_waits(&gate, |gate| {
                let entered = gate.enter().wait_timeout(Duration::from_secs(1 << 30));
                entered.map(|guard| guard.n())
            }),
        ];
        gate.set_limit(1).expect("a limit");
        drop(held);
        let answers = threads.map(|thread| thread.join().expect("no panic"));
        let never = Err(Denied::never(2, 1));
        assert_eq!(answers, [Ok(1), never, never, Ok(1)]);
        assert_empty(&gate);
    });
}

/// A waiter that was polled and let in is inside once, however it asks, whatever the limit is then.
#[test]
fn what_was_let_in_is_inside_however_it_asks() {
    deadline("a waiter that is inside already", || {
        let asks: [fn(Waiter) -> Entered; 3] = [
            |waiter| waiter.enter.wait(),
            |waiter| waiter.enter.wait_timeout(Duration::ZERO),
            |mut waiter| match waiter.poll() {
                Poll::Ready(answer) => answer,
                Poll::Pending => panic!("it is told to wait"),
            },
        ];
        for ask in asks {
            let gate = gate(5);
            let held = gate.try_enter().expect("room");
            let waiter = Waiter::standing(&gate, 5);
            drop(held);
            assert_eq!((gate.inside(), gate.waiting()), (5, 0));
            gate.set_limit(3).expect("a limit");
            gate.reset_peak();
            let guard = ask(waiter).expect("it is inside");
            assert_eq!((guard.n(), gate.inside(), gate.peak()), (5, 5, 5));
            drop(guard);
            assert_empty(&gate);
        }
    });
}

#[test]
fn all_of_it_can_be_sent_and_shared() {
    fn text(one: impl Send + Sync + std::fmt::Debug) -> String {
        format!("{one:?}")
    }
    let gate = gate(2);
    assert_eq!(text(gate.try_enter_owned(1)), text(gate.try_enter()));
    assert!(text((gate.enter(), gate.enter_owned(1))).contains("n: 1"));
    let _held = gate.try_enter();
    assert!(text(&gate).contains("limit: 2, inside: 1, waiting: 0, peak: 1"));
}

#[test]
fn only_the_last_waker_is_woken() {
    let gate = gate(1);
    let held = gate.try_enter().expect("room");
    let mut waiter = Waiter::standing(&gate, 1);
    let first = std::mem::take(&mut waiter.bell);
    assert!(waiter.poll().is_pending());
    drop(held);
    assert_eq!((first.rung(), waiter.bell.rung()), (0, 1));
}

#[test]
fn the_widest_limit_holds() {
    let gate = gate(MAX_CONCURRENCY);
    let all = gate.try_enter_n(MAX_CONCURRENCY).expect("room");
    assert_eq!(gate.try_enter().err(), Some(Denied::busy(1)));
    assert_eq!(gate.set_limit(1), Ok(MAX_CONCURRENCY));
    assert_eq!((gate.inside(), gate.limit()), (MAX_CONCURRENCY, 1));
    drop(all);
    assert_empty(&gate);
}

#[test]
fn a_thread_does_not_wait_for_more_than_the_limit() {
    deadline("more than the limit", || {
        let gate = gate(3);
        for n in [4, MAX_CONCURRENCY + 1, 1 << 32, u64::MAX] {
            let never = Some(Denied::never(n, 3));
            assert_eq!(gate.enter_n(n).wait().err(), never);
            assert_eq!(gate.enter_n(n).wait_timeout(Duration::MAX).err(), never);
        }
        assert_eq!((gate.inside(), gate.peak()), (0, 0));
    });
}

#[test]
fn a_waiter_that_is_dropped_by_a_panic_leaves_the_line() {
    let gate = gate(5);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _inside = gate.try_enter_n(3);
        let _waits = Waiter::standing(&gate, 4);
        resume_unwind(Box::new("out"));
    }));
    assert!(panicked.is_err());
    assert_eq!(gate.peak(), 3);
    assert_empty(&gate);
}
