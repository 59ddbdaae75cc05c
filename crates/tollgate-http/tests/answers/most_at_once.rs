//! Each generation of fields says the most permits that can be had at once. So what a new limit
//! says, less what it has left, is what was used of it.

use std::time::Duration;

use http::HeaderMap;
use proptest::prelude::*;
use tollgate::{FixedWindow, Gcra, Limiter, ManualClock, Quota, SlidingWindow, TokenBucket};
use tollgate_http::{Fields, LimitState};

use crate::written;

/// Returns a field as a number.
fn number(headers: &HeaderMap, name: &str) -> u64 {
    let value = headers[name].to_str().expect("visible text");
    value.parse().expect("a number")
}

/// Returns a parameter of a field, such as that of `;q=` or `limit=`.
fn parameter(headers: &HeaderMap, name: &str, key: &str) -> u64 {
    let value = headers[name].to_str().expect("visible text");
    let (_, rest) = value.split_once(key).expect("the parameter is there");
    let digits = rest.split(|it: char| !it.is_ascii_digit()).next();
    digits.unwrap_or_default().parse().expect("a number")
}

/// Returns what each generation says that the limit is, and what is left of it.
fn said(state: &LimitState<'_>) -> Vec<(&'static str, u64, u64)> {
    let of = |fields| written(fields, &[*state]);
    let list = of(Fields::LIST);
    let dictionary = of(Fields::DICTIONARY);
    let triple = of(Fields::TRIPLE);
    let x = of(Fields::X_SECONDS);
    let epoch = of(Fields::X_EPOCH);
    let spring = of(Fields::SPRING);
    let number = |headers, limit, remaining| (number(headers, limit), number(headers, remaining));
    let parameter = |headers, limit: (&str, &str), left: (&str, &str)| {
        (
            parameter(headers, limit.0, limit.1),
            parameter(headers, left.0, left.1),
        )
    };
    let x_names = ("x-ratelimit-limit", "x-ratelimit-remaining");
    let pairs = [
        (
            "list",
            parameter(&list, ("ratelimit-policy", ";q="), ("ratelimit", ";r=")),
        ),
        (
            "dictionary",
            parameter(
                &dictionary,
                ("ratelimit", "limit="),
                ("ratelimit", "remaining="),
            ),
        ),
        (
            "triple",
            number(&triple, "ratelimit-limit", "ratelimit-remaining"),
        ),
        ("x", number(&x, x_names.0, x_names.1)),
        ("epoch", number(&epoch, x_names.0, x_names.1)),
        (
            "spring",
            number(
                &spring,
                "x-ratelimit-burst-capacity",
                "x-ratelimit-remaining",
            ),
        ),
    ];
    pairs
        .into_iter()
        .map(|(name, (limit, left))| (name, limit, left))
        .collect()
}

/// Returns the seconds in which the quota comes back, as the list, the dictionary and the triple
/// say them.
fn windows(state: &LimitState<'_>) -> [u64; 3] {
    [Fields::LIST, Fields::DICTIONARY, Fields::TRIPLE]
        .map(|fields| parameter(&written(fields, &[*state]), "ratelimit-policy", ";w="))
}

#[test]
fn bursts_that_come_back_in_parts_of_seconds() {
    for (text, most, seconds) in [
        ("1/90ms burst 2", 2, 1),
        ("3/s burst 10", 10, 4),
        ("10/s burst 25", 25, 3),
        ("10/s burst 1", 1, 1),
        ("1000/s", 1000, 1),
        ("60/min burst 90", 90, 90),
        ("1/90min", 1, 5400),
    ] {
        let quota: Quota = text.parse().expect("a quota");
        let state = LimitState::of_rate("a", quota);
        for (generation, limit, left) in said(&state) {
            assert_eq!((limit, left), (most, most), "{text}: {generation}");
        }
        assert_eq!(windows(&state), [seconds; 3], "{text}");
        // The policy of draft 04 to 07 begins with the quota.
        let headers = written(Fields::TRIPLE, &[state]);
        assert_eq!(
            headers["ratelimit-policy"],
            format!("{most};w={seconds}").as_str()
        );
    }
}

/// Checks the fields of an answer to a request for `n` permits of a new limiter.
fn check<A: tollgate::algorithm::Algorithm>(
    algorithm: A,
    quota: Quota,
    n: u64,
) -> Result<(), TestCaseError> {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(1000));
    let granted = Limiter::with_clock(algorithm, clock).try_acquire_n(n);
    let granted = granted.expect("all permits are there");
    let state = LimitState::of_rate("a", quota).granted(granted.info());
    for (generation, limit, left) in said(&state) {
        prop_assert_eq!(
            limit.checked_sub(left),
            Some(n),
            "{}: {}",
            generation,
            quota
        );
    }
    let exact = state.window().expect("a rate");
    let seconds = exact.as_nanos().div_ceil(1_000_000_000).max(1);
    prop_assert_eq!(windows(&state).map(u128::from), [seconds; 3]);
    Ok(())
}

/// Returns a part of this many permits, and at least one.
fn part_of(permits: u64, part: f64) -> u64 {
    ((permits as f64 * part) as u64).max(1)
}

proptest! {
    // These buckets are exact. Others may say one permit less for a nanosecond.
    #[test]
    fn limit_less_remaining_is_what_was_used_of_a_bucket(
        permits in 1_u64..=11,
        period in 1_u64..100_000,
        burst in 1_u64..1000,
        part in 0.0_f64..1.0,
    ) {
        let quota = Quota::per(permits, Duration::from_millis(period)).burst(burst);
        let n = part_of(burst, part);
        check(TokenBucket::new(quota).expect("a bucket"), quota, n)?;
        check(Gcra::new(quota).expect("a bucket"), quota, n)?;
    }

    #[test]
    fn limit_less_remaining_is_what_was_used_of_a_window(
        permits in 1_u64..1000,
        period in 1_u64..100_000,
        part in 0.0_f64..1.0,
    ) {
        let quota = Quota::per(permits, Duration::from_millis(period));
        let n = part_of(permits, part);
        check(FixedWindow::new(quota).expect("a window"), quota, n)?;
        check(SlidingWindow::new(quota).expect("a window"), quota, n)?;
    }
}
