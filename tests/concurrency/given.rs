//! A waiter that was polled, was let in, and is then waited for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tollgate::{Concurrency, Denied, Enter};

fn poll<'a>(
    enter: &mut Enter<&'a Concurrency>,
) -> Poll<Result<tollgate::Inside<&'a Concurrency>, Denied>> {
    Pin::new(enter).poll(&mut Context::from_waker(Waker::noop()))
}

/// It is inside already, and the whole limit is its own; "Let in at the last moment" must be Ok.
#[test]
fn a_try_of_who_was_let_in_is_ok() {
    let gate = Concurrency::new(1).unwrap();
    let held = gate.try_enter().unwrap();
    let mut enter = gate.enter();
    assert!(poll(&mut enter).is_pending());
    drop(held);
    assert_eq!((gate.inside(), gate.waiting()), (1, 0), "it was let in");
    let said = enter.wait_timeout(Duration::ZERO).map(|guard| guard.n());
    assert_eq!(said, Ok(1), "it was inside, and is told that it is not");
}

/// Let in, then the limit is lowered below its weight: a poll says Ok, so must wait().
#[test]
fn who_was_let_in_stays_in_when_the_limit_is_lowered() {
    for by_wait in [false, true] {
        let gate = Concurrency::new(5).unwrap();
        let held = gate.try_enter().unwrap();
        let mut enter = gate.enter_n(5);
        assert!(poll(&mut enter).is_pending());
        drop(held);
        assert_eq!(gate.inside(), 5);
        gate.set_limit(3).unwrap();
        let said = match by_wait {
            true => enter.wait().map(|guard| guard.n()),
            false => match poll(&mut enter) {
                Poll::Ready(said) => said.map(|guard| guard.n()),
                Poll::Pending => panic!("pending"),
            },
        };
        assert_eq!(said, Ok(5), "by wait: {by_wait}");
    }
}

/// It has entered once, and takes no second place.
#[test]
fn who_was_let_in_does_not_enter_twice() {
    let gate = Concurrency::new(2).unwrap();
    let held = gate.try_enter_n(2).unwrap();
    let mut enter = gate.enter();
    assert!(poll(&mut enter).is_pending());
    drop(held);
    gate.reset_peak();
    let guard = enter.wait().unwrap();
    assert_eq!((gate.inside(), guard.n()), (1, 1));
    assert_eq!(gate.peak(), 1, "nobody else was here");
}

/// The limit that it is told is one that is lower than what it asked for.
#[test]
fn never_names_a_limit_that_is_too_low() {
    let gate = Concurrency::new(5).unwrap();
    let _held = gate.try_enter().unwrap();
    let mut enter = gate.enter_n(5);
    assert!(poll(&mut enter).is_pending());
    gate.set_limit(3).unwrap();
    gate.set_limit(9).unwrap();
    match poll(&mut enter) {
        Poll::Ready(Err(Denied::Never { limit, .. })) => {
            assert!(limit < 5, "5 is never possible with a limit of {limit}");
        }
        other => panic!("{other:?}"),
    }
}

/// Behind an exchange of wakers: the order holds.
#[test]
fn n_of_nothing_waits_for_its_turn() {
    let gate = Concurrency::new(2).unwrap();
    let held = gate.try_enter().unwrap();
    let mut large = gate.enter_n(2);
    assert!(poll(&mut large).is_pending());
    let mut nothing = gate.enter_n(0);
    assert!(poll(&mut nothing).is_pending());
    assert_eq!(gate.waiting(), 2);
    drop(held);
    assert_eq!((gate.waiting(), gate.inside()), (0, 2));
    drop((large, nothing));
    assert_eq!((gate.waiting(), gate.inside()), (0, 0));
    let mut last = gate.enter_n(u64::MAX);
    assert!(matches!(
        poll(&mut last),
        Poll::Ready(Err(Denied::Never { .. }))
    ));
}

/// Holds today, and is said nowhere: a waiter that is leaked (or kept, and not polled) is let in, and then
/// nobody leaves for it.
#[test]
fn a_leaked_waiter_takes_its_room_for_ever() {
    let gate = Concurrency::new(1).unwrap();
    let held = gate.try_enter().unwrap();
    let mut enter = gate.enter();
    assert!(poll(&mut enter).is_pending());
    std::mem::forget(enter);
    drop(held);
    assert_eq!((gate.inside(), gate.waiting()), (1, 0));
    assert!(gate.try_enter().is_err());
}
