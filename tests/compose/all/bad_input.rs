//! Bad input is refused with an error that names it. tests/limits/errors.rs has the errors' texts.

use tollgate::compose::{AllDenied, MAX_MEMBERS};
use tollgate::error::ComposeError;

use super::{Bucket, bucket, full, secs, settled};
use crate::support::*;

fn buckets(n: usize) -> Vec<Bucket> {
    let clock = ManualClock::new();
    (0..n).map(|_| bucket(10, &clock)).collect()
}

/// Returns the error of a composition that was refused.
#[track_caller]
fn refused<M>(all: Result<M, ComposeError>) -> ComposeError {
    all.err().expect("a refusal")
}

#[test]
fn no_members_are_refused() {
    for error in [
        refused(All::new(buckets(0))),
        refused(All::<[Bucket; 0], ManualClock>::new([])),
        refused(All::new((buckets(0), buckets(0)))),
        refused(All::new(vec![buckets(0), buckets(0)])),
    ] {
        assert_eq!(error, ComposeError::ZeroMembers);
    }
}

#[test]
fn more_than_64_members_are_refused() {
    assert_eq!(MAX_MEMBERS, 64);
    let too_many = |members| ComposeError::TooManyMembers { members, max: 64 };
    for n in [65, 10_000] {
        assert_eq!(refused(All::new(buckets(n))), too_many(n));
    }
    // Those of inner compositions count one by one.
    let nested = refused(All::new((buckets(60), buckets(5))));
    assert_eq!(nested, too_many(65));
}

#[test]
fn each_of_64_members_is_taken_from_once() {
    let all = All::new(buckets(64)).expect("64 limits");
    assert_eq!(all.members(), 64);
    let costs: Vec<u64> = (0..64).map(|member| member % 11).collect();
    let granted = all.try_acquire_each(&costs).expect("they have 10 each");
    for (member, limit) in all.inner().iter().enumerate() {
        assert_eq!(limit.available(), 10 - costs[member]);
        let part = granted.member(member).expect("a grant");
        assert_eq!(part.n(), costs[member]);
    }
    assert_eq!(granted.member(64), None);
    assert_eq!((granted.tightest(), granted.remaining()), (10, 0));
    let denied = all.try_acquire().expect_err("member 10 is empty");
    assert!([10, 21, 32, 43, 54].map(Some).contains(&denied.member()));
    assert_eq!(granted.undo(), costs.iter().sum::<u64>());
}

#[test]
fn an_empty_vec_inside_a_composition_has_no_members() {
    let (_, [a, b]) = full([5, 2]);
    let none = || Vec::<&Bucket>::new();
    let all = All::new((none(), &a, vec![none(), none()], (&b, none()))).expect("two limits");
    assert_eq!(all.members(), 2);
    let granted = all.try_acquire_each([4, 1]).expect("they have it");
    let parts = [0, 1, 2].map(|member| granted.member(member).map(|part| part.n()));
    assert_eq!(parts, [Some(4), Some(1), None]);
    let denied = all.try_acquire_each([1, 2]).expect_err("one is left");
    assert_eq!((denied.member(), denied.retry_after()), (Some(1), secs(1)));
    drop(granted);
    let list = All::new(vec![none(), vec![&a], none(), vec![&b]]).expect("two limits");
    assert!(list.try_acquire().is_ok());
    assert_eq!((a.available(), b.available()), (0, 0));
}

#[test]
fn members_of_different_clocks_are_refused() {
    let (clock, other) = (ManualClock::new(), ManualClock::new());
    let (a, b, c) = (bucket(1, &clock), bucket(1, &clock), bucket(1, &other));
    let inside = Concurrency::new(1).expect("a limit");
    let (member, other) = (3, 1);
    let error = refused(All::new((&inside, &a, &b, &c)));
    assert_eq!(error, ComposeError::ClocksDiffer { member, other });
    assert!(All::new((&inside, &a, &b)).is_ok());
}

#[test]
fn concurrency_limits_alone_need_no_clock() {
    let [user, service] = [1, 2].map(|limit| Concurrency::new(limit).expect("a limit"));
    let all: All<_> = All::new((&user, &service)).expect("two limits");
    let granted = all.try_acquire().expect("room");
    assert_eq!(
        (user.inside(), service.inside(), all.available()),
        (1, 1, 0)
    );
    let denied = all.try_acquire().map(drop).expect_err("a full limit");
    assert_eq!((denied.member(), denied.retry_after()), (Some(0), None));
    drop(granted);
    assert_eq!((user.inside(), service.inside()), (0, 0));
}

/// The clock is that of the first member that has one.
#[test]
fn a_concurrency_before_the_other_members_needs_no_clock() {
    let clock = ManualClock::new();
    let (inside, rate) = (Concurrency::new(1).expect("a limit"), bucket(1, &clock));
    let all = All::new((&inside, &rate)).expect("two limits");
    clock.advance(secs(7).expect("a time"));
    assert_eq!(all.now(), clock.now());
    let granted = all.try_acquire().expect("both have it");
    assert_eq!(granted.member(0).map(|part| part.at()), Some(clock.now()));
    let denied = all.try_acquire().expect_err("both are empty");
    // A wait of unknown length is longer than any other.
    assert_eq!((denied.member(), denied.retry_after()), (Some(0), None));
    assert!(matches!(denied.denied(), Some(Denied::Busy { .. })) && !denied.is_permanent());
    drop(granted);
    assert_eq!(all.time_until(1), secs(1));
}

#[test]
fn two_members_that_cannot_undo_are_refused() {
    let clock = ManualClock::new();
    let log = || SlidingLog::with_clock(Quota::per_minute(3), clock.clone()).expect("a log");
    let (a, b, bucket) = (log(), log(), bucket(9, &clock));
    let (member, other) = (2, 0);
    let error = refused(All::new((&a, &bucket, &b)));
    assert_eq!(error, ComposeError::SecondWithoutUndo { member, other });
    // The same log twice is one member.
    let all = All::new((&a, &bucket, &a)).expect("one log");
    assert!(all.try_acquire().is_ok() && all.try_acquire().is_err());
    assert_eq!((a.available(), bucket.available()), (1, 8));
}

#[test]
fn a_wrong_number_of_costs_is_refused() {
    let (_, [a, b]) = full([5, 5]);
    let all = All::new((&a, &b)).expect("two limits");
    let many = [1; 70];
    for costs in [&[][..], &[1], &[1, 1, 1], &many] {
        let denied = all.try_acquire_each(costs).expect_err("not two");
        let length = costs.len();
        let expected =
            matches!(denied, AllDenied::CostsLength { costs, members: 2, .. } if costs == length);
        assert!(expected, "{denied:?}");
        let text = format!("number of costs is {length}, but must be 2: one for each member");
        assert_eq!(denied.to_string(), text);
        assert!(denied.is_permanent());
        assert_eq!((denied.member(), denied.name()), (None, None));
        assert_eq!((denied.denied(), denied.retry_after()), (None, None));
        assert_eq!(denied.retry_after_secs(), None);
        assert_eq!(all.check_each(costs), Err(denied));
        assert_eq!(all.at(all.now()).check_each(costs), Err(denied));
        assert_eq!(all.charge_each(costs), Err(denied));
        assert_eq!(all.at(all.now()).charge_each(costs), Err(denied));
        let at = all.at(all.now()).try_acquire_each(costs);
        assert_eq!(at.expect_err("not two"), denied);
    }
    assert_eq!((a.available(), b.available()), (5, 5));
}

#[test]
fn a_grant_survives_a_wrong_number_of_costs() {
    let a = bucket(5, &ManualClock::new());
    let inside = Concurrency::new(1).expect("a limit");
    let all = All::new((&a, &inside)).expect("two limits");
    let left = || (a.available(), inside.inside());
    let told = "number of costs is 1, but must be 2: one for each member";
    let acquire = || all.try_acquire_each([3, 1]).expect("they have it");

    let mut granted = acquire();
    for error in [granted.settle([1]), granted.settle_at([1], all.now())] {
        assert_eq!(error.expect_err("one cost").to_string(), told);
        assert_eq!((left(), granted.n()), ((2, 1), 4));
    }
    assert_eq!(settled(granted.settle([1, 1])), (2, 0));
    assert_eq!(left(), (4, 0));
    // Nothing is left of it.
    let settled = granted.settle([0, 0]).expect("two costs");
    assert_eq!((settled.returned, settled.lost, settled.charged), (0, 0, 0));
    assert_eq!((granted.undo(), left()), (0, (4, 0)));

    let mut estimate = acquire().undo_on_drop();
    assert_eq!(estimate.settle([1]).expect_err("one").to_string(), told);
    assert_eq!(left(), (1, 1));
    drop(estimate);
    assert_eq!(left(), (4, 0));
    let mut estimate = acquire().undo_on_drop();
    assert!(estimate.settle([1, 1]).is_ok());
    drop(estimate);
    assert_eq!(left(), (3, 0));

    let counted = Counted::new(&a);
    let all = All::new((&counted, &inside)).expect("two limits");
    let mut granted = all.try_acquire_each([3, 1]).expect("they have it");
    assert_eq!(granted.settle([1]).expect_err("one").to_string(), told);
    assert_eq!(counted.stats().returned, 0);
    assert!(granted.settle([1, 1]).is_ok());
    assert_eq!((counted.stats().returned, left()), (2, (2, 0)));
}

#[test]
fn costs_that_a_member_can_never_grant_are_denied_for_ever() {
    let (_, [a, b]) = full([5, 9]);
    let all = All::new((&a, &b)).expect("two limits");
    // A wait is shorter than never.
    assert_eq!(a.charge(5).debt(), 0);
    for costs in [[1, 10], [1, u64::MAX], [0, u64::MAX], [5, 1 << 63]] {
        let denied = all.try_acquire_each(costs).expect_err("b has 9");
        assert_eq!((denied.member(), denied.is_permanent()), (Some(1), true));
        assert_eq!(denied.retry_after(), None);
        let never = denied.denied().expect("a member");
        assert!(matches!(never, Denied::Never { limit: 9, .. }), "{never:?}");
        assert_eq!(never.requested(), costs[1]);
        assert_eq!(denied.to_string(), format!("member 1: {never}"));
    }
    assert_eq!(all.time_until(6), None);
    assert_eq!(all.time_until(5), secs(5));
    assert_eq!((a.available(), b.available()), (0, 9));
}

#[test]
fn a_cost_of_zero_takes_nothing() {
    let (_, [a, b]) = full([5, 5]);
    let all = All::new((&a, &b)).expect("two limits");
    assert_eq!(a.charge(5).debt(), 0);
    let granted = all.try_acquire_each([0, 4]).expect("a needs nothing");
    assert_eq!((a.available(), b.available()), (0, 1));
    assert_eq!(granted.undo(), 4);
    assert_eq!((a.available(), b.available()), (0, 5));
    // In debt, a member denies even that.
    assert_eq!(a.charge(2).debt(), 2);
    let denied = all.try_acquire_each([0, 4]).expect_err("a is in debt");
    assert_eq!((denied.member(), denied.retry_after()), (Some(0), secs(2)));
    assert_eq!(b.available(), 5);
}

#[test]
fn a_charge_goes_into_debt_on_every_member() {
    let (_, [a, b]) = full([5, 5]);
    let all = All::new((&a, &b, &a)).expect("two limits");
    assert_eq!(all.charge_each([3, 7, 4]), Ok(14));
    assert_eq!((a.charge(0).debt(), b.charge(0).debt()), (2, 2));
    assert_eq!(all.charge(2), 6);
    assert_eq!((a.charge(0).debt(), b.charge(0).debt()), (6, 4));
    // At a tick of its own.
    let later = all.now().saturating_add(Duration::from_secs(6));
    assert_eq!(all.at(later).time_until(1), secs(2));
    assert_eq!(all.at(later).charge(1), 3);
    assert_eq!(all.at(later).charge_each([1, 1, 0]), Ok(2));
    let actual = (a.at(later).charge(0).debt(), b.at(later).charge(0).debt());
    assert_eq!(actual, (3, 0));
    assert_eq!(all.at(later).time_until(1), secs(5));
    let counted = Counted::new(&a);
    let all = All::new((&counted, &b)).expect("two limits");
    assert_eq!((all.charge(1), counted.stats().charged), (2, 1));
    assert!(all.check_each([0, 0]).is_err());
}
