//! A word beyond the end of its clock: it says so, harms nobody else, and a reset heals it.

use std::time::Duration;

use tollgate::{Denied, Limiter, NoClock, Quota, Tick, TokenBucket};

#[test]
fn a_tick_from_the_end_of_time_poisons_its_own_word_and_reset_heals_it() {
    let bucket = TokenBucket::new(Quota::per_second(10).burst(20)).expect("a bucket");
    let (gate, other) = (
        Limiter::unstarted(bucket, NoClock),
        Limiter::unstarted(bucket, NoClock),
    );
    assert!(gate.try_acquire_n_at(20, Tick::MAX).is_ok());
    let now = gate.at(Tick::from_nanos(5));
    assert_eq!(now.try_acquire(), Err(Denied::stuck(1)));
    assert_eq!(now.time_until(1), None);
    assert_eq!(now.available(), 0);
    assert_eq!(
        gate.try_acquire_at(Tick::MAX),
        Err(Denied::stuck(1)),
        "it never comes"
    );
    assert_eq!(other.at(Tick::from_nanos(5)).available(), 20);
    gate.reset();
    assert_eq!(
        now.try_acquire_n(20).map(|granted| granted.remaining()),
        Ok(0)
    );
    assert_eq!(
        now.try_acquire().map_err(|denied| denied.retry_after()),
        Err(Some(Duration::from_millis(100)))
    );
}

#[test]
fn centuries_of_debt_are_recorded_as_far_as_the_word_goes_and_reset_forgives_them() {
    let bucket = TokenBucket::new(Quota::per_hour(1)).expect("a bucket");
    let gate = Limiter::unstarted(bucket, NoClock);
    let now = gate.at(Tick::ZERO);
    let charged = now.charge(u64::MAX);
    let hours = (u64::MAX - 1) / 3_600_000_000_000;
    assert_eq!((charged.n(), charged.debt()), (hours, hours - 1));
    assert_eq!(charged.clear_after(), Duration::MAX, "its clock ends first");
    assert_eq!(now.charge(u64::MAX).n(), 0, "no more fits");
    assert_eq!(now.try_acquire(), Err(Denied::stuck(1)));
    assert_eq!(now.try_acquire_n(0), Err(Denied::stuck(0)));
    assert_eq!(
        now.try_acquire_n(2),
        Err(Denied::never(2, 1)),
        "never is never"
    );
    gate.reset();
    assert!(now.try_acquire().is_ok());
}
