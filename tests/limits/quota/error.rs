//! Constructors accept valid input. They refuse anything else with the field, its value and what is
//! allowed, exact to the last permit and nanosecond.

use tollgate::error::QuotaError;

use crate::errors::is_kept;
use crate::quota::kinds::Kind::{Bucket, Fixed, Greedy, Refills, Sliding};
use crate::quota::kinds::{KINDS, Kind, Made, check};
use crate::support::edges::{EDGES, MAX_BURST, long_and_short};
use crate::support::*;

/// With a warm-up of zero, Guava's rate was NaN, which does not limit. A huge period made
/// throttlecrab panic.
#[test]
fn every_extreme_quota_is_accepted_or_refused_with_a_reason() {
    let (mut made, mut refused) = (0, 0);
    let rates = EDGES.into_iter().chain([9_999_999_999, 10_000_000_001]);
    for (n, kind) in rates.flat_map(|n| KINDS.map(|kind| (n, kind))) {
        for period in long_and_short() {
            let quota = Quota::per(n, period);
            let others = EDGES.into_iter().flat_map(|edge| {
                let burst = quota.burst(edge);
                [
                    burst,
                    quota.initial(edge),
                    quota.burst(n).initial(edge),
                    burst.initial(n),
                ]
            });
            for quota in others.chain([quota]) {
                match check(kind, quota) {
                    Ok(_) => made += 1,
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(made > 2000 && refused > 50_000, "{made} and {refused}");
}

#[test]
fn a_refusal_states_the_exact_largest_limit_and_shortest_period() {
    // Lengths around each power of two and each unit.
    let powers = (0..61).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
    let units = [1, 60, 3600, 86_400, 30 * 86_400, 31_557_600].map(|s| s * 1_000_000_000);
    let ends = [YEAR, FIFTY_YEARS / 2, FIFTY_YEARS - 1, FIFTY_YEARS];
    let periods = powers.chain(units).chain(ends);
    let (mut shortest, mut none, mut bursts) = (0, 0, 0);
    for period in periods.filter(|period| (1..=FIFTY_YEARS).contains(period)) {
        let most = period.saturating_mul(10);
        let counts = (0..64).map(|bit| 1_u64 << bit);
        let counts = counts.flat_map(|n| [n - 1, n, n + 1]);
        for n in counts.chain([most - 1, most, most / 3, most.saturating_add(1)]) {
            for kind in KINDS.into_iter().filter(|kind| *kind != Greedy) {
                let quota = kind.plain(n, Duration::from_nanos(period));
                if let Err(QuotaError::LimitTooLarge { min_period, .. }) = check(kind, quota) {
                    shortest += u64::from(min_period.is_some());
                    none += u64::from(min_period.is_none());
                }
            }
        }
        for n in [1, 7, period / 1000, period / 3, period] {
            for kind in [Bucket, Refills, Greedy] {
                for burst in EDGES {
                    let made = check(kind, per_ns(n, period).burst(burst).initial(0));
                    bursts += u64::from(matches!(made, Err(QuotaError::BurstTooLarge { .. })));
                }
            }
        }
    }
    println!("{shortest} would fit a longer window, {none} would fit none, {bursts} bursts");
    assert!(
        shortest > 3_000 && none > 20 && bursts > 1000,
        "{shortest}, {none}, {bursts}"
    );
}

/// Creates a `Gcra` from two durations, and checks the result.
fn check_interval(interval: Duration, tolerance: Duration) -> bool {
    let year = u128::from(YEAR);
    match Gcra::from_interval(interval, tolerance) {
        Ok(_) => {
            assert!((1..=year).contains(&interval.as_nanos()));
            let at_once = 1 + tolerance.as_nanos() / interval.as_nanos();
            assert!(at_once <= u128::from(MAX_BURST));
            return true;
        }
        Err(QuotaError::ZeroInterval) => assert!(interval.is_zero()),
        Err(QuotaError::IntervalTooLong { interval: i }) => {
            assert!(i == interval && i.as_nanos() > year);
        }
        Err(error @ QuotaError::ToleranceTooLong { tolerance: t, max }) => {
            let fits = |tolerance| Gcra::from_interval(interval, tolerance).is_ok();
            assert!(t == tolerance && max < t && fits(max), "{error}");
            assert!(!fits(max + Duration::from_nanos(1)), "{error}");
        }
        Err(other) => panic!("{interval:?}, {tolerance:?}: {other}"),
    }
    false
}

#[test]
fn every_interval_and_tolerance_is_accepted_or_refused_with_a_reason() {
    let mut made = 0;
    for interval in long_and_short() {
        for tolerance in long_and_short() {
            made += u32::from(check_interval(interval, tolerance));
        }
    }
    let mut random = Random(0x0070_11a7_e701);
    for _ in 0..4000 {
        let [interval, tolerance] = [0; 2].map(|_| Duration::from_nanos(random.upto(u64::MAX)));
        made += u32::from(check_interval(interval, tolerance));
    }
    assert!(made > 500, "{made}");
}

#[test]
fn any_quota_is_accepted_or_refused_with_a_reason() {
    let mut random = Random(0x0070_11a7_e702);
    for _ in 0..4000 {
        let [n, secs, nanos, burst, initial] = [0; 5].map(|_| random.upto(u64::MAX));
        let period = match random.below(4) {
            0 => Duration::new(secs, (nanos % 1_000_000_000) as u32),
            _ => Duration::from_nanos(nanos),
        };
        let quota = Quota::per(n, period);
        for kind in KINDS {
            for quota in [
                quota,
                quota.burst(burst),
                quota.burst(burst).initial(initial),
            ] {
                let _ = check(kind, quota);
            }
        }
    }
}

/// The limits that the documentation states in numbers.
#[test]
fn the_largest_limits_match_the_documentation() {
    let (second, minute) = (1_000_000_000, 60_000_000_000);
    for (kind, period, most) in [
        (Sliding, second, 65_535),
        (Sliding, minute, 524_287),
        (Sliding, 60 * minute, 4_194_303),
        // Above 5.8 billion a second.
        (Fixed, second, 8_589_934_591),
    ] {
        assert!(
            kind.make(per_ns(most, period)).is_ok(),
            "{kind:?} of {most}"
        );
        assert!(
            kind.make(per_ns(most + 1, period)).is_err(),
            "{kind:?} of {most}"
        );
    }
    for n in [1, 2, 7, 11, 13, 500] {
        let fits = |ns| Bucket.make(per_ns(n, ns).burst(1)).is_ok();
        assert!(fits(n * YEAR) && !fits(n * YEAR + 1), "{n}");
    }
    // What the word holds for 50 years and a burst of debt.
    for interval in [1, 1000, 7_654_321, 8_000_000, 1_000_000_007, YEAR] {
        let held = (u64::MAX - 1 - FIFTY_YEARS) / 2 / interval;
        let (max, burst) = (held.min(MAX_BURST), held.min(MAX_BURST) + 1);
        assert!(
            Bucket.make(per_ns(1, interval).burst(max)).is_ok(),
            "{interval}"
        );
        let refused = Err(QuotaError::BurstTooLarge { burst, max });
        assert_eq!(Bucket.make(per_ns(1, interval).burst(burst)), refused);
    }
}

#[test]
fn each_error_names_the_field_its_value_and_what_is_allowed() {
    let (second, year) = (Duration::from_secs(1), Duration::from_nanos(YEAR));
    let long = Duration::from_nanos(u64::MAX) + Duration::from_nanos(1);
    let interval = |interval, tolerance| Gcra::from_interval(interval, tolerance).map(Into::into);
    let fifty_years = Duration::from_nanos(FIFTY_YEARS);
    let beyond = fifty_years + Duration::from_nanos(1);
    let of = |kind: Kind, quota: &str| kind.make(quota.parse().expect(quota));
    let made: [Made; 16] = [
        of(Bucket, "0/s"),
        of(Bucket, "1/0s"),
        Bucket.make(Quota::per(1, long)),
        of(Bucket, "11/ns"),
        of(Bucket, "2/1095d"),
        of(Bucket, "5/s burst 0"),
        of(Bucket, "1/d burst 300000"),
        of(Bucket, "5/s initial 6"),
        interval(Duration::ZERO, second),
        interval(year + second, second),
        interval(Duration::from_secs(86_400), Duration::MAX),
        of(Fixed, "5/s burst 6"),
        of(Sliding, "5/s initial 0"),
        Fixed.make(Quota::per(90, beyond)),
        of(Sliding, "65536/s"),
        Sliding.make(Quota::per(1 << 31, fifty_years)),
    ];
    let texts = "\
n is 0, but must be at least 1 permit
period is 0, but must be at least 1ns
period is 18446744073.709551616s, but must be at most 18446744073.709551615s
n is 11 every 1ns, but must be at most 10 every 1ns
n is 2 every 94608000s, but must be at least 1 every 365 days
burst is 0, but must be from 1 to 1099511627776
burst is 300000, but must be from 1 to 97620 at this rate
initial is 6, but must be at most the burst, which is 5
interval is 0, but must be at least 1ns
interval is 31536001s, but must be at most 365 days
tolerance is 18446744073709551615.999999999s, but must be at most 8434345636.854775807s \
at this interval
burst is 6, but a window of 5 permits has no separate burst: leave it out
initial is 0, but a window always begins with its 5 permits: leave it out
period is 1577880000.000000001s, but a window must be at most 1577880000s long
n is 65536, but must be at most 65535 in a window of 1s, or the window must be at least \
1.469515267s long
n is 2147483648, but must be at most 2147483647 in a window of 1577880000s";
    assert_eq!(texts.lines().count(), made.len());
    for (made, text) in made.into_iter().zip(texts.lines()) {
        let error = made.expect_err(text);
        is_kept(error, text);
        assert_eq!(error.const_message().split(' ').next(), Some(error.field()));
    }
}

/// `Display` is for people, and `Debug` for programmers: it names the variant and its fields.
#[test]
fn debug_shows_the_variant() {
    let error = QuotaError::ZeroBurst;
    assert_eq!(format!("{error:?}"), "ZeroBurst");
    let error = QuotaError::BurstTooLarge { burst: 9, max: 5 };
    assert_eq!(format!("{error:?}"), "BurstTooLarge { burst: 9, max: 5 }");
    let result: Result<(), QuotaError> = Err(error);
    assert_eq!(format!("{result:?}"), format!("Err({error:?})"));
    let expected = "burst is 9, but must be from 1 to 5 at this rate";
    assert_eq!(error.to_string(), expected);
}
