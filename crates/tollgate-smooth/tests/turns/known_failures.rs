//! Failures of other limiters, each as a regression test.

use crate::support::*;

/// Guava truncates each cost to whole microseconds: at three million a second all requests are
/// admitted.
#[test]
fn fast_rates_are_limited() {
    const CALLS: u64 = 10_000;
    for rate in [1.5e6, 3e6, 7e8, 1e9] {
        let limiter = bursty(rate);
        for _ in 0..CALLS {
            let _ = limiter.reserve_at(1, Tick::ZERO);
        }
        let exact = CALLS as f64 * 1e9 / rate;
        // At most a nanosecond late for each call, and never early.
        let took = limiter.next_free_at(Tick::ZERO).as_nanos() as f64;
        assert!(
            (exact..=exact + CALLS as f64).contains(&took),
            "{rate}: {took}"
        );
        // A caller that takes many permits at once loses that nanosecond only once.
        let limiter = bursty(rate);
        let _ = limiter.reserve_at(1_000_000_000, Tick::ZERO);
        let took = limiter.next_free_at(Tick::ZERO).as_nanos() as f64;
        assert!(
            (1e18 / rate..=1e18 / rate + 1.0).contains(&took),
            "{rate}: {took}"
        );
    }
    let cut = bursty(3e6).in_whole_micros();
    let calls = [(); 1_000].map(|()| cut.try_acquire_at(Tick::ZERO));
    assert!(calls.iter().all(Result::is_ok), "that is what Guava does");
}

/// With a warm-up of 0 Guava stores NaN once it has been idle, and is unlimited from then on.
#[test]
fn a_warm_up_of_zero_is_a_steady_rate() {
    let nanos = || warming_up(10.0, Duration::ZERO);
    for limiter in [nanos(), nanos().in_whole_micros()] {
        for round in 1..10 {
            let start = round * 1_000 * SECOND;
            for call in 0..100 {
                let turn = limiter.reserve_at(1, tick(start)).expect("a turn");
                assert_eq!(turn.due(), tick(start + call * SECOND / 10));
            }
            assert_eq!(limiter.stored_at(tick(start + 500 * SECOND)), 0.0);
            limiter.set_rate_at(20.0, tick(start)).expect("a rate");
            limiter.set_rate_at(10.0, tick(start)).expect("a rate");
            assert_eq!(limiter.stored_at(tick(start + 500 * SECOND)), 0.0);
        }
    }
}

/// ratelimit 2 drops the remainder of a refill, so a caller that asks often gets half the rate.
#[test]
fn asking_often_loses_nothing() {
    const CALLS: u64 = 100_000;
    for rate in [1, 10, 10_000] {
        let limiter = bursty(rate as f64);
        let calls = (0..CALLS).map(|call| limiter.try_acquire_at(tick(call * 19_990)));
        let taken = calls.filter(Result::is_ok).count() as u64;
        // Each caller waits for the permit before it. So the first permit is granted at once, and
        // then those that the rate makes in nearly two seconds.
        let made = CALLS * 19_990 * rate / SECOND;
        assert!((made..=made + 1).contains(&taken), "{taken} of {made}");
    }
}
