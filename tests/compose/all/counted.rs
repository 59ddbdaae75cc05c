//! What counted members and limits on trial count.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use tollgate::compose::{Closed, Line, OrElse, OwnLimiter, Shadow};
use tollgate::stats::LimiterStats;

use super::scripted::{Scripted, Step};
use super::{per_second as bucket, rates, settled};
use crate::support::*;

/// Granted, permits, denied, returned, charged.
fn numbers(it: LimiterStats) -> [u64; 5] {
    [it.granted, it.permits, it.denied, it.returned, it.charged]
}

#[test]
fn a_counted_member_counts_the_answers_of_the_composition() {
    let clock = ManualClock::new();
    let rate = Counted::new(bucket(10, &clock));
    let inside = Counted::new(Concurrency::new(2).expect("a limit"));
    let log = SlidingLog::with_clock(Quota::per_hour(20), clock.clone()).expect("a quota");
    let log = Counted::new(log);
    let all = All::new((&rate, &inside, &log)).expect("a composition");

    let granted = all.try_acquire_each([4, 2, 3]).expect("granted");
    assert_eq!(numbers(rate.stats()), [1, 4, 0, 0, 0]);
    assert_eq!(numbers(inside.stats()), [1, 2, 0, 0, 0]);
    assert_eq!(numbers(log.stats()), [1, 3, 0, 0, 0]);
    // The member that the answer names counts a denial, whether it was looked at or taken from.
    assert_eq!(all.try_acquire().expect_err("denied").member(), Some(1));
    let denied = all.try_acquire_each([7, 0, 0]).expect_err("denied");
    assert_eq!(denied.member(), Some(0));
    assert!(all.check_n(1).is_err());
    assert!(all.try_acquire_each([1, 1]).is_err());
    assert_eq!(numbers(rate.stats()), [1, 4, 1, 0, 0]);
    assert_eq!(numbers(inside.stats()), [1, 2, 1, 0, 0]);
    drop(granted);
    let denied = all.try_acquire_each([1, 1, 18]).expect_err("denied");
    assert_eq!(denied.member(), Some(2));
    assert_eq!(numbers(log.stats()), [1, 3, 1, 0, 0]);
    assert_eq!(numbers(rate.stats()), [1, 4, 1, 0, 0]);

    let all = All::new([&rate]).expect("a composition");
    let mut granted = all.try_acquire_n(6).expect("granted");
    assert_eq!(settled(granted.settle([2])), (4, 0));
    let mut granted = all.try_acquire_n(1).expect("granted");
    assert_eq!(settled(granted.settle([3])), (0, 2));
    assert_eq!(all.try_acquire_n(1).expect("granted").undo(), 1);
    assert_eq!(all.charge_each([5]), Ok(5));
    assert_eq!(numbers(rate.stats()), [4, 12, 1, 5, 7]);
    assert!(all.try_acquire_n(1).is_err());
    // In debt, a request for no permits is denied too.
    assert!(all.try_acquire_n(0).is_err());
    assert_eq!(numbers(rate.stats()), [4, 12, 3, 5, 7]);
}

/// Each lost race counts as granted and returned at the limits that were taken from, and as denied
/// at a share whose common pool was. The denial of the request counts once.
#[test]
fn what_is_rolled_back_counts_as_granted_and_returned() {
    let clock = ManualClock::new();
    for times in 0..=3 {
        let rate = Counted::new(bucket(10, &clock));
        let share = Counted::new(bucket(1, &clock));
        let pool = Counted::new(bucket(9, &clock));
        let trial = Shadow::new(bucket(1, &clock));
        // Grants each look, denies this many takes, and is taken from last.
        let left = AtomicU64::new(times);
        let denies = |step, _| {
            let less = |left: u64| left.checked_sub(1);
            let is_left = step == Step::Take && left.fetch_update(Relaxed, Relaxed, less).is_ok();
            is_left.then(|| Denied::busy(2))
        };
        let last = Scripted::last(&denies);
        let last = Counted::new(OrElse::new(last.member(), Closed));
        let members = (&last, &rate, OrElse::new(&share, &pool), &trial);
        let all = All::new(members).expect("a composition");
        // The share has less than 2, and so has the limit on trial.
        let outcome = all.try_acquire_n(2).map(drop);
        let granted = u64::from(times < 3);
        assert_eq!(outcome.is_ok(), granted == 1, "{times}");
        assert_eq!(
            outcome.err().map(|denied| denied.member()),
            (times == 3).then_some(Some(0))
        );
        assert_eq!(
            numbers(last.stats()),
            [granted, 2 * granted, 1 - granted, 0, 0]
        );
        let rounds = times + granted;
        let actual = [rate.stats(), pool.stats()].map(numbers);
        assert_eq!(
            actual,
            [[rounds, 2 * rounds, 0, 2 * times, 0]; 2],
            "{times}"
        );
        let actual = [share.stats(), trial.stats()].map(numbers);
        assert_eq!(actual, [[0, 0, rounds, 0, 0]; 2], "{times}");
        let expected = (10 - 2 * granted, 9 - 2 * granted);
        assert_eq!((rate.available(), pool.available()), expected);
        assert_eq!((share.available(), trial.inner().available()), (1, 1));
    }
}

#[test]
fn reservations_count_when_they_are_made_and_cancelled() {
    let (_, buckets) = rates([10, 4]);
    let [one, two] = buckets.map(Counted::new);
    let all = All::new((&one, &two)).expect("a composition");
    let reserved = all.reserve_each([2, 4]).expect("the burst");
    let later = all.reserve(1).expect("later");
    assert_eq!(
        [one.stats(), two.stats()].map(numbers),
        [[2, 3, 0, 0, 0], [2, 5, 0, 0, 0]]
    );
    assert_eq!(later.cancel(), 2);
    assert_eq!(all.reserve(5).expect_err("never").member(), Some(1));
    let denied = all.reserve_within(1, Duration::ZERO).expect_err("later");
    assert_eq!(denied.member(), Some(1));
    assert_eq!(
        [one.stats(), two.stats()].map(numbers),
        [[2, 3, 0, 1, 0], [2, 5, 2, 1, 0]]
    );
    assert_eq!(reserved.cancel(), 6);
    assert_eq!(
        [one.stats(), two.stats()].map(numbers),
        [[2, 3, 0, 3, 0], [2, 5, 2, 5, 0]]
    );
}

/// What a `Concurrency` that counts by itself counts as a member.
#[test]
fn a_concurrency_counts_the_grants_and_denials_of_a_composition() {
    let rate = bucket(9, &ManualClock::new());
    let inside = Concurrency::new(2).expect("a limit").counted();
    let all = All::new((&rate, &inside)).expect("a composition");
    let granted = all.try_acquire_n(2).expect("room");
    assert_eq!(all.try_acquire().expect_err("no room").member(), Some(1));
    assert_eq!(
        all.try_acquire_each([9, 0])
            .expect_err("no permit")
            .member(),
        Some(0)
    );
    let stats = || numbers(inside.stats().expect("it counts"));
    assert_eq!(stats(), [1, 2, 1, 0, 0]);
    drop(granted);
    assert_eq!(all.try_acquire().expect("room").undo(), 2);
    assert_eq!(stats(), [2, 3, 1, 1, 0]);
    assert!(all.try_acquire().expect("room").settle([1, 1]).is_ok());
    assert_eq!((stats(), inside.inside()), ([3, 4, 1, 1, 0], 0));
    assert_eq!(Concurrency::new(1).expect("a limit").stats(), None);
}

/// Each layer counts the same, also when a caller waited in line for room.
#[test]
fn what_is_inside_a_counted_member_counts_too() {
    let clock = ManualClock::new();
    let inside = Concurrency::new(2).expect("a limit").counted();
    let inside = Counted::new(Counted::new(inside));
    let all = All::new((&inside, bucket(9, &clock))).expect("a composition");
    let granted = all.try_acquire_n(2).expect("room");
    assert!(all.try_acquire().is_err());
    assert_eq!(granted.undo(), 4);
    let each = || {
        let inner = inside.limiter();
        let own = inner.limiter().stats().expect("it counts");
        [inside.stats(), inner.stats(), own].map(numbers)
    };
    assert_eq!(each(), [[1, 2, 1, 2, 0]; 3]);
    let granted = all.try_acquire().expect("room");
    let line = Line::new(&all);
    assert!(line.try_acquire_n(2).is_err());
    assert!(line.try_acquire_each([2, 0]).is_err());
    let on = line.with_timer(&clock);
    let mut waits = that_waits(on.acquire_n(2));
    assert_eq!(each(), [[2, 3, 3, 2, 0]; 3]);
    drop(granted);
    let granted = ready(waits.as_mut()).expect("room");
    assert_eq!(each(), [[3, 5, 3, 2, 0]; 3]);
    let dropped = that_waits(on.acquire_n(2));
    drop(granted);
    assert_eq!(inside.limiter().limiter().inside(), 2, "it is let in");
    drop(dropped); // neither granted nor denied
    assert_eq!(inside.limiter().limiter().inside(), 0);
    assert_eq!(each(), [[3, 5, 3, 2, 0]; 3]);
}

/// A request that several choices deny is denied by each limit that it asked, once.
#[test]
fn choices_in_choices_count_each_limit_once() {
    let (_, buckets) = rates([1, 2, 3, 4]);
    let [a, b, c, d] = buckets.map(Counted::new);
    let (left, right) = (OrElse::new(&a, &b), OrElse::new(&c, &d));
    let choice = Counted::new(OrElse::new(Counted::new(left), Counted::new(right)));
    let all = All::new(&choice).expect("a composition");
    let each = || {
        let limits = [&a, &b, &c, &d].map(|limit| numbers(limit.stats()));
        let sides = [
            choice.limiter().first().stats(),
            choice.limiter().second().stats(),
        ];
        (limits, sides.map(numbers), numbers(choice.stats()))
    };
    for n in 1..=4 {
        drop(all.try_acquire_n(n).expect("granted"));
    }
    let once = |n, denied| [1, n, denied, 0, 0];
    let limits = [once(1, 3), once(2, 2), once(3, 1), once(4, 0)];
    let sides = [[2, 3, 2, 0, 0], [2, 7, 0, 0, 0]];
    assert_eq!(each(), (limits, sides, [4, 10, 0, 0, 0]));
    assert!(all.try_acquire().is_err());
    let limits = [once(1, 4), once(2, 3), once(3, 2), once(4, 1)];
    let sides = [[2, 3, 3, 0, 0], [2, 7, 1, 0, 0]];
    assert_eq!(each(), (limits, sides, [4, 10, 1, 0, 0]));
}

/// A limit on trial denies nothing, wherever it is. The others count around it.
#[test]
fn a_shadow_in_a_choice_and_in_a_counted_member_counts_once() {
    let (_, [share, trial]) = rates([1, 2]);
    let share = Counted::new(share);
    let trial = Counted::new(Shadow::new(trial));
    let all = All::new(OrElse::new(&share, &trial)).expect("a composition");
    let granted = [(); 4].map(|()| all.try_acquire().expect("granted"));
    let each = || [share.stats(), trial.stats(), trial.limiter().stats()].map(numbers);
    assert_eq!(each(), [[1, 1, 3, 0, 0], [3, 3, 0, 0, 0], [2, 2, 1, 0, 0]]);
    let back = granted.map(|granted| granted.undo());
    assert_eq!(back, [1, 1, 1, 0]);
    assert_eq!(each(), [[1, 1, 3, 1, 0], [3, 3, 0, 2, 0], [2, 2, 1, 2, 0]]);
}

/// A limit that appears twice is asked through its first member.
#[test]
fn a_limit_that_appears_twice_is_counted_by_its_first_member() {
    let rate = bucket(5, &ManualClock::new());
    let [first, second] = [&rate; 2].map(Counted::new);
    let all = All::new((&first, &second)).expect("a composition");
    drop(all.try_acquire_n(2).expect("4 of 5"));
    assert_eq!(all.try_acquire().expect_err("denied").member(), Some(0));
    let actual = [first.stats(), second.stats()].map(numbers);
    assert_eq!(actual, [[1, 4, 1, 0, 0], [0; 5]]);
}

#[test]
fn a_choice_counts_each_limit_that_was_asked() {
    let (_, buckets) = rates([3, 5]);
    let [share, pool] = buckets.map(Counted::new);
    let all = All::new(OrElse::new(&share, &pool)).expect("a composition");
    drop(all.try_acquire_n(2).expect("granted"));
    assert_eq!(numbers(share.stats()), [1, 2, 0, 0, 0]);
    assert_eq!(numbers(pool.stats()), [0; 5]);
    assert_eq!(all.try_acquire_n(2).expect("granted").undo(), 2);
    assert_eq!(numbers(share.stats()), [1, 2, 1, 0, 0]);
    assert_eq!(numbers(pool.stats()), [1, 2, 0, 2, 0]);
    assert!(all.try_acquire_n(6).is_err());
    assert_eq!(numbers(share.stats()), [1, 2, 2, 0, 0]);
    assert_eq!(numbers(pool.stats()), [1, 2, 1, 2, 0]);

    let (_, [one, two]) = rates([1, 2]);
    let choice = Counted::new(OrElse::new(Counted::new(one), two));
    let all = All::new(&choice).expect("a composition");
    for _ in 0..3 {
        drop(all.try_acquire().expect("granted"));
    }
    assert!(all.try_acquire().is_err());
    let stats = [choice.stats(), choice.limiter().first().stats()];
    assert_eq!(stats.map(numbers), [[3, 3, 1, 0, 0], [1, 1, 3, 0, 0]]);
}

#[test]
fn a_shadow_never_denies_and_counts_what_it_would_have_denied() {
    let (_, [service, trial]) = rates([100, 3]);
    let trial = Shadow::new(trial);
    let all = All::new((&service, &trial)).expect("a composition");
    let granted = all.try_acquire_n(2).expect("granted");
    assert_eq!((granted.tightest(), granted.remaining()), (0, 98));
    let exempt = all.try_acquire_n(2).expect("granted");
    assert_eq!((trial.stats().granted, trial.would_deny()), (1, 1));
    assert_eq!(trial.inner().available(), 1);
    // What the shadow did not take does not come back to it.
    assert_eq!(exempt.undo(), 2);
    assert_eq!(trial.inner().available(), 1);
    assert_eq!(granted.undo(), 4);
    assert_eq!((trial.inner().available(), service.available()), (3, 100));
    assert_eq!(numbers(trial.stats()), [1, 2, 1, 2, 0]);
    assert_eq!((all.available(), all.charge_each([1, 4])), (100, Ok(5)));
    let actual = (trial.inner().charge(0).debt(), trial.stats().charged);
    assert_eq!(actual, (1, 4));
}

#[test]
fn a_request_that_another_member_denies_does_not_reach_a_shadow() {
    let trial = Shadow::new(bucket(3, &ManualClock::new()));
    let all = All::new((&trial, Closed)).expect("a composition");
    for n in [1, 4] {
        assert!(all.try_acquire_n(n).is_err());
    }
    let actual = (numbers(trial.stats()), trial.inner().available());
    assert_eq!(actual, ([0; 5], 3));
}

#[test]
fn a_queue_on_trial_asks_no_caller_to_wait() {
    let clock = ManualClock::new();
    let queue = LeakyBucket::queue(Quota::per_second(10).burst(3)).expect("a quota");
    let trial = Shadow::new(Limiter::with_clock(queue, clock.clone()));
    let all = All::new(&trial).expect("a composition");
    let grants = [(); 3].map(|()| all.try_acquire().expect("granted"));
    assert!(
        grants
            .iter()
            .all(|granted| granted.delay() == Duration::ZERO)
    );
    assert_eq!(trial.inner().available(), 0);
    let back: u64 = grants.into_iter().rev().map(|granted| granted.undo()).sum();
    assert_eq!((back, trial.inner().available()), (3, 3));
}

#[test]
fn own_limiters_are_members_with_all_verbs() {
    let (_, [own, other]) = rates([5, 9]);
    let all = All::new((OwnLimiter(&own), &other)).expect("a composition");
    let mut granted = all.try_acquire_n(4).expect("granted");
    assert_eq!(settled(granted.settle([1, 5])), (3, 1));
    assert_eq!((own.available(), other.available()), (4, 4));
    assert_eq!(all.charge_each([1, 1]), Ok(2));
    // It is recognized as the same limit.
    let own = OwnLimiter(&own);
    let all = All::new((&own, &own)).expect("a composition");
    assert_eq!(all.available(), 1);
}
