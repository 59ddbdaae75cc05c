//! The debt that a window forgets, quotas without a bound, and what the algorithms state.

use core::time::Duration;

use tollgate::algorithm::Rounding;
use tollgate::error::QuotaError;
use tollgate::{
    AnyAlgorithm, FixedWindow, Gcra, Intervals, LeakyBucket, Quota, SlidingWindow, Tick,
    TokenBucket,
};
use tollgate_audit::{Bound, Bounded};

use super::{Kind, history, instant, ten_ns};

#[test]
fn a_debt_is_forgotten_with_its_window() {
    let charged = |then| history(&[instant(12, Kind::Charge, 7), instant(then, Kind::Grant, 1)]);
    let windows = FixedWindow::new(ten_ns(3)).expect("a quota").bound();
    let sliding = SlidingWindow::new(ten_ns(3)).expect("a quota").bound();
    for bound in [windows, sliding] {
        assert!(charged(19).check(&bound).is_err());
        assert!(charged(20).check(&bound).is_ok());
    }
    // A bucket's debt is paid by two refills: five of the seven are beyond its burst of three.
    let refills = Intervals::new(ten_ns(3)).expect("a quota").bound();
    assert!(charged(29).check(&refills).is_err());
    assert!(charged(30).check(&refills).is_ok());
}

#[test]
fn an_invalid_quota_has_no_bound() {
    let (none, wide) = (ten_ns(0), ten_ns(3).burst(4));
    assert_eq!(Bound::of_windows(none), Err(QuotaError::ZeroPermits));
    let refused = Err(QuotaError::BurstInWindow { burst: 4, n: 3 });
    assert_eq!(Bound::of_windows(wide), refused);
    let empty = ten_ns(3).burst(0);
    assert_eq!(Bound::of_refills(empty), Err(QuotaError::ZeroBurst));
    assert_eq!(Bound::of_steps(empty), Err(QuotaError::ZeroBurst));
}

#[test]
fn extreme_values_do_not_overflow() {
    let all = [0, 1, u64::MAX].map(|tick| instant(tick, Kind::Grant, u64::MAX));
    let resets = [0, 1, u64::MAX].map(|tick| instant(tick, Kind::Reset, 1));
    let most = Quota::per(u64::MAX, Duration::from_nanos(u64::MAX));
    let fast = Quota::per(10, Duration::from_nanos(1)).burst(u64::MAX);
    for quota in [most, fast] {
        let bounds = [
            Bound::of_quota(quota),
            Bound::of_refills(quota),
            Bound::of_steps(quota),
        ];
        for bound in bounds.map(|bound| bound.expect("a quota").offset(Duration::MAX)) {
            let _ = history(&[all, resets].concat()).check(&bound);
            assert!(bound.allows(Duration::MAX) >= bound.allows(Duration::ZERO));
        }
    }
}

#[test]
fn each_algorithm_states_its_bound() {
    let (tick, quota) = (Tick::from_nanos, ten_ns(3));
    let wide = quota.burst(5);
    let (windows, offset) = (FixedWindow::new(quota).unwrap(), Duration::from_nanos(4));
    let intervals = Intervals::new(wide).unwrap();
    let spaced = Gcra::from_interval(Duration::from_nanos(10), Duration::from_nanos(25)).unwrap();

    // The lengths at which there is one permit more, and those before, fix each burst exactly.
    let allows = |bound: Bound, ns| bound.allows(Duration::from_nanos(ns));
    for bound in [
        TokenBucket::new(wide).unwrap().bound(),
        Gcra::new(wide).unwrap().bound(),
        LeakyBucket::queue(wide).unwrap().bound(),
    ] {
        assert_eq!([0, 3, 4, 10].map(|ns| allows(bound, ns)), [5, 5, 6, 8]);
    }
    // Its quota, one permit in 10 ns with a burst of 3, would allow one in another 10 ns.
    assert_eq!([4, 5].map(|ns| allows(spaced.bound(), ns)), [3, 4]);

    let bound = windows.offset(offset).bound();
    assert_eq!(bound.allows_between(tick(4), tick(13)), 3);
    assert_eq!(bound.allows_between(tick(3), tick(4)), 6);
    assert_eq!(windows.aligned_to_unix(offset).bound(), {
        // Tick 0 is 4 ns after the beginning of a window.
        Bound::of_windows(quota)
            .unwrap()
            .offset(Duration::from_nanos(6))
    });
    let bound = intervals.offset(offset).bound();
    assert_eq!(bound.allows_between(tick(3), tick(4)), 8);
    assert_eq!(bound.allows_between(tick(4), tick(13)), 5);

    // A window opened by the first hit and a greedy bucket, each with its own quota.
    let hit = windows.opened_by_first_hit().unwrap().bound();
    assert_eq!(hit, Bound::of_steps(quota).unwrap().forgetting_debt());
    let slower = Quota::per(3, Duration::from_nanos(100)).burst(5);
    let greedy = Intervals::new(slower).unwrap().greedy().unwrap();
    assert_eq!(greedy.bound(), Bound::of_steps(slower).unwrap());

    let sliding = SlidingWindow::new(quota).unwrap();
    let down = sliding.rounding(Rounding::Down);
    let lengths = [0, 1, 3, 4, 7, 10];
    let actual = lengths.map(|ns| allows(sliding.bound(), ns));
    assert_eq!(actual, [3, 3, 3, 4, 5, 6]);
    let actual = lengths.map(|ns| allows(down.bound(), ns));
    assert_eq!(actual, [3, 4, 4, 5, 6, 6]);
    assert_eq!(AnyAlgorithm::from(down).bound(), down.bound());
}
