//! The debt that a window forgets, quotas without a bound, and what the algorithms state.

use core::time::Duration;

use tollgate::algorithm::Rounding;
use tollgate::{
    AnyAlgorithm, FixedWindow, Gcra, Intervals, LeakyBucket, Quota, SlidingWindow, Tick,
    TokenBucket,
};
use tollgate_audit::{Bound, Bounded};

use super::{Kind, history, instant, ten_ns};

#[test]
fn a_debt_is_forgotten_with_its_window_or_slot() {
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
    // Five slots of 2 ns each, the last of which begins at 20.
    let slots = Bound::of_slots(ten_ns(3), 5).expect("a quota");
    assert!(charged(21).check(&slots).is_err());
    assert!(charged(22).check(&slots).is_ok());
    assert!(charged(21).check(&slots.forgetting_debt()).is_ok());
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
