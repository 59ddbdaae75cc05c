//! The time in which as many permits as the burst come back.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::Quota;
use tollgate_http::LimitState;

fn window(quota: Quota) -> Duration {
    let window = LimitState::of_rate("a", quota).window();
    window.expect("a rate has a window")
}

#[test]
fn it_is_rounded_up_to_a_nanosecond() {
    let second = Duration::from_secs(1);
    let ns = Duration::from_nanos;
    for (quota, expected) in [
        (Quota::per_second(3), second),
        (Quota::per_second(3).burst(1), ns(333_333_334)),
        (Quota::per_second(3).burst(2), ns(666_666_667)),
        (Quota::per_second(3).burst(4), ns(1_333_333_334)),
        (Quota::per(7, ns(1)).burst(1), ns(1)),
        (Quota::per_day(1).burst(365), second * 365 * 86_400),
        (Quota::per_second(1).burst(0), Duration::ZERO),
    ] {
        assert_eq!(window(quota), expected, "{quota}");
    }
}

#[test]
fn it_is_the_longest_duration_if_it_would_be_longer() {
    let most = u64::MAX;
    assert_eq!(window(Quota::per(1, Duration::MAX).burst(2)), Duration::MAX);
    assert_eq!(
        window(Quota::per(1, Duration::MAX).burst(most)),
        Duration::MAX
    );
    assert_eq!(
        window(Quota::per(0, Duration::ZERO).burst(1)),
        Duration::MAX
    );
    // Exact, where a product would not fit 128 bits.
    assert_eq!(window(Quota::per(most, Duration::MAX)), Duration::MAX);
    let below = window(Quota::per(most, Duration::MAX).burst(most - 1));
    assert!(below < Duration::MAX);
}

#[test]
fn a_concurrency_has_none() {
    assert_eq!(LimitState::of_concurrency("a", 5).window(), None);
}

/// Multiplies two numbers to one of 256 bits: its upper and its lower half.
fn product(one: u128, other: u128) -> (u128, u128) {
    let half = |number: u128| (number >> 64, number & u128::from(u64::MAX));
    let ((a, b), (c, d)) = (half(one), half(other));
    let (low, middle) = (b * d, a * d);
    let (sum, carry) = middle.overflowing_add(b * c);
    let (lower, carried) = low.overflowing_add(sum << 64);
    let upper = a * c + (sum >> 64) + (u128::from(carry) << 64) + u128::from(carried);
    (upper, lower)
}

proptest! {
    #[test]
    fn it_is_the_first_nanosecond_by_which_the_permits_are_back(
        n in 1_u64..,
        burst in any::<u64>(),
        period in any::<Duration>(),
    ) {
        let window = window(Quota::per(n, period).burst(burst)).as_nanos();
        let permits = product(burst.into(), period.as_nanos());
        if window < Duration::MAX.as_nanos() {
            prop_assert!(product(window, n.into()) >= permits);
        }
        if window > 0 {
            prop_assert!(product(window - 1, n.into()) < permits);
        }
    }
}
