//! Members, clocks and wakers that a user wrote.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Wake, Waker};

use tollgate::compose::{Held, Member, OrElse};
use tollgate::outcome::Charged;
use tollgate::store::Place;

use super::bucket;
use crate::support::*;

/// Implements [`Member`] for a limit without state of its own.
macro_rules! stateless {
    ($limit:ty, $can_undo:expr, $check:expr, $take:expr) => {
        impl Member<ManualClock> for $limit {
            fn place(&self) -> Place {
                Place::of(self)
            }

            fn can_undo(&self) -> bool {
                $can_undo
            }

            fn check(&self, n: u64, _: Tick) -> Result<(), Denied> {
                $check(n)
            }

            fn take(&self, n: u64, now: Tick) -> Result<Held, Denied> {
                $take(n, now)
            }

            fn available_at(&self, _: Tick) -> u64 {
                1
            }

            fn give_back(&self, held: Held, _: Tick) -> u64 {
                held.granted.n()
            }

            fn charge_to(&self, n: u64, now: Tick) -> Charged {
                Charged::new(n, now)
            }
        }
    };
}

/// Grants always.
struct Open;

/// Denies always.
struct Closed;

/// Panics when it is taken from, which is last.
struct Last;

stateless!(Open, true, |_| Ok(()), |n, now| Ok(
    Granted::new(n, now).into()
));
stateless!(Closed, true, |n| Err(Denied::busy(n)), |n, _| Err(
    Denied::busy(n)
));
stateless!(Last, false, |_| Ok(()), |_, _| panic!(
    "a member's own panic"
));

/// Denies for a second, as a limit does that is used up.
struct Spent;

/// Denies for a second, as a banned key does.
struct Banned;

const SECOND: Duration = Duration::from_secs(1);

stateless!(Spent, true, |n| Err(Denied::later(n, SECOND)), |n, _| Err(
    Denied::later(n, SECOND)
));
stateless!(
    Banned,
    true,
    |n| Err(Denied::banned(n, Some(SECOND))),
    |n, _| Err(Denied::banned(n, Some(SECOND)))
);

type Boxed = Box<dyn Member<ManualClock> + Send + Sync>;

#[test]
fn members_of_size_zero_are_different_limits() {
    let rate = bucket(5, &ManualClock::new());
    let (open, closed): (Boxed, Boxed) = (Box::new(Open), Box::new(Closed));
    let all = All::new((&rate, open, closed)).expect("three limits");
    let denied = all.try_acquire().expect_err("one is closed");
    assert_eq!(denied.member(), Some(2));
}

#[test]
fn of_two_denials_that_end_at_the_same_time_the_first_one_is_the_answer() {
    let rate = bucket(5, &ManualClock::new());
    let answer = |first: Boxed, second: Boxed| {
        let all = All::new((&rate, OrElse::new(first, second))).expect("two limits");
        let denied = all.try_acquire().map(drop).expect_err("both deny");
        let actual = all.check_n(1).expect_err("both deny").denied();
        assert_eq!(actual, denied.denied());
        denied.denied()
    };
    let expected = Some(Denied::later(1, SECOND));
    assert_eq!(answer(Box::new(Spent), Box::new(Banned)), expected);
    let actual = answer(Box::new(Banned), Box::new(Spent));
    assert_eq!(actual, Some(Denied::banned(1, Some(SECOND))));
}

#[test]
fn a_member_that_panics_leaves_no_one_inside() {
    let rate = bucket(5, &ManualClock::new());
    let room = &Concurrency::new(1).expect("a limit");
    let last = Last;
    let last: &(dyn Member<ManualClock> + Send + Sync) = &last;
    let all = All::new((&rate, room, last)).expect("three limits");
    let panicked = catch_unwind(AssertUnwindSafe(|| drop(all.try_acquire())));
    assert!(panicked.is_err());
    assert_eq!((room.inside(), rate.available()), (0, 5));
}

/// A waker that panics.
struct PanicsWhenWoken;

impl Wake for PanicsWhenWoken {
    fn wake(self: Arc<Self>) {
        panic!("a waker's own panic");
    }
}

#[test]
fn a_waker_that_panics_leaves_no_one_inside() {
    let rate = bucket(5, &ManualClock::new());
    for first in [0, 1] {
        let rooms = [(); 2].map(|()| Concurrency::new(1).expect("a limit"));
        let all = All::new((&rate, &rooms)).expect("three limits");
        let granted = all.try_acquire().expect("all are free");
        let mut waits = pin!(rooms[first].enter());
        let waker = Waker::from(Arc::new(PanicsWhenWoken));
        let polled = waits.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        assert!(catch_unwind(AssertUnwindSafe(|| drop(granted))).is_err());
        // The waiter was let in.
        assert_eq!(rooms[first].inside(), 1);
        assert_eq!(rooms[1 - first].inside(), 0);
    }
}
