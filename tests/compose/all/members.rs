//! Limits made of other limits, as members of a composition.

use tollgate::compose::{BoxMember, Closed, Exempt, Named, OrElse, Shadow};
use tollgate::error::ComposeError;

use super::{Bucket, per_second as bucket, rates, settled};
use crate::support::*;

#[test]
fn the_second_limit_grants_what_the_first_denies() {
    let (_, [share, pool]) = rates([3, 10]);
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
    let (_, [a, b, c]) = rates([5, 5, 5]);
    let left = || (a.available(), b.available(), c.available());
    /// Takes three times, and undoes or settles the grants in another order.
    macro_rules! thrice {
        ($limits:expr) => {{
            let all = All::new($limits).expect("a composition");
            let [mut first, second, mut third] =
                [(); 3].map(|()| all.try_acquire_n(4).expect("granted"));
            assert_eq!(left(), (1, 1, 1));
            assert_eq!(second.undo(), 4);
            assert_eq!(left(), (1, 5, 1));
            assert_eq!(settled(third.settle([1])), (3, 0));
            assert_eq!(left(), (1, 5, 4));
            assert_eq!(settled(first.settle([5])), (0, 1));
            assert_eq!(left(), (0, 5, 4));
            let _ = [&a, &b, &c].map(|limiter| limiter.reset());
        }};
    }
    thrice!(OrElse::new(&a, OrElse::new(&b, &c)));
    thrice!(OrElse::new(OrElse::new(&a, &b), &c));
}

#[test]
fn a_denied_member_beside_it_takes_nothing_from_either_limit() {
    let (_, [share, pool, other]) = rates([3, 9, 2]);
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
    let (_, [slow, fast]) = rates([1, 10]);
    for limiter in [&slow, &fast] {
        limiter.charge(limiter.available());
    }
    for (one, other) in [(&slow, &fast), (&fast, &slow)] {
        let all = All::new(OrElse::new(one, other)).expect("a composition");
        let answer = |n: u64| {
            let denied = all.try_acquire_n(n).map(drop).expect_err("denied");
            assert_eq!(all.check_n(n), Err(denied));
            denied.denied().expect("a denial")
        };
        let millis = |n| Some(Duration::from_millis(n));
        assert_eq!(answer(1).retry_after(), millis(100));
        // One never grants: the wait is that of the other.
        assert_eq!(answer(2).retry_after(), millis(200));
        // Neither ever grants: the most is that of the larger.
        assert_eq!(answer(11), Denied::never(11, 10));
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
    let (clock, [share, pool]) = rates([3, 10]);
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

    // The common pool is one too.
    let all = All::new(OrElse::new(&pool, &inside)).expect("a composition");
    drop(all.try_acquire_n(4).expect("the pool"));
    let second = all.try_acquire().expect("room");
    assert_eq!((inside.inside(), pool.available()), (1, 0));
    drop(second);
    assert_eq!(inside.inside(), 0);
}

/// A choice with a log on either side can't undo, whichever side grants, nor can a log on trial.
#[test]
fn a_choice_with_a_limit_that_cannot_undo_is_taken_from_last() {
    let clock = ManualClock::new();
    let log = || {
        let log = SlidingLog::with_clock(Quota::per_hour(3), clock.clone());
        log.expect("a quota")
    };
    let (one, other, rate) = (log(), log(), bucket(5, &clock));
    let members: [BoxMember<'_, ManualClock>; 3] = [
        Box::new(OrElse::new(&one, &rate)),
        Box::new(OrElse::new(&rate, &one)),
        Box::new(Shadow::new(&one)),
    ];
    for member in members {
        let error = All::new((&other, member)).expect_err("two that can't undo");
        assert_eq!(
            error,
            ComposeError::SecondWithoutUndo {
                member: 1,
                other: 0
            }
        );
    }
}

#[test]
fn limits_on_different_clocks_are_refused() {
    let [one, other] = [(); 2].map(|()| bucket(1, &ManualClock::new()));
    let error = All::new((Exempt, OrElse::new(&one, &other))).expect_err("two clocks");
    let (member, other) = (1, 1);
    assert_eq!(error, ComposeError::ClocksDiffer { member, other });
}

#[test]
fn the_same_limit_beside_it_is_taken_from_twice() {
    let (_, [share, pool]) = rates([3, 10]);
    let limits = (&pool, OrElse::new(&share, &pool), Exempt, Exempt);
    let all = All::new(limits).expect("a composition");
    drop(all.try_acquire_each([4, 3, 100, 1]).expect("granted"));
    assert_eq!((share.available(), pool.available()), (0, 6));
    drop(all.try_acquire_each([4, 2, 0, 0]).expect("granted"));
    assert_eq!((share.available(), pool.available()), (0, 0));
}

/// The trial does not speak for the limit.
#[test]
fn the_same_limit_beside_its_shadow_is_taken_from_twice_and_denies() {
    let rate = bucket(5, &ManualClock::new());
    let trial = Shadow::new(&rate);
    let all = All::new((&trial, &rate)).expect("a composition");
    drop(all.try_acquire().expect("granted"));
    assert_eq!((rate.available(), trial.stats().permits), (3, 1));
    assert_eq!(all.try_acquire_n(4).expect_err("3 left").member(), Some(1));
}

#[test]
fn exempt_grants_and_closed_denies_everything() {
    let limiter = bucket(5, &ManualClock::new());
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
    // Without a clock, the time stands still.
    let all = All::<_, ManualClock>::new((Exempt, Closed)).expect("a composition");
    let denied = all.try_acquire().map(drop).expect_err("closed");
    assert_eq!((denied.member(), all.now()), (Some(1), Tick::ZERO));
}

#[test]
fn limits_nested_too_deep_are_refused() {
    type Inner = BoxMember<'static, ManualClock>;
    let in_second = |one: Inner, inner: Inner| -> Inner { Box::new(OrElse::new(one, inner)) };
    let in_first = |one: Inner, inner: Inner| -> Inner { Box::new(OrElse::new(inner, one)) };
    let of_both: [&dyn Fn(Inner, Inner) -> Inner; 2] = [&in_second, &in_first];
    for or_else in of_both {
        let nested = |depth: u32| {
            let clock = ManualClock::new();
            let one = || -> Inner { Box::new(bucket(1, &clock)) };
            All::new((0..depth).fold(one(), |inner, _| or_else(one(), inner)))
        };
        let all = nested(32).expect("a composition");
        let grants: Vec<_> = (0..33)
            .map(|_| all.try_acquire().expect("granted"))
            .collect();
        assert!(all.try_acquire().is_err());
        assert!(grants.into_iter().all(|granted| granted.undo() == 1));
        assert!((0..33).all(|_| all.try_acquire().is_ok()));

        let error = nested(33).expect_err("too deep");
        let (member, depth, max) = (0, 33, 32);
        assert_eq!(error, ComposeError::NestedTooDeep { member, depth, max });
    }
}

/// A token bucket, a window and a concurrency.
fn mixture() -> (Bucket, Limiter<SlidingWindow, ManualClock>, Concurrency) {
    let (clock, [bucket]) = rates([10]);
    let window = SlidingWindow::new(Quota::per_hour(50)).expect("a quota");
    let window = Limiter::with_clock(window, clock);
    (bucket, window, Concurrency::new(2).expect("a limit"))
}

#[test]
fn a_mixture_at_run_time_takes_undoes_and_settles() {
    let (rate, window, inside) = mixture();
    let left = || (rate.available(), window.available(), inside.inside());
    let members: Vec<BoxMember<'_, ManualClock>> =
        vec![Box::new(&rate), Box::new(&window), Box::new(&inside)];
    let all = All::new(members).expect("a composition");
    let mut granted = all.try_acquire_each([8, 8, 2]).expect("granted");
    assert_eq!(left(), (2, 42, 2));
    let denied = all.try_acquire().expect_err("denied");
    assert_eq!(denied.member(), Some(2));
    assert_eq!(settled(granted.settle([5, 9, 2])), (3, 1));
    assert_eq!(left(), (5, 41, 0));
    let granted = all.try_acquire_each([5, 5, 1]).expect("granted");
    assert_eq!(granted.undo(), 11);
    assert_eq!(left(), (5, 41, 0));
}

#[test]
fn a_mixture_at_run_time_takes_from_limits_that_cannot_undo() {
    let (rate, _, inside) = mixture();
    let clock = rate.clock().clone();
    let log = SlidingLog::with_clock(Quota::per_hour(3), clock.clone()).expect("a quota");
    let log = Arc::new(log);
    let inside = Arc::new(inside);
    let members: Vec<BoxMember<'_, ManualClock>> = vec![
        Box::new(Arc::clone(&log)),
        Box::new(&rate),
        Box::new(Arc::clone(&inside)),
    ];
    let all = All::new(members).expect("a composition");
    let granted = all.try_acquire_n(2).expect("granted");
    assert_eq!(all.try_acquire().expect_err("denied").member(), Some(2));
    let actual = (log.available(), rate.available(), inside.inside());
    assert_eq!(actual, (1, 8, 2));
    drop(granted);
    // What the log has granted, it keeps.
    assert_eq!(all.try_acquire().expect("granted").undo(), 2);
    let mut granted = all.try_acquire_each([0, 5, 1]).expect("granted");
    assert_eq!(settled(granted.settle([9, 3, 1])), (2, 0));
    let actual = (log.available(), rate.available(), inside.inside());
    assert_eq!(actual, (0, 5, 0));
    // The log denies: the others, which come before it, have everything again.
    assert_eq!(all.try_acquire_n(2).expect_err("denied").member(), Some(0));
    let actual = (log.available(), rate.available(), inside.inside());
    assert_eq!(actual, (0, 5, 0));

    let bucket = TokenBucket::new(Quota::per_second(9)).expect("a quota");
    let leases = Leases::with_clock(bucket, 3, clock).expect("leases");
    let members: Vec<BoxMember<'_, ManualClock>> = vec![Box::new(log), Box::new(&leases)];
    let error = All::new(members).expect_err("two that can't undo");
    assert_eq!(error.field(), "member");
}

#[test]
fn a_caller_leaves_early_and_settles_later() {
    let (rate, window, inside) = mixture();
    let left = || (rate.available(), window.available(), inside.inside());
    let all = All::new((&rate, &inside, &window)).expect("a composition");
    let mut granted = all.try_acquire_each([8, 1, 8]).expect("granted");
    granted.leave();
    granted.leave();
    assert_eq!(left(), (2, 42, 0));
    assert!(granted.member(1).is_none());
    // The place is free for others, and the rest of the grant does not give it up again.
    let other = inside.try_enter().expect("room");
    assert_eq!(settled(granted.settle([5, 1, 5])), (6, 0));
    assert_eq!(left(), (5, 45, 1));
    let mut granted = all.try_acquire().expect("granted");
    granted.leave();
    assert_eq!(granted.undo(), 2);
    assert_eq!(left(), (5, 45, 1));
    drop(other);

    let all = All::new((OrElse::new(&inside, &rate), &window)).expect("a composition");
    let mut granted = all.try_acquire_n(2).expect("granted");
    let mut common = all.try_acquire_n(2).expect("granted");
    granted.leave();
    common.leave();
    assert_eq!(left(), (3, 41, 0));
    assert_eq!(common.undo(), 4);
    assert_eq!(granted.undo(), 2);
    assert_eq!(left(), (5, 45, 0));
}

#[test]
fn grants_that_own_the_composition_leave_it_on_another_thread() {
    let (rate, _, inside) = mixture();
    let all = Arc::new(All::new((rate, inside)).expect("a composition"));
    let one = all.try_acquire_owned().expect("granted");
    let other = all.try_acquire_n_owned(1).expect("granted");
    assert!(all.try_acquire_n_owned(2).is_err());
    let left = |all: &Arc<All<(Bucket, Concurrency), ManualClock>>| {
        let (rate, inside) = all.inner();
        (rate.available(), inside.inside())
    };
    assert_eq!(left(&all), (8, 2));
    thread::scope(|scope| {
        scope.spawn(move || drop(one));
        scope.spawn(move || other.undo());
    });
    assert_eq!(left(&all), (9, 0));
}

#[test]
fn an_estimate_stays_or_comes_back() {
    let (rate, window, inside) = mixture();
    let left = || (rate.available(), window.available(), inside.inside());
    let all = All::new((&rate, &window, &inside)).expect("a composition");
    let grant = || all.try_acquire_each([2, 2, 1]).expect("granted");
    let estimate = || grant().undo_on_drop();
    drop(grant());
    assert_eq!(left(), (8, 48, 0));
    assert_eq!((grant().undo(), left()), (5, (8, 48, 0)));
    drop(estimate());
    assert_eq!(left(), (8, 48, 0));
    assert_eq!((estimate().undo(), left()), (5, (8, 48, 0)));
    assert_eq!(settled(estimate().settle([1, 5, 1])), (1, 3));
    assert_eq!(left(), (7, 43, 0));
    assert_eq!(settled(grant().settle([3, 1, 1])), (1, 1));
    assert_eq!(left(), (4, 42, 0));
    let mut early = estimate();
    early.leave();
    assert_eq!(left(), (2, 40, 0));
    drop(early);
    assert_eq!(left(), (4, 42, 0));
    let mut kept = estimate();
    assert_eq!(kept.member(0).map(|granted| granted.n()), Some(2));
    kept.keep();
    assert_eq!(left(), (2, 40, 1));
    drop(kept);
    assert_eq!(left(), (2, 40, 0));
    let mut kept = estimate();
    kept.keep();
    assert_eq!((kept.undo(), left()), (0, (0, 38, 0)));
    assert!(all.try_acquire_n(1).is_err());
}

/// Its grants do not say what it has left, because counting takes a search.
#[test]
fn a_log_tells_what_it_has_left() {
    let clock = ManualClock::new();
    let log = || SlidingLog::with_clock(Quota::per_second(5), clock.clone()).expect("a log");
    let rate = bucket(9, &clock);
    let all = All::new((&rate, log())).expect("two limits");
    let granted = all.try_acquire_n(2).expect("granted");
    assert_eq!((granted.remaining(), granted.tightest()), (3, 1));
    let granted = all.try_acquire_each([6, 1]).expect("granted");
    assert_eq!((granted.remaining(), granted.tightest()), (1, 0));

    let boxed: BoxMember<'_, ManualClock> = Box::new(log());
    let boxed = All::new(OrElse::new(Closed, Counted::new(boxed))).expect("a log");
    let granted = boxed.try_acquire_n(4).expect("granted");
    assert_eq!((granted.remaining(), granted.tightest()), (1, 0));
}
