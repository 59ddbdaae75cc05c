//! Constructors of the windows, the intervals and the leaky bucket: what is allowed is made, what is not
//! is refused with what would be, and that is exact to the last permit and the last nanosecond.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{
    ConfigError, FixedWindow, Intervals, LeakyBucket, Quota, Requota, SlidingWindow, TokenBucket,
};

use crate::bad_input::{EDGES, FIFTY_YEARS_NS, YEAR_NS, long_and_short};

fn per_ns(n: u64, period_ns: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(period_ns))
}

type Made = Result<Quota, ConfigError>;

/// What is made from a quota here.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Fixed,
    FirstHit,
    Sliding,
    Intervals,
    Greedy,
}

const WINDOWS: [Kind; 3] = [Kind::Fixed, Kind::FirstHit, Kind::Sliding];
const REFILLS: [Kind; 2] = [Kind::Intervals, Kind::Greedy];

impl Kind {
    /// Makes one, and says which quota it has.
    fn make(self, quota: Quota) -> Made {
        match self {
            Self::Fixed => FixedWindow::new(quota).map(|made| made.quota()),
            Self::FirstHit => {
                let made = FixedWindow::new(quota)?.opened_by_first_hit();
                made.map(|made| made.quota())
            }
            Self::Sliding => SlidingWindow::new(quota).map(|made| made.quota()),
            Self::Intervals => Intervals::new(quota).map(|made| made.quota()),
            Self::Greedy => Intervals::new(quota)?.greedy().map(|made| made.quota()),
        }
    }

    /// Who refuses this quota: what windows and intervals are made from does so for itself.
    fn refuses(self, quota: Quota) -> Self {
        match self {
            Self::FirstHit if Self::Fixed.make(quota).is_err() => Self::Fixed,
            Self::Greedy if Self::Intervals.make(quota).is_err() => Self::Intervals,
            kind => kind,
        }
    }

    /// The quota of which all permits are there at once, if that is what this is about.
    fn plain(self, n: u64, period: Duration) -> Quota {
        let quota = Quota::per(n, period);
        match self {
            // One permit at once, so that it is not the burst which is too large.
            Self::Intervals | Self::Greedy => quota.burst(1),
            _ => quota,
        }
    }
}

/// Makes it, and checks that what a refusal says is so.
fn check(kind: Kind, quota: Quota) -> Made {
    let (made, kind) = (kind.make(quota), kind.refuses(quota));
    let (n, period) = (quota.permits(), quota.period());
    let error = match made {
        Ok(same) => {
            assert_eq!(same, quota);
            assert!((1..=FIFTY_YEARS_NS.into()).contains(&period.as_nanos()));
            return made;
        }
        Err(error) => error,
    };
    let text = error.to_string();
    assert!(text.starts_with(error.field()), "{text}");
    match error {
        ConfigError::WindowTooLong { period: p, max } => {
            assert!(p == period && max == Duration::from_nanos(FIFTY_YEARS_NS) && max < p);
        }
        ConfigError::LimitTooLarge { .. } => limit_too_large(kind, quota, error),
        ConfigError::BurstTooLarge { burst, max } => {
            assert_eq!(burst, quota.burst_size());
            let fits = |burst| kind.make(quota.burst(burst).initial(0)).is_ok();
            assert!(
                max < burst && fits(max) && !fits(max + 1),
                "{quota}: {text}"
            );
        }
        ConfigError::BurstInWindow { burst, n: window } => {
            assert_eq!((burst, window), (quota.burst_size(), n));
            assert_ne!(burst, n);
        }
        ConfigError::InitialInWindow { initial, n: window } => {
            assert_eq!((initial, window), (quota.initial_permits(), n));
            assert_ne!(initial, n);
        }
        // What the buckets say as well: see the tests of the configuration.
        other => assert_eq!(TokenBucket::new(quota).map(|_| ()), Err(other), "{quota}"),
    }
    made
}

/// So many fit a window of this length and one more does not, and so many fit a window of that length and
/// none that is a nanosecond shorter.
fn limit_too_large(kind: Kind, quota: Quota, error: ConfigError) {
    let ConfigError::LimitTooLarge {
        n,
        max,
        period,
        min_period,
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!((n, period), (quota.permits(), quota.period()), "{quota}");
    let plain = |n, period| kind.make(kind.plain(n, period));
    assert!(max < n && max > 0, "{quota}: {error}");
    assert!(plain(max, period).is_ok(), "{quota}: {error}");
    assert!(plain(max + 1, period).is_err(), "{quota}: {error}");
    match min_period {
        Some(least) => {
            assert!(least > period, "{quota}: {error}");
            assert_eq!(plain(n, least).map(|_| ()), Ok(()), "{quota}: {error}");
            let less = least - Duration::from_nanos(1);
            assert!(plain(n, less).is_err(), "{quota}: {error}");
        }
        None => {
            let longest = Duration::from_nanos(FIFTY_YEARS_NS);
            assert!(plain(n, longest).is_err(), "{quota}: {error}");
        }
    }
}

/// Lengths of windows: around each power of two and each unit.
fn periods() -> Vec<u64> {
    let powers = (0..61).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
    let units = [1, 60, 3600, 86_400, 30 * 86_400, 31_557_600].map(|s| s * 1_000_000_000);
    let ends = [
        YEAR_NS,
        FIFTY_YEARS_NS / 2,
        FIFTY_YEARS_NS - 1,
        FIFTY_YEARS_NS,
    ];
    let mut periods: Vec<_> = powers.chain(units).chain(ends).collect();
    periods.retain(|period| (1..=FIFTY_YEARS_NS).contains(period));
    periods
}

#[test]
fn what_is_refused_says_what_fits_to_the_last_permit_and_nanosecond() {
    let (mut refused, mut shortest, mut none) = (0, 0, 0);
    for period in periods() {
        let most = period.saturating_mul(10);
        let counts = (0..64)
            .map(|bit| 1_u64 << bit)
            .flat_map(|n| [n - 1, n, n + 1]);
        for n in counts
            .chain([most - 1, most, most / 3])
            .filter(|n| *n <= most && *n > 0)
        {
            for kind in WINDOWS.into_iter().chain([Kind::Intervals]) {
                let quota = kind.plain(n, Duration::from_nanos(period));
                if let Err(ConfigError::LimitTooLarge { min_period, .. }) = check(kind, quota) {
                    refused += 1;
                    shortest += u64::from(min_period.is_some());
                    none += u64::from(min_period.is_none());
                }
            }
        }
    }
    println!("{refused} refused: {shortest} would fit a longer window, {none} would fit none");
    assert!(
        refused > 5_000 && shortest > 3_000 && none > 20,
        "{refused}, {shortest}, {none}"
    );
}

#[test]
fn the_largest_burst_of_intervals_is_what_it_is_said_to_be() {
    let mut refused = 0;
    for period in periods() {
        for n in [1, 7, period / 1000, period / 3, period] {
            for kind in REFILLS {
                if kind.make(per_ns(n, period).burst(1)).is_err() {
                    continue;
                }
                for burst in EDGES {
                    let made = check(kind, per_ns(n, period).burst(burst).initial(0));
                    refused += u64::from(matches!(made, Err(ConfigError::BurstTooLarge { .. })));
                }
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn every_quota_at_an_edge_is_a_window_or_refused_with_a_reason() {
    let (mut made, mut refused) = (0, 0);
    for kind in WINDOWS.into_iter().chain(REFILLS) {
        for n in EDGES {
            for period in long_and_short() {
                let quota = Quota::per(n, period);
                let others = EDGES.into_iter().flat_map(|other| {
                    [
                        quota.burst(other),
                        quota.initial(other),
                        quota.burst(n).initial(other),
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
    }
    assert!(made > 1000 && refused > 10_000, "{made} and {refused}");
}

#[test]
fn a_window_has_no_burst_and_no_start_of_its_own() {
    let quota = Quota::per_second(5);
    for kind in WINDOWS {
        assert_eq!(kind.make(quota.burst(5).initial(5)), Ok(quota));
        for burst in [0, 1, 4, 6, u64::MAX] {
            assert_eq!(
                kind.make(quota.burst(burst)),
                Err(ConfigError::BurstInWindow { burst, n: 5 })
            );
        }
        for initial in [0, 4, 6] {
            let refused = Err(ConfigError::InitialInWindow { initial, n: 5 });
            assert_eq!(kind.make(quota.initial(initial)), refused);
        }
    }
}

#[test]
fn a_window_is_a_nanosecond_to_fifty_years_long() {
    let all = WINDOWS.into_iter().chain(REFILLS);
    for kind in all {
        assert!(kind.make(per_ns(1, 1)).is_ok());
        assert!(kind.make(per_ns(51, FIFTY_YEARS_NS)).is_ok());
        let (period, max) = (
            Duration::from_nanos(FIFTY_YEARS_NS + 1),
            Duration::from_nanos(FIFTY_YEARS_NS),
        );
        let refused = Err(ConfigError::WindowTooLong { period, max });
        assert_eq!(kind.make(Quota::per(51, period)), refused);
        assert_eq!(kind.make(per_ns(1, 0)), Err(ConfigError::ZeroPeriod));
        assert_eq!(kind.make(per_ns(0, 1)), Err(ConfigError::ZeroPermits));
    }
}

/// What the documentation says of each in numbers.
#[test]
fn the_largest_windows_are_those_that_the_documentation_names() {
    let most = |kind: Kind, period: u64| {
        let fits = |n: u64| kind.make(per_ns(n, period)).is_ok();
        let bits = (0..34).rev().map(|bit| 1_u64 << bit);
        bits.fold(
            0,
            |most, bit| if fits(most | bit) { most | bit } else { most },
        )
    };
    let (second, minute) = (1_000_000_000, 60_000_000_000);
    assert_eq!(most(Kind::Sliding, second), 65_535);
    assert_eq!(most(Kind::Sliding, minute), 524_287);
    assert_eq!(most(Kind::Sliding, 60 * minute), 4_194_303);
    // Above 5.8 thousand million a second.
    assert_eq!(most(Kind::Fixed, second), 8_589_934_591);
}

#[test]
fn a_leaky_bucket_is_made_of_what_a_token_bucket_is_made_of() {
    for n in EDGES {
        for period in long_and_short() {
            for burst in EDGES {
                let quota = Quota::per(n, period).burst(burst);
                let bucket = TokenBucket::new(quota).map(|_| ());
                assert_eq!(LeakyBucket::meter(quota).map(|_| ()), bucket);
                assert_eq!(LeakyBucket::queue(quota).map(|_| ()), bucket);
                if let Ok(queue) = LeakyBucket::queue(quota) {
                    assert_eq!(
                        queue.free(u64::MAX),
                        LeakyBucket::meter(quota).expect("it is")
                    );
                }
            }
        }
    }
}

#[test]
fn each_error_says_what_it_was_and_what_is_allowed() {
    let cases: [(Made, &str, &str); 7] = [
        (
            Kind::Fixed.make(Quota::per_second(5).burst(6)),
            "burst",
            "burst is 6, but a window of 5 permits has no other burst: leave it out",
        ),
        (
            Kind::Sliding.make(Quota::per_second(5).initial(0)),
            "initial",
            "initial is 0, but a window begins with its 5 permits: leave it out",
        ),
        (
            Kind::Fixed.make(per_ns(90, FIFTY_YEARS_NS + 1)),
            "period",
            "period is 1577880000.000000001s, but a window must be at most 1577880000s long",
        ),
        (
            Kind::Sliding.make(Quota::per_second(65_536)),
            "n",
            "n is 65536, but must be at most 65535 in a window of 1s, or the window at least \
             1.469515267s long",
        ),
        (
            Kind::Sliding.make(per_ns(1 << 31, FIFTY_YEARS_NS)),
            "n",
            "n is 2147483648, but must be at most 2147483647 in a window of 1577880000s",
        ),
        (
            Kind::Intervals.make(Quota::per_second(5).burst(0)),
            "burst",
            "burst is 0, but must be from 1 to 1099511627776",
        ),
        (
            Kind::Intervals.make(Quota::per_second(5).initial(6)),
            "initial",
            "initial is 6, but must be at most the burst, which is 5",
        ),
    ];
    for (made, field, text) in cases {
        let error = made.expect_err(text);
        assert_eq!((error.field(), error.to_string().as_str()), (field, text));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    #[test]
    fn any_quota_is_a_window_or_refused_with_a_reason(
        (n, n_bits) in (any::<u64>(), 0..64_u32),
        (period, period_bits) in (any::<u64>(), 0..64_u32),
        (burst, burst_bits) in (any::<u64>(), 0..64_u32),
        (initial, initial_bits) in (any::<u64>(), 0..64_u32),
    ) {
        let quota = per_ns(n >> n_bits, period >> period_bits);
        for kind in WINDOWS.into_iter().chain(REFILLS) {
            let _ = check(kind, quota);
            let _ = check(kind, quota.burst(burst >> burst_bits));
            let _ = check(kind, quota.burst(burst >> burst_bits).initial(initial >> initial_bits));
        }
    }

    /// With any alignment they are made, and a fresh one is full wherever its windows begin.
    #[test]
    fn any_alignment_will_do(
        (n, period) in (1..1000_u64, 100..FIFTY_YEARS_NS),
        (origin, origin_nanos) in (any::<u64>(), 0..1_000_000_000_u32),
        (offset, offset_nanos) in (any::<u64>(), 0..1_000_000_000_u32),
        now in any::<u64>(),
    ) {
        use tollgate::{Algorithm, Tick};

        let n = n.min(10 * period).max(period.div_ceil(YEAR_NS));
        let (origin, offset) = (
            Duration::new(origin, origin_nanos),
            Duration::new(offset, offset_nanos),
        );
        let now = Tick::from_nanos(now);
        if let Ok(windows) = FixedWindow::new(per_ns(n, period)) {
            let windows = windows.aligned_to_unix(origin).offset(offset).offset(offset);
            prop_assert_eq!(windows.available(0, now), n);
        }
        if let Ok(window) = SlidingWindow::new(per_ns(n, period)) {
            let window = window.offset(offset).aligned_to_unix(origin);
            prop_assert_eq!(window.available(0, now), n);
        }
        if let Ok(bucket) = Intervals::new(per_ns(n, period)) {
            let bucket = bucket.aligned_to_unix(origin).offset(offset).aligned_to_utc();
            prop_assert_eq!(bucket.available(0, now), n);
        }
    }
}
