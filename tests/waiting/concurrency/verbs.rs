//! The answers of each verb: invalid input, timeouts, waiting threads, and waiters that were
//! already admitted.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tollgate::concurrency::ConcurrencyGuard;
use tollgate::error::LimiterError;

use super::{Entered, Tested, Waiter, assert_empty, limiter};
use crate::support::*;

#[test]
fn an_invalid_limit_is_refused() {
    let above = |limit| LimiterError::ConcurrencyTooLarge {
        limit,
        max: Concurrency::MAX_LIMIT,
    };
    let limiter = limiter(3);
    for (limit, error) in [
        (0, LimiterError::ZeroConcurrency),
        (
            Concurrency::MAX_LIMIT + 1,
            above(Concurrency::MAX_LIMIT + 1),
        ),
        (1 << 32, above(1 << 32)),
        (u64::MAX, above(u64::MAX)),
    ] {
        assert_eq!(Concurrency::new(limit).err(), Some(error));
        assert_eq!(limiter.set_limit(limit), Err(error));
        assert_eq!((error.field(), limiter.limit()), ("limit", 3));
    }
    let message = "limit is 1099511627776, but must be from 1 to 2147483647";
    assert_eq!(above(1 << 40).to_string(), message);
    let message = "limit is 0, but must be at least 1";
    assert_eq!(LimiterError::ZeroConcurrency.to_string(), message);
}

#[test]
fn a_denial_for_busy_permits_says_later_without_a_time() {
    let limiter = limiter(1);
    let _held = limiter.try_enter();
    let denied = limiter.try_enter().expect_err("it is full");
    assert_eq!(denied, Denied::busy(1));
    assert!(!denied.is_permanent());
    assert_eq!((denied.retry_after(), denied.requested()), (None, 1));
    let message = "limit reached: 1 available when others have left";
    assert_eq!(denied.to_string(), message);
}

/// A way to enter.
type Enter = fn(&Concurrency) -> Result<ConcurrencyGuard<&Concurrency>, Denied>;

/// Runs until one more thread waits. It ends with the weight by which it entered.
fn until_it_waits(limiter: &Tested, enter: Enter) -> thread::JoinHandle<Result<u64, Denied>> {
    let before = limiter.waiting();
    let thread = thread::spawn({
        let limiter = Arc::clone(limiter);
        move || enter(&limiter).map(|guard| guard.n())
    });
    while limiter.waiting() == before {
        thread::yield_now();
    }
    thread
}

#[test]
fn a_waiting_thread_enters_is_refused_or_times_out() {
    deadline("threads that wait for room", || {
        let limiter = limiter(2);
        let held = limiter
            .enter_n(2)
            .wait_timeout(Duration::ZERO)
            .expect("room");
        for timeout in [Duration::ZERO, Duration::from_millis(1)] {
            let denied = limiter.enter().wait_timeout(timeout).err();
            assert_eq!(denied, Some(Denied::busy(1)));
            assert_eq!((limiter.waiting(), limiter.inside()), (0, 2));
        }
        let ways: [Enter; 4] = [
            |limiter| limiter.enter().wait(),
            |limiter| limiter.enter_n(2).wait(),
            |limiter| limiter.enter_n(2).wait_timeout(Duration::MAX),
            |limiter| limiter.enter().wait_timeout(Duration::from_secs(1 << 30)),
        ];
        let threads = ways.map(|enter| until_it_waits(&limiter, enter));
        limiter.set_limit(1).expect("a limit");
        drop(held);
        let answers = threads.map(|thread| thread.join().expect("no panic"));
        let never = Err(Denied::never(2, 1));
        assert_eq!(answers, [Ok(1), never, never, Ok(1)]);
        assert_empty(&limiter);
    });
}

/// A waiter that was polled and admitted counts once, in whichever way it then completes, under any
/// limit.
#[test]
fn an_admitted_waiter_is_counted_once_however_it_completes() {
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
            let limiter = limiter(5);
            let held = limiter.try_enter().expect("room");
            let waiter = Waiter::standing(&limiter, 5);
            drop(held);
            assert_eq!((limiter.inside(), limiter.waiting()), (5, 0));
            limiter.set_limit(3).expect("a limit");
            limiter.reset_peak();
            let guard = ask(waiter).expect("it is inside");
            assert_eq!((guard.n(), limiter.inside(), limiter.peak()), (5, 5, 5));
            drop(guard);
            assert_empty(&limiter);
        }
    });
}

#[test]
fn every_type_is_send_and_sync() {
    fn text(one: impl Send + Sync + std::fmt::Debug) -> String {
        format!("{one:?}")
    }
    let limiter = limiter(2);
    assert_eq!(text(limiter.try_enter_owned(1)), text(limiter.try_enter()));
    assert!(text((limiter.enter(), limiter.enter_owned(1))).contains("n: 1"));
    let _held = limiter.try_enter();
    assert!(text(&limiter).contains("limit: 2, inside: 1, waiting: 0, peak: 1"));
}

#[test]
fn only_the_last_waker_is_woken() {
    let limiter = limiter(1);
    let held = limiter.try_enter().expect("room");
    let mut waiter = Waiter::standing(&limiter, 1);
    let first = std::mem::take(&mut waiter.wake_counter);
    assert!(waiter.poll().is_pending());
    drop(held);
    assert_eq!((first.wakes(), waiter.wake_counter.wakes()), (0, 1));
}

#[test]
fn the_largest_limit_is_enforced() {
    let limiter = limiter(Concurrency::MAX_LIMIT);
    let all = limiter.try_enter_n(Concurrency::MAX_LIMIT).expect("room");
    assert_eq!(limiter.try_enter().err(), Some(Denied::busy(1)));
    assert_eq!(limiter.set_limit(1), Ok(Concurrency::MAX_LIMIT));
    let expected = (Concurrency::MAX_LIMIT, 1);
    assert_eq!((limiter.inside(), limiter.limit()), expected);
    drop(all);
    assert_empty(&limiter);
}

#[test]
fn a_request_above_the_limit_does_not_wait() {
    deadline("more than the limit", || {
        let limiter = limiter(3);
        for n in [4, Concurrency::MAX_LIMIT + 1, 1 << 32, u64::MAX] {
            let never = Some(Denied::never(n, 3));
            assert_eq!(limiter.enter_n(n).wait().err(), never);
            assert_eq!(limiter.enter_n(n).wait_timeout(Duration::MAX).err(), never);
        }
        assert_eq!((limiter.inside(), limiter.peak()), (0, 0));
    });
}

#[test]
fn a_waiter_dropped_by_a_panic_leaves_the_queue() {
    let limiter = limiter(5);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _inside = limiter.try_enter_n(3);
        let _waits = Waiter::standing(&limiter, 4);
        resume_unwind(Box::new("out"));
    }));
    assert!(panicked.is_err());
    assert_eq!(limiter.peak(), 3);
    assert_empty(&limiter);
}
