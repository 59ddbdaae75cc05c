//! Grants and denials say the same however they were created.

use tollgate::outcome::ceil_secs;

use crate::support::*;

#[test]
fn a_denial_says_whether_a_retry_can_succeed() {
    let wait = Duration::from_millis(20);
    let denials = [
        Denied::later(5, wait),
        Denied::busy(5),
        Denied::line_full(5, 6, 10),
        Denied::no_room(5),
        Denied::no_such_plan(5),
        Denied::never(5, 3),
        Denied::stuck(5),
    ];
    let texts = "\
no: rate limit reached: 5 available in 20ms
no: limit reached: 5 available when others have left
no: line is full: 6 permits wait, and 5 more would exceed 10
no: has no room for another key now
yes: has no such plan
yes: can never grant 5 at once: the most is 3
yes: can't grant 5 until it is reset";
    assert_eq!(texts.lines().count(), denials.len());
    for (denied, text) in denials.into_iter().zip(texts.lines()) {
        let (is_permanent, text) = text.split_once(": ").expect(text);
        assert!(denied.to_string().ends_with(text), "{denied}");
        let actual = (denied.requested(), denied.is_permanent());
        assert_eq!(actual, (5, is_permanent == "yes"));
        let is_later = denied == Denied::later(5, wait);
        assert_eq!(denied.retry_after(), is_later.then_some(wait));
        // tower_governor sends `Retry-After: 0` for a wait below a second.
        assert_eq!(denied.retry_after_secs(), is_later.then_some(1));
    }
}

#[test]
fn a_wait_in_whole_seconds_is_rounded_up() {
    let cases = [
        (Duration::ZERO, 0),
        (Duration::from_nanos(1), 1),
        (Duration::from_millis(999), 1),
        (Duration::from_secs(1), 1),
        (Duration::new(1, 1), 2),
        // axum-governor rounds it down to 1.
        (Duration::from_millis(1900), 2),
        (Duration::from_secs(u64::MAX), u64::MAX),
        (Duration::MAX, u64::MAX),
    ];
    for (wait, secs) in cases {
        assert_eq!(ceil_secs(wait), secs, "{wait:?}");
        let actual = Denied::later(1, wait).retry_after_secs();
        assert_eq!(actual, Some(secs), "{wait:?}");
    }
}

/// A queue counts in units other than nanoseconds, but an added delay is in nanoseconds.
#[test]
fn adding_to_a_grant_keeps_the_rest_of_it() {
    let queue = LeakyBucket::queue(Quota::per_second(13).burst(40)).expect("a queue");
    let limiter = Limiter::unstarted(queue, NoClock);
    let fresh = || {
        limiter.reset();
        limiter.at(tick(12_345)).try_acquire_n(9).expect("fresh")
    };
    let granted = fresh();
    let (reset, delay) = (granted.reset_after(), granted.delay());
    assert!(delay > Duration::ZERO && reset > delay);
    let later = granted.at().saturating_add(Duration::from_secs(3));
    let ready = fresh().with_ready_at(later);
    assert_eq!((ready.reset_after(), ready.due()), (reset, later));
    let other = fresh().with_reset_at(later);
    let expected = (Duration::from_secs(3), delay);
    assert_eq!((other.reset_after(), other.delay()), expected);
    let due = fresh().when_due();
    assert_eq!((due.at(), due.delay()), (granted.due(), Duration::ZERO));
    assert_eq!(due.reset_after(), reset - delay);
}
