//! What a caller in line is told, and when.

use tollgate::Adjustable;
use tollgate::compose::{AllDenied, Line, Named};

use super::{Tested, is_permanent, rate};
use crate::all::scripted::Scripted;
use crate::support::*;

#[test]
fn the_first_in_line_holds_nothing_while_it_sleeps() {
    let tested = Tested::spent();
    let mut first = tested.waiting(2);
    assert_eq!((tested.line.waiting(), tested.inside.inside()), (1, 0));
    assert_eq!(tested.clock.next_sleeper(), Some(tick(2 * SECOND)));
    tested.clock.set(tick(SECOND));
    assert_eq!(tested.rate(), 1);
    tested.clock.set(tick(2 * SECOND));
    drop(first.granted());
    assert_eq!(tested.rate(), 0);
    tested.assert_empty();
}

#[test]
fn a_caller_that_tries_passes_no_waiter() {
    let tested = Tested::one_a_second();
    drop(tested.line.try_acquire().expect("there are two"));
    let mut first = tested.waiting(2);
    assert_eq!(tested.line.try_acquire().err(), Some(AllDenied::Line));
    let expected = Some(AllDenied::Line);
    assert_eq!(tested.line.try_acquire_each([1, 1]).err(), expected);
    let denied = tested.line.try_acquire_n(2).expect_err("there is one");
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(1)));
    let told = AllDenied::Line;
    assert!(!told.is_permanent() && told.retry_after().is_none());
    assert_eq!(told.to_string(), "other callers wait in line");
    // A caller of the composition itself does not stand in line. The first in line waits again.
    drop(tested.limits.try_acquire().expect("there is one"));
    tested.clock.set(tick(SECOND));
    assert!(first.was_woken() && first.poll().is_pending());
    tested.clock.set(tick(2 * SECOND));
    drop(first.granted());
    assert!(
        tested
            .line
            .try_acquire()
            .is_err_and(|denied| denied != AllDenied::Line)
    );
    tested.assert_empty();
}

#[test]
fn a_caller_outside_the_line_that_leaves_wakes_the_first_in_line() {
    let (tested, outside) = Tested::full();
    let mut first = tested.waiting(1);
    let second = tested.waiting(1);
    assert_eq!(tested.clock.sleepers(), 0);
    drop(outside);
    assert!(!second.was_woken());
    let granted = first.granted();
    assert_eq!((tested.inside.inside(), tested.rate()), (1, 1));
    drop((granted, second));
    tested.assert_empty();
}

#[test]
fn the_first_in_line_waits_for_room_behind_callers_that_came_earlier() {
    let (tested, outside) = Tested::full();
    let mut earlier = that_waits(tested.inside.enter_n(2));
    let mut first = tested.waiting(1);
    drop(outside);
    assert!(!first.was_woken());
    let guard = ready(earlier.as_mut()).expect("its turn has come");
    drop(guard);
    drop(first.granted());
    tested.assert_empty();
}

#[test]
fn room_that_does_not_help_goes_to_the_next_caller() {
    let tested = Tested::spent();
    let outside = tested.inside.try_enter_owned(2).expect("room");
    let mut first = tested.waiting(1);
    let mut later = that_waits(tested.inside.enter_n(2));
    drop(outside);
    // It is let in, but the rate has nothing yet.
    assert!(first.was_woken() && first.poll().is_pending());
    assert!(poll(later.as_mut()).is_ready());
    assert_eq!(tested.clock.next_sleeper(), Some(tick(SECOND)));
    tested.clock.set(tick(SECOND));
    drop(first.granted());
    assert_eq!(first.sleeps(), 1);
    tested.assert_empty();
}

#[test]
fn a_dropped_caller_passes_its_turn_on() {
    let tested = Tested::spent();
    let (first, mut second) = (tested.waiting(2), tested.waiting(1));
    let third = tested.waiting(1);
    assert_eq!((tested.line.waiting(), tested.clock.sleepers()), (3, 1));
    drop((third, first));
    assert_eq!((tested.line.waiting(), tested.clock.sleepers()), (1, 0));
    assert!(second.was_woken() && second.poll().is_pending());
    tested.clock.set(tick(SECOND));
    drop(second.granted());
    tested.assert_empty();
}

#[test]
fn a_caller_that_is_dropped_after_it_was_let_in_leaves() {
    let (tested, outside) = Tested::full();
    let (first, mut second) = (tested.waiting(2), tested.waiting(2));
    drop(outside);
    // The first one is inside, and does not know it yet.
    assert!(first.was_woken());
    assert_eq!(tested.inside.inside(), 2);
    drop(first);
    drop(second.granted());
    tested.assert_empty();
}

#[test]
fn a_permanent_denial_ends_the_wait() {
    let (tested, outside) = Tested::full();
    let first = tested.waiting(1);
    // At once, although another caller waits.
    let never = tested.caller(3).poll();
    let Poll::Ready(Err(denied)) = never else {
        panic!("it waits for more than the limit: {never:?}");
    };
    assert!(denied.is_permanent());
    // While it waits.
    let mut second = tested.waiting(2);
    drop(first);
    assert!(second.was_woken() && second.poll().is_pending());
    tested.inside.set_limit(1).expect("a limit");
    assert!(second.was_woken());
    let Poll::Ready(Err(denied)) = second.poll() else {
        panic!("it waits for more than the limit");
    };
    assert_eq!((denied.member(), denied.is_permanent()), (Some(1), true));
    assert_eq!(tested.line.waiting(), 0);
    drop(outside);
    tested.assert_empty();
}

/// Another member without room is not waited for then.
#[test]
fn a_quota_that_is_lowered_while_a_caller_waits_ends_the_wait_at_once() {
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(Quota::per_second(2)).expect("a quota");
    let rate = Adjustable::with_clock(bucket, clock.clone());
    let [one, other] = [(); 2].map(|()| Concurrency::new(2).expect("a limit"));
    let all = All::new((&rate, &one, &other)).expect("three limits");
    let line = Line::new(&all);
    let on = line.with_timer(&clock);
    let outside = one.try_enter().expect("room");
    let mut waits = that_waits(on.acquire_n(2));
    let _stays = other.try_enter().expect("room");
    let lowered = rate.set_quota(Quota::per_second(1), Keep::AsIs);
    assert!(lowered.is_ok());
    drop(outside);
    let denied = ready(waits.as_mut()).map(drop).expect_err("one at most");
    assert_eq!((denied.member(), denied.is_permanent()), (Some(0), true));
    let inside = (one.inside(), other.inside());
    assert_eq!((line.waiting(), inside), (0, (0, 1)));
}

#[test]
fn each_member_has_its_cost() {
    let tested = Tested::one_a_second();
    let line = tested.line.with_timer(&tested.clock);
    let granted = run(&tested.clock, line.acquire_each([2, 1])).expect("there are two");
    assert_eq!((tested.rate(), tested.inside.inside()), (0, 1));
    let other = run(&tested.clock, line.acquire_each([1, 1])).expect("in a second");
    let actual = (tested.clock.now(), tested.inside.inside());
    assert_eq!(actual, (tick(SECOND), 2));
    let denied = run(&tested.clock, line.acquire_each([1])).expect_err("a cost is missing");
    let expected = "number of costs is 1, but must be 2: one for each member";
    assert_eq!(denied.to_string(), expected);
    assert!(is_permanent(tested.line.try_acquire_each([1, 1, 1])));
    assert!(granted.undo() + other.undo() >= 3);
    tested.assert_empty();
}

#[test]
fn a_limit_that_appears_twice_takes_the_room_of_both() {
    let tested = Tested::one_a_second();
    let inside = &*tested.inside;
    let rate = &tested.limits.inner().0;
    let all = All::new((inside, Named::new("rate", rate), inside)).expect("two limits");
    let line = Line::new(&all);
    let outside = inside.try_enter().expect("room");
    let on = line.with_timer(&tested.clock);
    let mut first = that_waits(on.acquire());
    drop(outside);
    let mut granted = ready(first.as_mut()).expect("there is room for two");
    assert_eq!(inside.inside(), 2);
    let settled = granted.settle([0, 0, 0]).expect("a cost for each");
    assert_eq!(settled.returned, 1);
    tested.assert_empty();
}

/// The first in line enters a full member before it takes from the others.
#[test]
fn a_counted_member_counts_a_caller_that_waited_for_room() {
    let clock = ManualClock::new();
    let rate = Counted::new(rate(Quota::per_second(1).burst(2), &clock));
    let inside = Counted::new(Concurrency::new(1).expect("one"));
    let all = All::new((&rate, &inside)).expect("two limits");
    let line = Line::new(&all);
    let before = line.try_acquire().expect("room");
    let on = line.with_timer(&clock);
    let mut first = that_waits(on.acquire());
    drop(before);
    let granted = ready(first.as_mut()).expect("there is room");
    drop(granted);
    let counted = [rate.stats(), inside.stats()].map(|stats| (stats.granted, stats.permits));
    assert_eq!(counted, [(2, 2); 2]);
    assert_eq!((inside.limiter().inside(), line.waiting()), (0, 0));
}

/// Each call is one request, however often the caller sleeps: it is granted once or denied once.
#[test]
fn a_counted_member_counts_each_caller_in_line_once() {
    let clock = ManualClock::new();
    let limit = All::new(Counted::new(rate(Quota::per_second(1).burst(2), &clock)));
    let limit = limit.expect("a limit");
    let line = Line::new(&limit).max_waiting_permits(3);
    let counted = || {
        let stats = limit.inner().stats();
        (stats.granted, stats.denied)
    };
    drop(line.try_acquire_n(2).expect("it is full"));
    assert_eq!(counted(), (1, 0));

    let on = line.with_timer(&clock);
    let mut first = that_waits(on.acquire_n(2));
    let mut second = that_waits(on.acquire_timeout(1, Duration::from_secs(3)));
    assert_eq!(counted(), (1, 0), "two wait");
    assert!(line.blocking_acquire().is_err()); // the line is full: no member denies
    assert_eq!(counted(), (1, 0));
    assert!(line.try_acquire().is_err()); // the member denies, also while callers wait
    assert!(line.blocking_acquire_timeout(1, Duration::ZERO).is_err());
    assert!(is_permanent(line.blocking_acquire_n(3)));
    assert!(matches!(poll(pin!(on.acquire_n(3))), Poll::Ready(Err(_))));
    assert_eq!(counted(), (1, 4));

    // A caller outside the line is faster, and the first in line sleeps again.
    clock.set(tick(SECOND));
    drop(limit.try_acquire().expect("there is one"));
    assert!(poll(first.as_mut()).is_pending());
    clock.set(tick(2 * SECOND));
    assert!(poll(first.as_mut()).is_pending());
    assert_eq!(counted(), (2, 4));
    clock.set(tick(3 * SECOND));
    assert!(matches!(poll(first.as_mut()), Poll::Ready(Ok(_))));
    assert_eq!(counted(), (3, 4));
    // Its time is over before it has slept.
    assert!(matches!(poll(second.as_mut()), Poll::Ready(Err(_))));
    assert_eq!(counted(), (3, 5));
    let third = that_waits(on.acquire());
    drop(third); // neither granted nor denied
    assert_eq!(counted(), (3, 5));
}

/// Each line waits for the two limits in its own order, and holds neither while it waits.
#[test]
fn two_lines_do_not_block_each_other() {
    let clock = ManualClock::new();
    let rate = rate(Quota::per_second(1000), &clock);
    let [a, b] = [(); 2].map(|()| Concurrency::new(1).expect("one"));
    let one = All::new((&rate, &a, &b)).expect("three limits");
    let other = All::new((&rate, &b, &a)).expect("three limits");
    let (one, other) = (Line::new(&one), Line::new(&other));
    let held = (a.try_enter().expect("room"), b.try_enter().expect("room"));
    let (on_one, on_other) = (one.with_timer(&clock), other.with_timer(&clock));
    let (mut first, mut second) = (that_waits(on_one.acquire()), that_waits(on_other.acquire()));
    drop(held);
    let mut served = 0;
    for _ in 0..4 {
        served += u32::from(matches!(poll(first.as_mut()), Poll::Ready(Ok(_))));
        if served == 1 {
            break;
        }
        let granted = matches!(poll(second.as_mut()), Poll::Ready(Ok(_)));
        assert!(!granted, "the first one is woken first");
    }
    assert_eq!(served, 1);
    assert!(matches!(poll(second.as_mut()), Poll::Ready(Ok(_))));
    drop((first, second));
    let actual = (a.inside(), b.inside(), a.waiting(), b.waiting());
    assert_eq!(actual, (0, 0, 0, 0));
}

#[test]
fn a_timer_that_wakes_early_is_asked_again() {
    let tested = Tested::spent();
    let line = tested.line.with_timer(HalfAsleep(&tested.clock));
    let granted = run(&tested.clock, line.acquire()).expect("in a second");
    assert_eq!(tested.clock.now(), tick(SECOND));
    drop(granted);
    tested.assert_empty();
}

#[test]
fn a_timer_of_another_clock_is_an_error() {
    let tested = Tested::new(Quota::per_hour(1).burst(1), 1);
    drop(tested.line.try_acquire().expect("there is one"));
    let other = ManualClock::new();
    let line = tested.line.with_timer(&other);
    let mut first = pin!(line.acquire());
    for _ in 0..10 {
        match poll(first.as_mut()) {
            Poll::Ready(Err(denied)) => {
                let (member, denied) = (denied.member(), denied.denied());
                assert!(matches!(denied, Some(Denied::TimerMismatch { .. })));
                assert_eq!(member, Some(0));
                return tested.assert_empty();
            }
            Poll::Ready(other) => panic!("{other:?}"),
            Poll::Pending => other.set(other.next_sleeper().unwrap_or(other.now())),
        }
    }
    panic!("it sleeps again and again");
}

#[test]
fn a_timer_that_does_not_sleep_yields_to_the_executor() {
    let tested = Tested::spent();
    let line = tested.line.with_timer(AtOnce::default());
    let wakes = Arc::new(WakeCounter::default());
    let mut first = pin!(line.acquire());
    assert!(poll_by(first.as_mut(), &wakes.clone().into()).is_pending());
    assert_eq!(wakes.wakes(), 1);
}

#[test]
fn a_member_that_does_not_say_when_it_grants_ends_the_wait() {
    let tested = Tested::one_a_second();
    let is_busy = |_, _| Some(Denied::busy(1));
    let busy = Scripted::new(&is_busy);
    let all = All::new((&tested.limits.inner().0, busy.member())).expect("two limits");
    let line = Line::new(&all);
    let on = line.with_timer(&tested.clock);
    for denied in [
        run(&tested.clock, on.acquire()).err(),
        line.blocking_acquire().err(),
    ] {
        let denied = denied.expect("it is busy");
        let expected = (Some(1), Some(Denied::busy(1)));
        assert_eq!((denied.member(), denied.denied()), expected);
    }
    assert_eq!((line.waiting(), tested.rate()), (0, 2));
    tested.assert_empty();
}

#[test]
fn a_line_is_shared_between_threads() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    fn is_sent<T: Send>(_: &T) {}
    let tested = Tested::one_a_second();
    is_shared(&tested.line);
    let on = tested.line.with_timer(&tested.clock);
    is_shared(&on);
    is_sent(&on.acquire());
    is_sent(&on.acquire_each(vec![1, 1]));
    assert!(format!("{:?}", tested.line).contains("Line"));
    assert!(Arc::ptr_eq(tested.line.inner(), &tested.limits));
}
