//! Limits made of other limits, as members of a composition.

use std::time::Duration;

use tollgate::compose::{All, Closed, Exempt, Named, OrElse};
use tollgate::{Concurrency, Denied, Limiter, ManualClock, Quota, TokenBucket};

type Bucket = Limiter<TokenBucket, ManualClock>;

/// A bucket of `n` permits, full, that fills in a second.
fn bucket(n: u64, clock: &ManualClock) -> Bucket {
    let bucket = TokenBucket::new(Quota::per_second(n)).expect("a quota");
    Limiter::with_clock(bucket, clock.clone())
}

#[test]
fn the_second_limit_grants_what_the_first_denies() {
    let clock = ManualClock::new();
    let (share, pool) = (bucket(3, &clock), bucket(10, &clock));
    let all = All::new(OrElse::new(&share, &pool)).expect("a composition");
    assert_eq!(all.members(), 1);
    for (n, left) in [(2, (1, 10)), (2, (1, 8)), (1, (0, 8)), (8, (0, 0))] {
        let granted = all.try_acquire_n(n).expect("granted");
        assert_eq!(granted.member(0).map(|granted| granted.n()), Some(n));
        assert_eq!((share.available(), pool.available()), left);
    }
    assert!(all.try_acquire().is_err());
}

#[test]
fn undo_and_settle_reach_the_limit_that_granted() {
    let clock = ManualClock::new();
    let (a, b, c) = (bucket(5, &clock), bucket(5, &clock), bucket(5, &clock));
    let left = || (a.available(), b.available(), c.available());
    /// Takes three times, and undoes or settles the grants in another order.
    macro_rules! thrice {
        ($limits:expr) => {{
            let all = All::new($limits).expect("a composition");
            let [first, second, third] = [(); 3].map(|()| all.try_acquire_n(4).expect("granted"));
            assert_eq!(left(), (1, 1, 1));
            assert_eq!(second.undo(), 4);
            assert_eq!(left(), (1, 5, 1));
            assert_eq!(third.settle([1]).returned, 3);
            assert_eq!(left(), (1, 5, 4));
            assert_eq!(first.settle([5]).charged, 1);
            assert_eq!(left(), (0, 5, 4));
            let _ = [&a, &b, &c].map(|limiter| limiter.reset());
        }};
    }
    thrice!(OrElse::new(&a, OrElse::new(&b, &c)));
    thrice!(OrElse::new(OrElse::new(&a, &b), &c));
}

#[test]
fn a_denied_member_beside_it_takes_nothing_from_either_limit() {
    let clock = ManualClock::new();
    let (share, pool, other) = (bucket(3, &clock), bucket(9, &clock), bucket(2, &clock));
    let limits = (OrElse::new(&share, &pool), Named::new("other", &other));
    let all = All::new(limits).expect("a composition");
    for n in [3, 5] {
        let denied = all.try_acquire_each([n, 4]).expect_err("denied");
        assert_eq!(denied.name(), Some("other"));
    }
    assert_eq!((share.available(), pool.available()), (3, 9));
}

#[test]
fn the_denial_that_ends_sooner_is_the_answer() {
    let clock = ManualClock::new();
    let (slow, fast) = (bucket(1, &clock), bucket(10, &clock));
    for limiter in [&slow, &fast] {
        limiter.charge(limiter.available());
    }
    let wait = |all: Result<Option<Duration>, Denied>| all.expect("not permanent");
    let answer = |n: u64, one: &Bucket, other: &Bucket| {
        let all = All::new(OrElse::new(one, other)).expect("a composition");
        let taken = all
            .try_acquire_n(n)
            .expect_err("denied")
            .denied()
            .expect("a denial");
        assert_eq!(all.check_n(n).expect_err("denied").denied(), Some(taken));
        match taken.is_permanent() {
            true => Err(taken),
            false => Ok(taken.retry_after()),
        }
    };
    let tenth = Some(Duration::from_millis(100));
    assert_eq!(wait(answer(1, &slow, &fast)), tenth);
    assert_eq!(wait(answer(1, &fast, &slow)), tenth);
    // One never grants: the wait is that of the other.
    assert_eq!(
        wait(answer(2, &slow, &fast)),
        Some(Duration::from_millis(200))
    );
    assert_eq!(
        wait(answer(2, &fast, &slow)),
        Some(Duration::from_millis(200))
    );
    // Neither ever grants: the most is that of the larger.
    for (one, other) in [(&slow, &fast), (&fast, &slow)] {
        let never = answer(11, one, other).expect_err("permanent");
        assert!(
            matches!(never, Denied::Never { limit: 10, .. }),
            "{never:?}"
        );
    }
    let inside = Concurrency::new(1).expect("a limit");
    let _guard = inside.try_enter().expect("room");
    // A known wait, before one of unknown length, before a permanent denial.
    let all = All::new(OrElse::new(&inside, &slow)).expect("a composition");
    assert_eq!(all.time_until(1), Some(Duration::from_secs(1)));
    let all = All::new((OrElse::new(&inside, Closed), &slow)).expect("a composition");
    let denied = all.check_n(1).expect_err("denied").denied();
    assert!(matches!(denied, Some(Denied::Busy { .. })), "{denied:?}");
}

#[test]
fn available_is_the_larger_and_a_charge_goes_to_the_first() {
    let clock = ManualClock::new();
    let (share, pool) = (bucket(3, &clock), bucket(10, &clock));
    let all = All::new(OrElse::new(&share, &pool)).expect("a composition");
    assert_eq!(all.available(), 10);
    assert_eq!(all.charge_each([5]), Ok(5));
    assert_eq!((share.charge(0).debt(), pool.available()), (2, 10));
    pool.charge(10);
    clock.advance(Duration::from_secs(1));
    pool.charge(10);
    assert_eq!(all.available(), 1);
}

#[test]
fn a_concurrency_inside_is_left_only_by_its_own_grants() {
    let clock = ManualClock::new();
    let (inside, pool) = (Concurrency::new(1).expect("a limit"), bucket(5, &clock));
    let all = All::new(OrElse::new(&inside, &pool)).expect("a composition");
    let first = all.try_acquire().expect("room");
    drop(all.try_acquire().expect("the pool"));
    assert_eq!((inside.inside(), pool.available()), (1, 4));
    drop(first);
    assert_eq!((inside.inside(), pool.available()), (0, 4));
}

#[test]
fn limits_on_different_clocks_are_refused() {
    let (one, other) = (
        bucket(1, &ManualClock::new()),
        bucket(1, &ManualClock::new()),
    );
    let error = All::new((Exempt, OrElse::new(&one, &other))).expect_err("two clocks");
    assert_eq!(error.field(), "clock");
    let text = "clock of member 1 must be one, but it has several";
    assert_eq!(error.to_string(), text);
}

#[test]
fn the_same_limit_beside_it_is_taken_from_twice() {
    let clock = ManualClock::new();
    let (share, pool) = (bucket(3, &clock), bucket(10, &clock));
    let limits = (&pool, OrElse::new(&share, &pool), Exempt, Exempt);
    let all = All::new(limits).expect("a composition");
    drop(all.try_acquire_each([4, 3, 100, 1]).expect("granted"));
    assert_eq!((share.available(), pool.available()), (0, 6));
    drop(all.try_acquire_each([4, 2, 0, 0]).expect("granted"));
    assert_eq!((share.available(), pool.available()), (0, 0));
}

#[test]
fn exempt_grants_and_closed_denies_everything() {
    let clock = ManualClock::new();
    let limiter = bucket(5, &clock);
    let all = All::new((Exempt, &limiter)).expect("a composition");
    let granted = all.try_acquire_each([u64::MAX, 2]).expect("granted");
    assert_eq!((granted.tightest(), granted.remaining()), (1, 3));
    assert_eq!(granted.undo(), 2);
    assert_eq!((all.available(), limiter.available()), (5, 5));
    assert_eq!(all.charge_each([9, 1]), Ok(1));
    let all = All::new((&limiter, Closed)).expect("a composition");
    for n in [0, 1, u64::MAX] {
        let denied = all.try_acquire_each([0, n]).expect_err("denied");
        assert!(denied.is_permanent() && denied.member() == Some(1));
    }
    assert_eq!((all.available(), all.time_until(1)), (0, None));
    let error = All::<_, ManualClock>::new((Exempt, Closed)).expect_err("no clock");
    assert_eq!(error.field(), "clock");
}
