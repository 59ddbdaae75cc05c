//! Failures of other limiters with reservations, each as a regression test.

use crate::support::*;

fn bucket(quota: Quota) -> Limiter<TokenBucket, NoClock> {
    Limiter::unstarted(TokenBucket::new(quota).expect("a bucket"), NoClock)
}

/// x/time/rate 0.3.0: a wait of more than 292 years overflowed into one in the past.
#[test]
fn a_wait_of_centuries_is_refused_and_does_not_overflow() {
    let year = Duration::from_secs(365 * 24 * 3600);
    let limiter = bucket(Quota::per(1, year).burst(50));
    let now = limiter.at(Tick::ZERO);
    assert!(now.try_acquire_n(50).is_ok());
    let reserved = std::iter::from_fn(|| now.reserve_until(1, Tick::MAX).ok());
    let dues: Vec<_> = reserved.take(1000).map(|granted| granted.due()).collect();
    assert!((50..1000).contains(&dues.len()), "{}", dues.len());
    for pair in dues.windows(2) {
        assert!(pair[1] >= pair[0].saturating_add(year), "{pair:?}");
    }
    assert!(matches!(
        now.reserve_until(1, Tick::MAX),
        Err(Denied::Stuck { .. })
    ));
}

/// x/time/rate: the time of the last event was that of the last caller, even if others waited until
/// later. A cancelled reservation then got back permits that it had not taken: 9 for 1 here.
#[test]
fn a_cancelled_reservation_returns_no_more_than_it_took() {
    let limiter = bucket(Quota::per_second(10));
    let start = limiter.at(Tick::ZERO);
    assert!(start.try_acquire_n(10).is_ok());
    let first = start.reserve_until(10, Tick::MAX).expect("in a second");
    let second = start.reserve_until(1, Tick::MAX).expect("after it");
    let expected = (tick(SECOND), tick(11 * SECOND / 10));
    assert_eq!((first.due(), second.due()), expected);
    let _ = start.cancel(first, 10);
    let later = limiter.at(tick(3 * SECOND / 10));
    let third = later.reserve_until(1, Tick::MAX).expect("after them");
    for cancelled in [second, third] {
        assert!(later.cancel(cancelled, 1).1 <= 1);
    }
    // The burst of 10 and the returned permits together keep the bound.
    assert!(later.take_up_to(100).n() <= 3);
}

/// x/time/rate: waits were truncated to whole nanoseconds. At three permits a nanosecond a bucket
/// went two below zero, and a caller that waited as told was a fraction of a nanosecond early.
#[test]
fn no_reservation_is_due_before_its_permits_are_available() {
    for quota in [
        Quota::per_second(3_000_000_000).burst(100),
        Quota::per_second(3).burst(2),
        Quota::per_second(7).burst(7),
    ] {
        let limiter = bucket(quota);
        let now = limiter.at(tick(1));
        let burst = quota.burst_size();
        assert!(now.try_acquire_n(burst).is_ok());
        let mut taken = 0;
        for n in (1..=burst).chain(1..=burst) {
            let granted = now.reserve_until(n, Tick::MAX).expect("some time");
            taken += u128::from(n);
            let made = u128::from(granted.due().as_nanos() - 1) * u128::from(quota.permits());
            assert!(
                made >= taken * u128::from(SECOND),
                "{n} after {taken} of {quota}"
            );
        }
    }
}

/// x/time/rate: when reservations were cancelled from the last to the first, nothing came back
/// where a wait had been truncated: the one before was no longer recognized as the last.
#[test]
fn reservations_can_be_cancelled_from_the_last_to_the_first() {
    let limiter = bucket(Quota::per(1, Duration::from_secs(3)).burst(2));
    let now = limiter.at(tick(1_099_314_613));
    assert!(now.try_acquire_n(2).is_ok());
    let reserve = |_| now.reserve_until(2, Tick::MAX).expect("some time");
    let line: Vec<_> = (0..5).map(reserve).collect();
    for granted in line.into_iter().rev() {
        assert_eq!(now.cancel(granted, 2).1, 2);
    }
    assert_eq!(reserve(0).delay(), Duration::from_secs(6));
}
