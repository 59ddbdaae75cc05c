//! Callers that wait for at most a time: those that would be too late take nothing.

use crate::support::*;

#[test]
fn a_caller_that_would_be_too_late_takes_nothing() {
    let (clock, limiter) = bucket(Quota::per_second(10).burst(1));
    let longest = Duration::from_millis(250);
    let reserve = || limiter.reserve_within(1, longest);
    let dues = [(); 3].map(|()| millis(reserve().expect("in time").due()));
    assert_eq!(dues, [0, 100, 200]);
    let on = limiter.with_timer(&clock);
    for _ in 0..2 {
        let acquired = pin!(on.acquire_timeout(1, longest));
        let Poll::Ready(Err(late)) = poll(acquired) else {
            panic!("it waits");
        };
        assert_eq!(late.retry_after(), Some(Duration::from_millis(50)));
        assert_eq!(limiter.blocking_acquire_timeout(1, longest), Err(late));
        assert_eq!(reserve().map(drop), Err(late));
    }
    assert_eq!(limiter.at(clock.now()).waiting(), 2);
}

#[test]
fn a_queue_tells_how_many_permits_wait() {
    let queue = LeakyBucket::queue(Quota::per_second(10).burst(5)).expect("a quota");
    let queue = Limiter::with_clock(queue, ManualClock::new());
    let reserve = || queue.reserve_within(1, Duration::from_millis(400));
    let are_due = [(); 5].map(|()| reserve().expect("in time").is_due());
    assert_eq!(are_due, [true, false, false, false, false]);
    assert!(reserve().is_err(), "it is full");
    assert_eq!(queue.at(queue.clock().now()).waiting(), 4);
}
