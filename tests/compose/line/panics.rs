//! A member and a waker of the user's own that panic when a caller in line has been let in.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use tollgate::compose::{BoxMember, Held, Line, Member};
use tollgate::store::Place;

use super::{CountedSleeps, Tested, rate};
use crate::support::*;

/// A concurrency that panics when it counts a grant.
struct Panics(Arc<Concurrency>);

impl Panics {
    fn inner(&self) -> &dyn Member<ManualClock> {
        &*self.0
    }
}

impl Member<ManualClock> for Panics {
    fn place(&self) -> Place {
        self.inner().place()
    }

    fn check(&self, n: u64, now: Tick) -> Result<(), Denied> {
        self.inner().check(n, now)
    }

    fn take(&self, n: u64, now: Tick) -> Result<Held, Denied> {
        self.inner().take(n, now)
    }

    fn available_at(&self, now: Tick) -> u64 {
        self.inner().available_at(now)
    }

    fn give_back(&self, held: Held, now: Tick) -> u64 {
        self.inner().give_back(held, now)
    }

    fn leaves(&self) -> bool {
        true
    }

    fn leave(&self, held: &Held) -> bool {
        self.inner().leave(held)
    }

    fn count(&self, granted: bool, _: u64) {
        assert!(!granted, "a member's own panic");
    }

    fn concurrency<'a>(&'a self) -> Option<&'a Concurrency>
    where
        ManualClock: 'a,
    {
        Some(&self.0)
    }
}

#[test]
fn a_member_that_panics_after_the_first_in_line_was_let_in_leaves_nothing_taken() {
    let clock = ManualClock::new();
    let rate = rate(Quota::per_second(5), &clock);
    let room = Arc::new(Concurrency::new(1).expect("a limit"));
    let panics: BoxMember<'_, ManualClock> = Box::new(Panics(Arc::clone(&room)));
    let limits = Arc::new(All::new((&rate, panics)).expect("two limits"));
    let line = Line::new(Arc::clone(&limits));
    let timer = CountedSleeps {
        clock: clock.clone(),
        sleeps: Arc::default(),
    };
    let other = room.try_enter().expect("it is empty");
    let waits = line.with_timer(timer);
    let mut waits = that_waits(waits.acquire_n(1));
    drop(other);
    assert_eq!(room.inside(), 1, "the caller is let in");
    let polled = catch_unwind(AssertUnwindSafe(|| poll(waits.as_mut()).is_ready()));
    assert!(polled.is_err());
    assert_eq!((rate.available_at(clock.now()), room.inside()), (5, 0));
}

#[test]
fn a_waker_of_the_next_caller_that_panics_leaves_nothing_taken() {
    let tested = Tested::new(Quota::per_second(5), 1);
    let outside = tested.inside.try_enter_owned(1).expect("room");
    let on = tested.line.with_timer(&tested.clock);
    let (mut first, mut second) = (that_waits(on.acquire_n(1)), pin!(on.acquire_n(1)));
    let waker = Waker::from(Arc::new(PanicsWhenWoken));
    assert!(poll_by(second.as_mut(), &waker).is_pending());
    drop(outside);
    let polled = catch_unwind(AssertUnwindSafe(|| poll(first.as_mut()).is_ready()));
    assert!(polled.is_err());
    assert_eq!((tested.rate(), tested.inside.inside()), (5, 0));
    let waiting = || (tested.line.waiting(), tested.line.waiting_permits());
    assert_eq!(waiting(), (1, 1));
    assert!(matches!(poll(second.as_mut()), Poll::Ready(Ok(_))));
    assert_eq!(waiting(), (0, 0));
    tested.assert_empty();
}
