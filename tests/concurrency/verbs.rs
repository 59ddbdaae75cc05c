//! What each verb says: bad input, weights of nothing and of too much, panics, timeouts.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use tollgate::{Concurrency, ConfigError, Denied, Enter, Inside, MAX_CONCURRENCY};

use super::{Waiter, busy, gate};

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
    let message = above(1 << 40).to_string();
    assert_eq!(
        message,
        "limit is 1099511627776, but must be from 1 to 2147483647"
    );
    let message = ConfigError::ZeroConcurrency.to_string();
    assert_eq!(message, "limit is 0, but must be at least 1");
}

#[test]
fn the_widest_limit_holds() {
    let gate = gate(MAX_CONCURRENCY);
    let all = gate.try_enter_n(MAX_CONCURRENCY).expect("room");
    assert_eq!(
        (gate.inside(), gate.limit()),
        (MAX_CONCURRENCY, MAX_CONCURRENCY)
    );
    assert_eq!(gate.try_enter().err(), busy(1));
    assert_eq!(gate.set_limit(1), Ok(MAX_CONCURRENCY));
    assert_eq!((gate.inside(), gate.limit()), (MAX_CONCURRENCY, 1));
    drop(all);
    assert_eq!((gate.inside(), gate.limit(), gate.waiting()), (0, 1, 0));
}

#[test]
fn more_than_the_limit_is_never() {
    let gate = gate(3);
    for n in [
        4,
        MAX_CONCURRENCY,
        MAX_CONCURRENCY + 1,
        1 << 32,
        1 << 63,
        u64::MAX,
    ] {
        let never = Denied::never(n, 3);
        assert_eq!(gate.try_enter_n(n).err(), Some(never));
        assert_eq!(gate.try_enter_ahead(n).err(), Some(never));
        assert_eq!(gate.try_enter_owned(n).err(), Some(never));
        assert_eq!(gate.enter_n(n).wait().err(), Some(never));
        assert_eq!(
            gate.enter_n(n).wait_timeout(Duration::MAX).err(),
            Some(never)
        );
        assert!(
            matches!(Waiter::new(&gate, n).poll(), Poll::Ready(Err(denied)) if denied == never)
        );
    }
    assert_eq!((gate.inside(), gate.peak()), (0, 0));
}

#[test]
fn busy_says_later_and_not_when() {
    let gate = gate(1);
    let _held = gate.try_enter();
    let denied = gate.try_enter().expect_err("it is full");
    assert_eq!(denied, Denied::busy(1));
    assert!(!denied.is_permanent());
    assert_eq!((denied.retry_after(), denied.requested()), (None, 1));
    assert_eq!(
        denied.to_string(),
        "limit reached: 1 more when others have left"
    );
}

#[test]
fn a_weight_of_nothing_asks_whether_somebody_waits() {
    let gate = gate(1);
    let held = gate.try_enter().expect("room");
    let nothing = gate.try_enter_n(0).expect("nobody waits");
    assert_eq!((nothing.n(), gate.inside()), (0, 1));
    let mut one = Waiter::standing(&gate, 1);
    let mut none = Waiter::standing(&gate, 0);
    assert_eq!(gate.try_enter_n(0).err(), busy(0));
    drop(nothing);
    assert_eq!(one.woken(), 0);
    drop(held);
    assert!(one.poll().is_ready() && none.poll().is_ready());
}

#[test]
fn who_panics_has_left() {
    let gate = gate(5);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _guard = gate.try_enter_n(3);
        let _waits = Waiter::standing(&gate, 4);
        panic!("inside");
    }));
    assert!(panicked.is_err());
    assert_eq!((gate.inside(), gate.waiting(), gate.peak()), (0, 0, 3));
    assert!(gate.try_enter_n(5).is_ok());
}

#[test]
fn a_timeout_of_zero_is_a_try_and_a_short_one_ends() {
    let gate = gate(2);
    let guard = gate.enter_n(2).wait_timeout(Duration::ZERO).expect("room");
    assert_eq!(gate.enter().wait_timeout(Duration::ZERO).err(), busy(1));
    assert_eq!(
        gate.enter().wait_timeout(Duration::from_millis(1)).err(),
        busy(1)
    );
    assert_eq!((gate.waiting(), gate.inside()), (0, 2));
    drop(guard);
    assert!(gate.enter().wait_timeout(Duration::MAX).is_ok());
}

#[test]
fn who_waits_in_a_thread_is_let_in_or_refused() {
    let gate = gate(2);
    let held = gate.try_enter_n(2).expect("room");
    let waits = |work: fn(&Concurrency) -> Result<u64, Denied>| {
        let gate = Arc::clone(&gate);
        let before = gate.waiting();
        let thread = thread::spawn({
            let gate = Arc::clone(&gate);
            move || work(&gate)
        });
        while gate.waiting() == before {
            thread::yield_now();
        }
        thread
    };
    let one = waits(|gate| gate.enter().wait().map(|guard| guard.n()));
    let two = waits(|gate| {
        gate.enter_n(2)
            .wait_timeout(Duration::MAX)
            .map(|guard| guard.n())
    });
    let far = waits(|gate| {
        gate.enter_n(2)
            .wait_timeout(Duration::from_secs(1 << 30))
            .map(|g| g.n())
    });
    gate.set_limit(1).expect("a limit");
    drop(held);
    let answers = [one, two, far].map(|thread| thread.join().expect("no panic"));
    assert_eq!(
        answers,
        [Ok(1), Err(Denied::never(2, 1)), Err(Denied::never(2, 1))]
    );
    assert_eq!((gate.inside(), gate.waiting()), (0, 0));
}

#[test]
fn who_asks_again_after_an_answer_asks_anew() {
    let gate = gate(1);
    let mut waiter = Waiter::new(&gate, 1);
    let Poll::Ready(Ok(guard)) = waiter.poll() else {
        panic!("there is room")
    };
    assert!(waiter.poll().is_pending());
    drop(guard);
    assert!(matches!(waiter.poll(), Poll::Ready(Ok(_))));
}

/// A task's waker may hold a guard, and be dropped or woken by whoever changes the line.
#[test]
fn a_waker_may_leave_when_it_is_dropped() {
    struct Holds(#[allow(dead_code, reason = "only held")] Option<Inside<Arc<Concurrency>>>);
    impl std::task::Wake for Holds {
        fn wake(self: Arc<Self>) {}
    }
    let gate = gate(3);
    let poll = |enter: &mut Enter<Arc<Concurrency>>| {
        let held = Holds(gate.try_enter_owned(1).ok());
        let waker = std::task::Waker::from(Arc::new(held));
        std::future::Future::poll(
            std::pin::Pin::new(enter),
            &mut std::task::Context::from_waker(&waker),
        )
    };
    let mut enter = gate.enter_owned(3);
    assert!(poll(&mut enter).is_pending());
    assert_eq!(gate.inside(), 1);
    // Its first waker is replaced, dropped, and leaves: there is room.
    assert!(poll(&mut enter).is_pending());
    assert!(poll(&mut enter).is_ready());
    assert_eq!((gate.inside(), gate.waiting()), (0, 0));
    assert!(poll(&mut enter).is_pending());
    drop(enter);
    assert_eq!((gate.inside(), gate.waiting()), (0, 0));
}

#[test]
fn all_of_it_can_be_sent_and_shared() {
    fn both<T: Send + Sync + std::fmt::Debug>(_: &T) {}
    let gate = gate(2);
    both(&gate);
    both(&gate.try_enter().expect("room"));
    both(&gate.try_enter_owned(1).expect("room"));
    both(&gate.enter());
    both(&gate.enter_owned(1));
    let text = format!("{gate:?} {:?} {:?}", gate.try_enter(), gate.enter());
    assert!(text.contains("limit: 2, inside: 1, waiting: 0, peak: 1") && text.contains("n: 1"));
}
