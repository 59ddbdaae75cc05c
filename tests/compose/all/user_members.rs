//! Members, clocks and wakers that a user wrote.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Wake, Waker};

use tollgate::compose::{Held, Member, Members, OrElse, Visitor};
use tollgate::store::Place;

use super::scripted::Scripted;
use super::{Bucket, bucket, full};
use crate::support::*;

/// A member without a state, which grants or denies.
struct Sizeless<const GRANTS: bool>;

impl<const GRANTS: bool> Member<ManualClock> for Sizeless<GRANTS> {
    fn place(&self) -> Place {
        Place::of(self)
    }

    fn check(&self, n: u64, now: Tick) -> Result<(), Denied> {
        self.take(n, now).map(drop)
    }

    fn take(&self, n: u64, now: Tick) -> Result<Held, Denied> {
        match GRANTS {
            true => Ok(Granted::new(n, now).into()),
            false => Err(Denied::busy(n)),
        }
    }

    fn available_at(&self, _: Tick) -> u64 {
        1
    }

    fn give_back(&self, held: Held, _: Tick) -> u64 {
        held.granted.n()
    }
}

type Boxed = Box<dyn Member<ManualClock> + Send + Sync>;

#[test]
fn members_of_size_zero_are_different_limits() {
    let rate = bucket(5, &ManualClock::new());
    let (open, closed): (Boxed, Boxed) = (Box::new(Sizeless::<true>), Box::new(Sizeless::<false>));
    let all = All::new((&rate, open, closed)).expect("three limits");
    let denied = all.try_acquire().expect_err("one is closed");
    assert_eq!(denied.member(), Some(2));
}

/// Limits that deny for a second: one is used up, and the other has banned the caller.
#[test]
fn of_two_denials_that_end_at_the_same_time_the_first_one_is_the_answer() {
    let (rate, second) = (bucket(5, &ManualClock::new()), Duration::from_secs(1));
    let [spent, banned] = [Denied::later(1, second), Denied::banned(1, Some(second))];
    for both in [[spent, banned], [banned, spent]] {
        let denies = both.map(|denied| move |_, _| Some(denied));
        let [first, other] = denies.each_ref().map(|denies| Scripted::new(denies));
        let all = All::new((&rate, OrElse::new(first.member(), other.member())));
        let all = all.expect("two limits");
        let denied = all.try_acquire().map(drop).expect_err("both deny");
        let actual = all.check_n(1).expect_err("both deny").denied();
        assert_eq!(actual, denied.denied());
        assert_eq!(actual, Some(both[0]));
    }
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

/// Three members. Their type says that there are `COUNT`, and has places for `PLACES` grants.
struct Miscounted<'l, const COUNT: usize, const PLACES: usize>(&'l [Bucket; 3]);

impl<const COUNT: usize, const PLACES: usize> Members<ManualClock>
    for Miscounted<'_, COUNT, PLACES>
{
    type Grants = [Option<Held>; PLACES];
    const COUNT: Option<usize> = Some(COUNT);

    fn count(&self) -> usize {
        3
    }

    fn visit<V: Visitor<ManualClock>>(&self, index: usize, visitor: V) -> Option<V::Output> {
        Some(visitor.visit(self.0.get(index)?, None))
    }

    fn no_grants(&self) -> Self::Grants {
        [const { None }; PLACES]
    }

    fn grant_mut<'g>(
        &self,
        grants: &'g mut Self::Grants,
        index: usize,
    ) -> Option<&'g mut Option<Held>> {
        grants.get_mut(index)
    }

    fn grant<'g>(&self, grants: &'g Self::Grants, index: usize) -> Option<&'g Held> {
        grants.get(index)?.as_ref()
    }
}

/// Each member is taken from once nevertheless.
#[test]
fn a_wrong_constant_lets_no_request_past_a_member() {
    let (_, limits) = full([5, 5, 5]);
    let left = || limits.each_ref().map(|limit| limit.available());
    fn takes<const COUNT: usize>(limits: &[Bucket; 3]) {
        let all = All::new(Miscounted::<COUNT, 3>(limits)).expect("limits");
        drop(all.try_acquire().expect("granted"));
    }
    takes::<2>(&limits);
    assert_eq!(left(), [4; 3]);
    takes::<4>(&limits);
    assert_eq!(left(), [3; 3]);
    takes::<0>(&limits);
    assert_eq!(left(), [2; 3]);
}

/// What can't be kept can't be given back, so it is not taken.
#[test]
fn members_without_a_place_for_a_grant_are_denied() {
    let (_, limits) = full([5, 5, 5]);
    fn denied<const COUNT: usize>(limits: &[Bucket; 3]) {
        let all = All::new(Miscounted::<COUNT, 2>(limits)).expect("limits");
        let denied = all.try_acquire().map(drop).expect_err("no place");
        assert_eq!(denied.denied(), Some(Denied::busy(1)), "{COUNT}");
    }
    denied::<3>(&limits);
    denied::<2>(&limits);
    assert_eq!(limits.each_ref().map(|limit| limit.available()), [5; 3]);
}
