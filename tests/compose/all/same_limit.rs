//! A limit that appears more than once: its costs are added up.

use tollgate::TryAcquire;
use tollgate::compose::{Member, Named, OwnLimiter};
use tollgate::store::{AtomicWord, Place, WordCell};
use tollgate::traits::{DebtLimiter, GiveBackLimiter};

use super::{algorithm, bucket, full, secs, settled};
use crate::support::*;

#[test]
fn a_limit_twice_pays_both_costs() {
    let (_, [a, b]) = full([10, 10]);
    let all = All::new((&a, &b, &a)).expect("two limits");
    assert_eq!((all.members(), all.available()), (3, 5));
    let mut granted = all.try_acquire_each([2, 1, 3]).expect("they have it");
    let parts = [0, 1, 2].map(|member| granted.member(member).map(|part| part.n()));
    assert_eq!(parts, [Some(5), Some(1), None]);
    assert_eq!((a.available(), b.available()), (5, 9));
    let denied = all.try_acquire_each([3, 1, 3]).expect_err("a has 5");
    assert_eq!((denied.member(), denied.retry_after()), (Some(0), secs(1)));
    assert_eq!(denied.denied().map(|denied| denied.requested()), Some(6));
    assert_eq!(settled(granted.settle([0, 4, 1])), (4, 3));
    assert_eq!((a.available(), b.available()), (9, 6));
    assert_eq!(all.try_acquire().expect("they have it").undo(), 3);
}

#[test]
fn a_limit_three_times_pays_three_costs_and_is_denied_by_its_first_name() {
    let (_, [a, b]) = full([10, 100]);
    let inner = All::new([&a, &b]).expect("two limits");
    let members = (
        &b,
        Named::new("first", &a),
        Named::new("second", &inner),
        Named::new("third", &a),
    );
    let all = All::new(members).expect("two limits");
    assert_eq!((all.members(), all.available()), (5, 3));
    drop(all.try_acquire_n(3).expect("9 of 10, and 6 of 100"));
    assert_eq!((a.available(), b.available()), (1, 94));
    let denied = all.try_acquire().expect_err("one is left");
    assert_eq!((denied.member(), denied.name()), (Some(1), Some("first")));
    assert_eq!(denied.retry_after(), secs(2));
}

#[test]
fn sums_of_costs_saturate() {
    let a = bucket(10, &ManualClock::new());
    let all = All::new([&a, &a]).expect("one limit");
    for costs in [[u64::MAX, u64::MAX], [u64::MAX, 1], [1 << 63, 1 << 63]] {
        let denied = all.try_acquire_each(costs).expect_err("a has 10");
        let never = Denied::never(u64::MAX, 10);
        assert_eq!((denied.member(), denied.denied()), (Some(0), Some(never)));
    }
    assert_eq!(a.available(), 10);
}

/// Two limiters of one word are one limit.
#[test]
fn a_word_that_two_limiters_share_is_one_limit() {
    let (clock, word) = (ManualClock::new(), WordCell::new(0));
    let limiter = || Limiter::with_cell(algorithm(5), clock.clone(), &word);
    let all = All::new((limiter(), limiter())).expect("one limit");
    assert_eq!(all.available(), 2);
    assert!(all.try_acquire_n(3).is_err());
    assert!(all.try_acquire_each([2, 3]).is_ok());
    assert_eq!(all.inner().0.available(), 0);
    let other = WordCell::new(0);
    let other = Limiter::with_cell(algorithm(5), clock.clone(), &other);
    let place = |limiter| Member::place(limiter);
    assert!(!place(&other).is_same(&place(&all.inner().0)));
}

/// A word whose place has a hash that other words may share.
struct Hashed(WordCell);

impl AtomicWord for Hashed {
    fn load(&self) -> u64 {
        self.0.load()
    }

    fn compare_exchange(&self, word: u64, next: u64) -> Result<(), u64> {
        self.0.compare_exchange(word, next)
    }

    fn swap(&self, next: u64) -> u64 {
        self.0.swap(next)
    }

    fn place(&self) -> Place {
        Place::of(self).with_hash(7)
    }
}

/// They are taken from one after the other, so what the first took comes back.
#[test]
fn a_word_with_a_hashed_place_twice_is_all_or_nothing() {
    let (clock, word) = (ManualClock::new(), Hashed(WordCell::new(0)));
    let limiter = || Limiter::with_cell(algorithm(5), clock.clone(), &word);
    let (one, all) = (limiter(), All::new([limiter(), limiter()]));
    let all = all.expect("two members");
    assert!(!Member::place(&one).is_same(&Member::place(&one)));
    assert!(all.try_acquire_n(3).is_err());
    assert_eq!(one.available(), 5);
    assert_eq!(all.try_acquire_each([3, 2]).expect("five").undo(), 5);
    assert_eq!(one.available(), 5);
    drop(all.try_acquire_n(2).expect("four of five"));
    assert!(all.try_acquire().is_err());
    assert_eq!(one.available(), 1);
    clock.advance(Duration::from_secs(1));
    assert!(all.try_acquire().is_ok());
}

#[test]
fn a_concurrency_twice_is_entered_with_both_weights() {
    let clock = ManualClock::new();
    let (inside, rate) = (Concurrency::new(5).expect("a limit"), bucket(9, &clock));
    let all = All::new((&inside, &rate, &inside)).expect("two limits");
    let granted = all.try_acquire_each([2, 1, 2]).expect("there is room");
    assert_eq!((inside.inside(), all.available()), (4, 0));
    assert!(all.try_acquire().is_err());
    drop(granted);
    assert_eq!((inside.inside(), rate.available()), (0, 8));
}

/// A limiter of the user's own, whose only field is a limiter. It denies every request.
struct Fence(super::Bucket);

impl TryAcquire for Fence {
    type Clock = ManualClock;

    fn clock(&self) -> &ManualClock {
        TryAcquire::clock(&self.0)
    }

    fn try_acquire_n_at(&self, n: u64, _: Tick) -> Result<Granted, Denied> {
        Err(Denied::busy(n))
    }

    fn take_up_to_at(&self, _: u64, now: Tick) -> Granted {
        Granted::new(0, now)
    }

    fn check_n_at(&self, n: u64, _: Tick) -> Result<(), Denied> {
        Err(Denied::busy(n))
    }

    fn available_at(&self, _: Tick) -> u64 {
        0
    }
}

impl GiveBackLimiter for Fence {
    fn undo_at(&self, granted: Granted, now: Tick) -> u64 {
        GiveBackLimiter::undo_at(&self.0, granted, now)
    }

    fn refund_at(&self, n: u64, now: Tick) -> u64 {
        GiveBackLimiter::refund_at(&self.0, n, now)
    }
}

impl DebtLimiter for Fence {
    fn charge_at(&self, n: u64, now: Tick) -> Charged {
        DebtLimiter::charge_at(&self.0, n, now)
    }
}

/// Both are at the same address, but they are two limits.
#[test]
fn a_limiter_inside_another_is_a_limit_of_its_own() {
    let own = OwnLimiter(Fence(bucket(5, &ManualClock::new())));
    let fence = &own.0;
    let all = All::new((&fence.0, &own, &own)).expect("two limits");
    let denied = all.try_acquire().expect_err("the fence denies");
    let expected = (Some(1), Some(Denied::busy(2)));
    assert_eq!((denied.member(), denied.denied()), expected);
    assert_eq!(fence.0.available(), 5);
}
