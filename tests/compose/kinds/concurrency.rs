//! Keys of a `KeyedConcurrency` as members of a composition.

use tollgate::compose::{AllDenied, Line};
use tollgate::keyed::KeyedConcurrency;

use crate::support::*;

/// Ten permits an hour, and this many calls of a key at a time.
fn limits(limit: u64) -> (Limiter<TokenBucket, ManualClock>, KeyedConcurrency) {
    let rate = Limiter::with_clock(bucket("10/h"), ManualClock::new());
    let calls = KeyedConcurrency::new(limit, 100).expect("a limit");
    (rate, calls)
}

fn is_busy(denied: AllDenied) -> bool {
    matches!(denied.denied(), Some(Denied::Busy { .. })) && denied.member() == Some(1)
}

#[test]
fn a_grant_is_inside_until_it_is_dropped_left_undone_or_settled() {
    let (rate, calls) = limits(3);
    let acme = All::new((&rate, calls.key("acme"))).expect("two limits");
    let left = || (rate.available(), calls.inside("acme"));
    assert_eq!(acme.available(), 3);

    let granted = acme.try_acquire_n(2).expect("room");
    assert_eq!((left(), granted.remaining()), ((8, 2), 1));
    let denied = acme.try_acquire_n(2).expect_err("room for one");
    assert!(is_busy(denied) && acme.check_n(2).is_err_and(is_busy));
    let denied = acme.try_acquire_n(4).expect_err("three at most");
    assert!(matches!(
        denied.denied(),
        Some(Denied::Never { limit: 3, .. })
    ));
    assert_eq!((left(), calls.inside("other")), ((8, 2), 0));
    drop(granted);
    assert_eq!(left(), (8, 0));

    assert_eq!(acme.try_acquire_n(3).expect("room").undo(), 6);
    assert_eq!(left(), (8, 0));
    let mut granted = acme.try_acquire_each([5, 1]).expect("room");
    granted.leave();
    assert_eq!(left(), (3, 0));
    let mut other = acme.try_acquire_each([0, 3]).expect("room");
    assert_eq!(
        granted.settle([1, 1]).map(|settled| settled.returned),
        Ok(4)
    );
    assert_eq!(left(), (7, 3));
    assert!(other.settle([0, 3]).is_ok());
    assert_eq!(left(), (7, 0));
    drop((granted, other));
    assert_eq!(left(), (7, 0));
}

#[test]
fn a_key_that_appears_twice_takes_the_sum() {
    let (rate, calls) = limits(3);
    let calls = Arc::new(calls);
    let (one, same) = (calls.key("acme"), calls.key_owned("acme"));
    let all = All::new((&rate, one, same, calls.key("other"))).expect("three limits");
    assert_eq!((all.members(), all.available()), (4, 1));
    let granted = all.try_acquire_each([1, 1, 2, 1]).expect("room");
    assert_eq!((calls.inside("acme"), calls.inside("other")), (3, 1));
    assert!(all.try_acquire_each([1, 1, 0, 0]).is_err_and(is_busy));
    drop(granted);
    assert_eq!((calls.inside("acme"), calls.inside("other")), (0, 0));
}

#[test]
fn a_line_ends_with_the_denial_of_a_busy_key() {
    deadline("a line before a key", || {
        let (rate, calls) = limits(1);
        let all = All::new((&rate, calls.key("acme"))).expect("two limits");
        let line = Line::new(&all);
        let granted = line.blocking_acquire().expect("room");
        assert!(line.blocking_acquire().is_err_and(is_busy));
        drop(granted);
        assert!(line.blocking_acquire().is_ok());
        assert_eq!((line.waiting(), rate.available()), (0, 8));
    });
}

#[test]
fn threads_are_never_more_inside_than_the_key_allows() {
    let (rate, calls) = limits(2);
    let acme = All::new((&rate, calls.key("acme"))).expect("two limits");
    on_threads(0..4, |_| {
        for _ in 0..1000 {
            if let Ok(granted) = acme.try_acquire() {
                assert!(calls.inside("acme") <= 2);
                let _ = granted.undo();
            }
        }
    });
    assert_eq!((rate.available(), calls.inside("acme")), (10, 0));
}
