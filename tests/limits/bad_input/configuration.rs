//! Constructors: what is allowed is made, what is not is refused with the field, what it was and
//! what is allowed.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{ConfigError, Gcra, Limiter, Quota, TokenBucket};

use crate::bad_input::{EDGES, FIFTY_YEARS_NS, MAX_BURST, YEAR_NS, long_and_short};

/// Whether the rate is between one permit in 365 days and ten a nanosecond.
fn is_rate(n: u64, period: Duration) -> bool {
    let (n, ns) = (u128::from(n), period.as_nanos());
    let finite = n > 0 && ns > 0 && ns <= u128::from(u64::MAX);
    finite && n <= 10 * ns && ns <= n * u128::from(YEAR_NS)
}

/// Makes it in every way there is, and checks what comes of it.
fn check(quota: Quota) {
    let made = TokenBucket::new(quota);
    assert_eq!(made.map(|_| ()), Gcra::new(quota).map(|_| ()));
    assert_eq!(made.map(|_| ()), Limiter::token_bucket(quota).map(|_| ()));
    assert_eq!(made.map(|_| ()), Limiter::gcra(quota).map(|_| ()));

    let (n, period) = (quota.permits(), quota.period());
    let (burst, initial) = (quota.burst_size(), quota.initial_permits());
    let rate = is_rate(n, period);
    let Err(error) = made else {
        assert!(
            rate && (1..=MAX_BURST).contains(&burst) && initial <= burst,
            "{quota}"
        );
        return;
    };
    let text = error.to_string();
    assert!(text.starts_with(error.field()), "{text}");
    match error {
        ConfigError::ZeroPermits => assert_eq!(n, 0),
        ConfigError::ZeroPeriod => assert!(period.is_zero()),
        ConfigError::PeriodTooLong { period: p } => {
            assert!(p == period && p.as_nanos() > u128::from(u64::MAX));
        }
        ConfigError::RateTooHigh { n: m, period: p } => {
            assert!((m, p) == (n, period) && u128::from(n) > 10 * p.as_nanos());
        }
        ConfigError::RateTooLow { n: m, period: p } => {
            let slowest = u128::from(n) * u128::from(YEAR_NS);
            assert!((m, p) == (n, period) && p.as_nanos() > slowest);
        }
        ConfigError::ZeroBurst => assert!(rate && burst == 0),
        ConfigError::InitialAboveBurst {
            initial: i,
            burst: b,
        } => {
            assert!(rate && (i, b) == (initial, burst) && initial > burst);
        }
        ConfigError::BurstTooLarge { burst: b, max } => {
            assert!(rate && b == burst && max < burst && (1..=MAX_BURST).contains(&max));
            let fits = |burst| TokenBucket::new(quota.burst(burst).initial(0)).is_ok();
            assert!(fits(1) && fits(max) && !fits(max + 1), "{quota}: {text}");
        }
        other => panic!("{quota}: {other}"),
    }
}

#[test]
fn every_quota_at_an_edge_is_made_or_refused_with_a_reason() {
    let mut checked = 0;
    for n in EDGES.into_iter().chain([9_999_999_999, 10_000_000_001]) {
        for period in long_and_short() {
            let quota = Quota::per(n, period);
            check(quota);
            for burst in EDGES {
                check(quota.burst(burst));
                for initial in EDGES {
                    check(quota.burst(burst).initial(initial));
                    checked += 1;
                }
            }
        }
        for quota in [Quota::per_second(n), Quota::per_minute(n)] {
            check(quota);
        }
        for quota in [Quota::per_hour(n), Quota::per_day(n)] {
            check(quota);
        }
    }
    assert!(checked > 50_000, "{checked}");
}

#[test]
fn the_bounds_of_the_rate_are_where_they_are_said_to_be() {
    let accepts =
        |n, ns| TokenBucket::new(Quota::per(n, Duration::from_nanos(ns)).burst(1)).is_ok();
    for ns in [1, 3, 1_000_000_007, 1 << 60] {
        assert!(accepts(10 * ns, ns) && !accepts(10 * ns + 1, ns), "{ns}");
    }
    for n in [1, 2, 7, 11, 13, 500] {
        assert!(
            accepts(n, n * YEAR_NS) && !accepts(n, n * YEAR_NS + 1),
            "{n}"
        );
    }
}

#[test]
fn the_largest_burst_is_what_the_word_holds_for_fifty_years_and_a_burst_of_debt() {
    for interval in [1, 1000, 7_654_321, 8_000_000, 1_000_000_007, YEAR_NS] {
        let quota = Quota::per(1, Duration::from_nanos(interval));
        let held = (u64::MAX - 1 - FIFTY_YEARS_NS) / 2 / interval;
        let largest = held.min(MAX_BURST);
        assert!(TokenBucket::new(quota.burst(largest)).is_ok(), "{interval}");
        let refused = TokenBucket::new(quota.burst(largest + 1));
        let (burst, max) = (largest + 1, largest);
        assert_eq!(refused, Err(ConfigError::BurstTooLarge { burst, max }));
    }
}

#[test]
fn every_interval_and_tolerance_is_made_or_refused_with_a_reason() {
    let mut made = 0;
    for interval in long_and_short() {
        for tolerance in long_and_short() {
            made += u32::from(check_interval(interval, tolerance));
        }
    }
    assert!(made > 50, "{made}");
}

fn check_interval(interval: Duration, tolerance: Duration) -> bool {
    let year = u128::from(YEAR_NS);
    match Gcra::from_interval(interval, tolerance) {
        Ok(_) => {
            assert!((1..=year).contains(&interval.as_nanos()));
            let at_once = 1 + tolerance.as_nanos() / interval.as_nanos();
            assert!(at_once <= u128::from(MAX_BURST));
            return true;
        }
        Err(ConfigError::ZeroInterval) => assert!(interval.is_zero()),
        Err(ConfigError::IntervalTooLong { interval: i }) => {
            assert!(i == interval && i.as_nanos() > year);
        }
        Err(error @ ConfigError::ToleranceTooLong { tolerance: t, max }) => {
            assert!(t == tolerance && max < t, "{error}");
            let one = Duration::from_nanos(1);
            assert!(Gcra::from_interval(interval, max).is_ok(), "{error}");
            assert!(Gcra::from_interval(interval, max + one).is_err(), "{error}");
        }
        Err(other) => panic!("{interval:?}, {tolerance:?}: {other}"),
    }
    false
}

#[test]
fn each_error_names_the_field_what_it_was_and_what_is_allowed() {
    let second = Duration::from_secs(1);
    let long = Duration::from_nanos(u64::MAX) + Duration::from_nanos(1);
    let year = Duration::from_nanos(YEAR_NS);
    let day = Duration::from_secs(86_400);
    let quotas = [
        (
            Quota::per_second(0),
            "n",
            "n is 0, but must be at least 1 permit",
        ),
        (
            Quota::per(1, Duration::ZERO),
            "period",
            "period is 0, but must be at least 1ns",
        ),
        (
            Quota::per(1, long),
            "period",
            "period is 18446744073.709551616s, but must be at most 18446744073.709551615s",
        ),
        (
            Quota::per(11, Duration::from_nanos(1)),
            "n",
            "n is 11 every 1ns, but must be at most 10 every 1ns",
        ),
        (
            Quota::per(2, 3 * year),
            "n",
            "n is 2 every 94608000s, but must be at least 1 every 365 days",
        ),
        (
            Quota::per_second(5).burst(0),
            "burst",
            "burst is 0, but must be from 1 to 1099511627776",
        ),
        (
            Quota::per_day(1).burst(300_000),
            "burst",
            "burst is 300000, but must be from 1 to 97620 at this rate",
        ),
        (
            Quota::per_second(5).initial(6),
            "initial",
            "initial is 6, but must be at most the burst, which is 5",
        ),
    ];
    for (quota, field, text) in quotas {
        let error = TokenBucket::new(quota).expect_err(text);
        assert_eq!((error.field(), error.to_string().as_str()), (field, text));
    }
    let intervals = [
        (
            Duration::ZERO,
            second,
            "interval",
            "interval is 0, but must be at least 1ns",
        ),
        (
            year + second,
            second,
            "interval",
            "interval is 31536001s, but must be at most 365 days",
        ),
        (
            day,
            Duration::MAX,
            "tolerance",
            "tolerance is 18446744073709551615.999999999s, but must be at most \
             8434345636.854775807s at this interval",
        ),
    ];
    for (interval, tolerance, field, text) in intervals {
        let error = Gcra::from_interval(interval, tolerance).expect_err(text);
        assert_eq!((error.field(), error.to_string().as_str()), (field, text));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    #[test]
    fn any_quota_is_made_or_refused_with_a_reason(
        (n, n_bits) in (any::<u64>(), 0..64_u32),
        (secs, secs_bits, nanos) in (any::<u64>(), 0..64_u32, 0..1_000_000_000_u32),
        (burst, burst_bits) in (any::<u64>(), 0..64_u32),
        (initial, initial_bits) in (any::<u64>(), 0..64_u32),
    ) {
        let quota = Quota::per(n >> n_bits, Duration::new(secs >> secs_bits, nanos));
        check(quota);
        let quota = quota.burst(burst >> burst_bits);
        check(quota);
        check(quota.initial(initial >> initial_bits));
    }

    #[test]
    fn any_interval_is_made_or_refused_with_a_reason(
        (interval, tolerance) in (any::<u64>(), any::<u64>()),
        (interval_bits, tolerance_bits) in (0..64_u32, 0..64_u32),
    ) {
        check_interval(
            Duration::from_nanos(interval >> interval_bits),
            Duration::from_nanos(tolerance >> tolerance_bits),
        );
    }
}
