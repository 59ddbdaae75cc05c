//! Callers that wait in line for a limited time.

use tollgate::compose::{AllDenied, Line};

use super::{Grant, Tested, is_permanent, rate};
use crate::support::*;

const TWO_SECONDS: Duration = Duration::from_secs(2);

fn is_busy(answer: &Result<Grant, AllDenied>) -> bool {
    let denied = answer.as_ref().err();
    let denied = denied.map(|denied| (denied.member(), denied.denied()));
    denied == Some((Some(1), Some(Denied::busy(1))))
}

/// Runs a thread that waits, and moves the clock when it does.
fn after_two_seconds(
    tested: &Tested,
    waiting: usize,
    answers: impl Fn(Result<Grant, AllDenied>) -> bool + Sync,
) {
    let acquire = |_| {
        assert!(answers(
            tested.line.blocking_acquire_timeout(1, TWO_SECONDS / 1000)
        ))
    };
    on_threads_while(0..1, acquire, |ended| {
        if tested.line.waiting() == waiting && tested.clock.now() == tick(0) {
            tested.clock.set(tick(2 * SECOND / 1000));
        }
        std::thread::yield_now();
        ended < 1
    });
}

#[test]
fn a_caller_that_would_wait_too_long_is_denied_at_once() {
    deadline("a caller that waits too long", is_denied_at_once);
}

fn is_denied_at_once() {
    let tested = Tested::spent();
    let on = tested.line.with_timer(&tested.clock);
    let short = TWO_SECONDS - Duration::from_nanos(1);
    let denied = [
        tested.line.blocking_acquire_timeout(2, short),
        tested.line.blocking_acquire_each_timeout([2, 1], short),
        tested.line.blocking_acquire_timeout(1, Duration::ZERO),
        tested
            .line
            .blocking_acquire_each_timeout([1, 1], Duration::ZERO),
    ];
    let waits = denied.map(|denied| denied.expect_err("later").retry_after());
    let [two, one] = [2, 1].map(|seconds| Some(Duration::from_secs(seconds)));
    assert_eq!(waits, [two, two, one, one]);
    for wait in [short, Duration::ZERO] {
        assert!(ready(pin!(on.acquire_timeout(2, wait))).is_err());
        assert!(ready(pin!(on.acquire_each_timeout([2, 1], wait))).is_err());
    }
    for costs in [&[1][..], &[1, 1, 1]] {
        let line = &tested.line;
        let denied = line.blocking_acquire_each_timeout(costs, TWO_SECONDS);
        assert!(matches!(denied, Err(AllDenied::CostsLength { .. })));
        assert!(ready(pin!(on.acquire_each_timeout(costs, TWO_SECONDS))).is_err());
    }
    let denied = tested.line.blocking_acquire_timeout(3, TWO_SECONDS);
    assert!(is_permanent(denied));
    tested.assert_empty();

    // In time.
    let mut first = that_waits(on.acquire_timeout(2, TWO_SECONDS));
    tested.clock.set(tick(2 * SECOND));
    assert!(matches!(poll(first.as_mut()), Poll::Ready(Ok(_))));
    assert_eq!((tested.line.waiting(), tested.rate()), (0, 0));
}

#[test]
fn a_future_leaves_the_line_when_its_time_is_over() {
    let (tested, outside) = Tested::full();
    let on = tested.line.with_timer(&tested.clock);
    let mut first = that_waits(on.acquire_timeout(1, 2 * TWO_SECONDS));
    let mut second = that_waits(on.acquire_each_timeout([1, 1], TWO_SECONDS));
    assert_eq!((tested.line.waiting(), tested.inside.waiting()), (2, 1));
    tested.clock.set(tick(2 * SECOND - 1));
    assert!(poll(second.as_mut()).is_pending());
    tested.clock.set(tick(2 * SECOND));
    assert!(poll(first.as_mut()).is_pending());
    let answer = ready(second.as_mut());
    assert!(is_busy(&answer), "{answer:?}");
    assert_eq!((tested.line.waiting(), tested.inside.waiting()), (1, 1));
    tested.clock.set(tick(4 * SECOND));
    let answer = ready(first.as_mut());
    assert!(is_busy(&answer), "{answer:?}");
    drop(outside);
    tested.assert_empty();
    assert_eq!(tested.rate(), 2);
}

#[test]
fn a_caller_behind_one_that_waits_is_told_of_the_line() {
    let tested = Tested::one_a_second();
    drop(tested.line.try_acquire().expect("there are two"));
    let mut large = tested.waiting(2);
    let on = tested.line.with_timer(&tested.clock);
    let mut small = that_waits(on.acquire_timeout(1, Duration::from_millis(1)));
    tested.clock.set(tick(SECOND / 1000));
    let answer = ready(small.as_mut());
    assert_eq!(answer.err(), Some(AllDenied::Line));
    assert_eq!(tested.line.waiting(), 1);
    tested.clock.set(tick(SECOND));
    drop(large.granted());
    tested.assert_empty();
}

#[test]
fn the_first_in_line_ends_when_a_member_would_deny_for_too_long() {
    let (tested, outside) = Tested::full();
    let on = tested.line.with_timer(&tested.clock);
    let mut first = that_waits(on.acquire_timeout(1, Duration::from_millis(999)));
    // A caller outside the line takes all permits of the rate.
    assert_eq!(tested.limits.inner().0.charge(2).debt(), 0);
    drop(outside);
    let answer = ready(first.as_mut());
    let denied = answer.expect_err("too late");
    let expected = (Some(0), Some(Duration::from_secs(1)));
    assert_eq!((denied.member(), denied.retry_after()), expected);
    assert_eq!((tested.line.waiting(), tested.inside.inside()), (0, 0));
}

#[test]
fn a_thread_leaves_the_line_when_its_time_is_over() {
    deadline("a thread in line", || {
        // First in line.
        let (tested, outside) = Tested::full();
        after_two_seconds(&tested, 1, |answer| is_busy(&answer));
        drop(outside);
        tested.assert_empty();
        assert_eq!(tested.rate(), 2);

        // Behind another caller.
        let tested = Tested::one_a_second();
        drop(tested.line.try_acquire().expect("there are two"));
        let mut large = tested.waiting(2);
        after_two_seconds(&tested, 2, |answer| answer.err() == Some(AllDenied::Line));
        assert_eq!(tested.line.waiting(), 1);
        tested.clock.set(tick(SECOND));
        drop(large.granted());
        tested.assert_empty();
    });
}

#[test]
fn a_timeout_that_ends_after_the_clock_is_none() {
    let tested = Tested::spent();
    let on = tested.line.with_timer(&tested.clock);
    let mut first = that_waits(on.acquire_timeout(2, Duration::MAX));
    assert_eq!(tested.clock.sleepers(), 1); // for the rate
    tested.clock.set(tick(2 * SECOND));
    assert!(poll(first.as_mut()).is_ready());
}

#[test]
fn a_timer_that_wakes_early_does_not_end_the_time() {
    let (tested, outside) = Tested::full();
    let line = tested.line.with_timer(HalfAsleep(&tested.clock));
    let answer = run(&tested.clock, line.acquire_timeout(1, TWO_SECONDS));
    assert!(is_busy(&answer), "{answer:?}");
    assert_eq!(tested.clock.now(), tick(2 * SECOND));
    drop(outside);
    tested.assert_empty();
}

#[test]
fn a_timer_of_another_clock_ends_a_time_too() {
    let (tested, outside) = Tested::full();
    let other = ManualClock::new();
    let line = tested.line.with_timer(&other);
    let answer = run(&other, line.acquire_timeout(1, TWO_SECONDS));
    assert!(is_busy(&answer), "{answer:?}");
    drop(outside);
    tested.assert_empty();
}

/// A caller that may not wait is denied by the member, also if no caller may.
#[test]
fn a_caller_without_time_does_not_stand_in_line() {
    let (tested, outside) = Tested::full();
    let line = Line::new(&*tested.limits).max_waiting_permits(0);
    let on = line.with_timer(&tested.clock);
    let short = Duration::from_nanos(1);
    for (timeout, member) in [(Duration::ZERO, Some(1)), (short, None)] {
        let answers = [
            line.blocking_acquire_timeout(1, timeout).map(drop),
            ready(pin!(on.acquire_timeout(1, timeout))).map(drop),
        ];
        let members = answers.map(|answer| answer.expect_err("no room").member());
        assert_eq!(members, [member; 2], "{timeout:?}");
    }
    drop(outside);
    tested.assert_empty();
}

/// A look at a concurrency tells what a request would get while a caller waits for it.
#[test]
fn a_caller_that_waits_for_room_is_not_passed_by_a_composition() {
    let tested = Tested::one_a_second();
    let one = tested.inside.try_enter_owned(1).expect("room");
    let waits = that_waits(tested.inside.enter_n(2));
    let busy = |answer: Result<(), AllDenied>| answer.map_err(|denied| denied.member());
    assert_eq!(busy(tested.limits.check_n(1)), Err(Some(1)));
    assert_eq!(busy(tested.limits.try_acquire().map(drop)), Err(Some(1)));
    assert_eq!((tested.rate(), tested.inside.inside()), (2, 1));
    drop((one, waits));
    assert_eq!(tested.limits.check_n(1), Ok(()));
    tested.assert_empty();
}

/// A caller whose time is over has asked a last time, and that denial counts.
#[test]
fn a_counted_member_counts_a_caller_whose_time_is_over_once() {
    deadline("a thread in line", || {
        let clock = ManualClock::new();
        let inside = Concurrency::new(1).expect("a limit").counted();
        let all = All::new((rate(Quota::per_second(5), &clock), &inside)).expect("two limits");
        let line = Line::new(&all);
        let denied = || inside.stats().expect("it counts").denied;
        let before = line.try_acquire().expect("room");
        let on = line.with_timer(&clock);
        let mut first = that_waits(on.acquire_timeout(1, TWO_SECONDS));
        clock.set(tick(2 * SECOND));
        assert!(ready(first.as_mut()).is_err());
        assert_eq!(denied(), 1);
        let first = |_| {
            assert!(
                line.blocking_acquire_timeout(1, TWO_SECONDS / 1000)
                    .is_err()
            )
        };
        on_threads_while(0..1, first, |ended| {
            if line.waiting() == 1 {
                clock.set(tick(3 * SECOND));
            }
            std::thread::yield_now();
            ended < 1
        });
        assert_eq!(denied(), 2);
        drop(before);
        let granted = inside.stats().map(|stats| stats.granted);
        assert_eq!((granted, inside.inside()), (Some(1), 0));
    });
}
