//! Each peer decides correctly, a peer that does not is found, and the listed limitations are true.

use std::hash::RandomState;
use std::num::NonZeroU32;
use std::time::Duration;

use tollgate::{ManualClock, Tick};

use super::{
    CounterWindow, Governor, LeakyBucket, Limit, Locked, Mutexes, Ratelimit, governor_by_key,
    verify, verify_keys,
};
use crate::{Ask, AskKey};

#[test]
fn every_peer_allows_its_burst_and_no_more() {
    let ten = Limit::TEN;
    assert_eq!(verify(&Governor::system(ten)), Ok(()));
    assert_eq!(verify(&Governor::coarse(ten)), Ok(()));
    assert_eq!(verify(&Ratelimit::new(ten)), Ok(()));
    assert_eq!(verify(&LeakyBucket::new(ten)), Ok(()));
    assert_eq!(verify(&CounterWindow::new(ten)), Ok(()));
    assert_eq!(verify_keys(&governor_by_key::<RandomState>(ten)), Ok(()));
    assert_eq!(verify_keys(&Mutexes::new(ten)), Ok(()));
    assert_eq!(verify_keys(&Locked::new(ten)), Ok(()));
}

/// Gives the same answer to every request.
struct Wrong(bool);

impl Ask for Wrong {
    fn is_allowed(&self) -> bool {
        self.0
    }
}

/// One limit for all keys, where each key must have its own.
struct Common(CounterWindow);

impl AskKey for Common {
    fn is_key_allowed(&self, _key: &u64) -> bool {
        self.0.is_allowed()
    }
}

#[test]
fn a_peer_that_decides_wrongly_is_found() {
    let error = |limit| verify(&limit).expect_err("a wrong decision");
    assert_eq!(
        error(Wrong(true)),
        "decision 11 was allowed with a burst of 10"
    );
    assert_eq!(
        error(Wrong(false)),
        "decision 1 was denied with a burst of 10"
    );
    for burst in [9, 11] {
        let limit = Limit {
            burst,
            ..Limit::TEN
        };
        assert!(verify(&Ratelimit::new(limit)).is_err(), "{burst}");
    }
    let common = Common(CounterWindow::new(Limit::TEN));
    assert!(verify_keys(&common).is_err());
}

#[test]
fn a_count_by_windows_allows_twice_its_limit_around_a_boundary() {
    let clock = ManualClock::new();
    let limit = Limit {
        burst: 10,
        period: Duration::from_secs(1),
    };
    let counter = CounterWindow::with_clock(limit, clock.clone());
    let allowed = || (0..100).filter(|_| counter.is_allowed()).count();
    clock.set(Tick::from_nanos(9_999_999_999));
    assert_eq!(allowed(), 10);
    clock.advance(Duration::from_nanos(1));
    assert_eq!(allowed(), 10, "a nanosecond later");
}

#[test]
fn governor_makes_a_permit_in_whole_nanoseconds() {
    let rate = NonZeroU32::new(400_000_000).expect("not zero");
    let interval = governor::Quota::per_second(rate).replenish_interval();
    assert_eq!(interval, Duration::from_nanos(2), "500 million a second");
}

#[test]
fn ratelimit_drops_a_part_of_each_refill() {
    struct Told(ManualClock);
    impl ratelimit::Clock for Told {
        fn elapsed(&self) -> Duration {
            let now = tollgate::clock::Clock::now(&self.0);
            Duration::from_nanos(now.as_nanos())
        }
    }
    let clock = ManualClock::new();
    let limiter = ratelimit::Ratelimiter::with_clock(1, Told(clock.clone()));
    let mut allowed = 0;
    // Ten seconds, polled every 1.999 microseconds.
    for _ in 0..5_002_502 {
        clock.advance(Duration::from_nanos(1999));
        allowed += u64::from(limiter.try_wait().is_ok());
    }
    assert_eq!(allowed, 5, "five instead of ten at one a second");
}
