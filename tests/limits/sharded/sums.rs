//! The bounds of the shards add up to exactly the bound of the whole, checked on the numbers of
//! uneven quotas.

use tollgate::algorithm::{Debt, Forecast, Split};

use crate::algorithm::quotas::largest;
use crate::support::*;

/// Extreme rates.
fn adversaries() -> [Quota; 17] {
    [
        Quota::per_second(1).burst(7),
        Quota::per_second(13).burst(17),
        Quota::per_second(97).burst(1000),
        Quota::per_second(999_999_937).burst(19),
        Quota::per_second(9_999_999_967).burst(33),
        Quota::per_minute(1_000_003).burst(1 << 20),
        per_ns(10, 1).burst(16),
        per_ns(10, 1).burst(1 << 40),
        per_ns(1, 1).burst(3),
        per_ns(1, YEAR).burst(5),
        largest(per_ns(1, YEAR)),
        per_ns(17, YEAR).burst(16),
        per_ns(13, 13 * YEAR - 1).burst(4),
        largest(per_ns(11, DAY + 1)),
        largest(Quota::per_second(13)),
        largest(Quota::per_second(1)),
        per_ns(999_999_999_999_999_989, 9_999_999_999_999_999_961).burst(1000),
    ]
}

/// One of the equal parts of a limit.
struct Part {
    of: u64,
    /// An algorithm that counts fractions.
    part: AnyAlgorithm,
    /// The fractions in a permit.
    permit: u64,
}

impl Part {
    /// Returns the permits of all parts if each has this many fractions.
    fn in_permits(&self, fractions: u64) -> u64 {
        fractions * self.of / self.permit
    }
}

/// Returns parts for several numbers of shards, as far as the limit can be split.
fn splits_of(whole: &AnyAlgorithm) -> Vec<Part> {
    let numbers = [1, 2, 3, 4, 7, 13, 16, 97, 256].into_iter();
    let part = |of| {
        let (part, permit) = whole.per_shard(of)?;
        Some(Part { of, part, permit })
    };
    let numbers = numbers.filter(|of| *of <= whole.most_shards());
    numbers.filter_map(part).collect()
}

/// Checks that the burst is divided to the last permit. Returns the number of splits that were
/// checked.
fn bursts_add_up(whole: &AnyAlgorithm) -> usize {
    let splits = splits_of(whole);
    for split in &splits {
        let part = &split.part;
        assert_eq!(split.permit % split.of, 0);
        for now in [0, 12_345, 50 * YEAR].map(tick) {
            let fresh = split.in_permits(part.available(0, now));
            assert_eq!(fresh, whole.available(0, now));
            // The initial permits are divided too.
            let first = part.available(part.initial_word(now), now);
            assert_eq!(split.in_permits(first), whole.quota().initial_permits());
        }
    }
    splits.len()
}

/// Returns when a part has `k` permits after it was drained at `start` and charged so far that it
/// had none of them before.
fn due(split: &Part, start: Tick, k: u64) -> Option<u64> {
    let (part, permit) = (&split.part, split.permit);
    let all = part.available(0, start);
    let all = all.checked_add((k - 1).checked_mul(permit)?)?;
    let (word, charged) = part.charge(0, start, all);
    (charged.n() == all).then_some(())?;
    Some(part.due(word, start, permit)?.as_nanos() - start.as_nanos())
}

/// Checks that each part's permits come at exactly the `of`-th part of the rate: `k` of them need
/// `k * of * period / n`, to the quarter of a nanosecond before it and the nanosecond after it to
/// which the whole keeps its own rate, for decades.
/// Since this is a rational number, the rates of the parts add up to the rate.
fn rates_add_up(whole: &AnyAlgorithm) -> u32 {
    let quota = whole.quota();
    let (n, period) = (u128::from(quota.permits()), quota.period().as_nanos());
    let mut checked = 0;
    for split in splits_of(whole) {
        let (of, mut random) = (u128::from(split.of), Random(split.of));
        // Up to forty years of permits.
        let most = u128::from(40 * YEAR) * n / period / of;
        for start in [0, 7 * YEAR].map(tick) {
            for _ in 0..16 {
                let k = 1 + random.upto(u64::try_from(most).unwrap_or(u64::MAX));
                let Some(due) = due(&split, start, k) else {
                    continue;
                };
                let (right, due) = (u128::from(k) * of * period, u128::from(due));
                let is_early = right > n * due && 4 * (right - n * due) >= n;
                let is_late = due > right.div_ceil(n) + 1;
                assert!(
                    !is_early && !is_late,
                    "{quota} in {of}: {due}, {right} / {n}"
                );
                checked += 1;
            }
        }
    }
    checked
}

#[test]
fn the_shards_of_buckets_add_up() {
    let (mut splits, mut checked) = (0, 0);
    for quota in adversaries() {
        let buckets: [AnyAlgorithm; 3] = [
            TokenBucket::new(quota).expect("a bucket").into(),
            Gcra::new(quota).expect("a gcra").into(),
            LeakyBucket::meter(quota).expect("a meter").into(),
        ];
        for bucket in buckets {
            splits += bursts_add_up(&bucket);
            checked += rates_add_up(&bucket);
        }
        for initial in [0, 1, quota.burst_size() / 2, quota.burst_size() - 1] {
            let bucket = TokenBucket::new(quota.initial(initial)).expect("a bucket");
            splits += bursts_add_up(&bucket.into());
        }
    }
    assert!(splits > 300 && checked > 4000, "{splits} and {checked}");
}

/// The fraction of a permit that a tolerance holds is not lost: each part gets its share of it.
#[test]
fn an_uneven_tolerance_is_shared_out_too() {
    let mut checked = 0;
    for (interval, tolerance) in [
        (10_000_000, 25_000_000),
        (10_000_000, 99_999_999),
        (SECOND, 6 * SECOND + 1),
        (7, 100),
        (YEAR, 3 * YEAR + 12_345),
        (DAY, 4_217_172_818_427_387_903),
    ] {
        let [long, short] = [interval, tolerance].map(Duration::from_nanos);
        let gcra = Gcra::from_interval(long, short).expect("a gcra").into();
        assert!(bursts_add_up(&gcra) > 0);
        checked += rates_add_up(&gcra);
        for Part { of, part, permit } in splits_of(&gcra) {
            let all = u128::from(part.available(0, Tick::ZERO)) * u128::from(of);
            let right = u128::from(interval + tolerance) * u128::from(permit);
            assert_eq!(all * u128::from(interval), right);
        }
    }
    assert!(checked > 300, "{checked}");
}

/// Windows divide their permits, and each part is a window at the same time with the same length.
#[test]
fn the_shards_of_windows_add_up() {
    let mut splits = 0;
    for quota in ["2/s", "1000/s", "97/d", "3/5ns", "65535/s", "200/1095d"] {
        for kind in [
            "fixed-window QUOTA offset 3ns",
            "fixed-window QUOTA first-hit",
            "sliding-window QUOTA",
            "sliding-window QUOTA offset 3ns rounding down",
        ] {
            let whole = algorithm(&kind.replace("QUOTA", quota));
            splits += bursts_add_up(&whole);
            for split in splits_of(&whole) {
                ends_are_the_same(&whole, &split.part);
            }
        }
    }
    assert!(splits > 60, "{splits}");
}

/// Checks that a part is idle when the whole is, and not before.
fn ends_are_the_same(whole: &AnyAlgorithm, part: &AnyAlgorithm) {
    let period = whole.quota().period().as_nanos() as u64;
    for start in [0, 1, period - 1, period, 5 * period / 2].map(tick) {
        let new = |algorithm: &AnyAlgorithm| {
            let all = algorithm.available(0, start);
            let (_, granted) = algorithm.step(0, start, all).expect("fresh");
            assert!(granted.at() >= start);
            granted.reset_after()
        };
        assert_eq!(new(part), new(whole), "{part:?} and {whole:?}");
    }
}

/// Intervals also divide each refill, even if the shares are not whole permits. After any number of
/// refills, parts that were drained at the start together have what the whole has.
#[test]
fn the_shards_of_intervals_add_up() {
    let mut splits = 0;
    for (n, period, burst) in [
        (10, SECOND, 25),
        (1, SECOND, 100),
        (7, 13, 40),
        (97, 60 * SECOND, 97),
        (3, DAY, 1 << 30),
        (200, YEAR, 16),
    ] {
        for greedy in ["", " greedy"] {
            let text = format!("intervals {n}/{period}ns burst {burst}{greedy}");
            let Ok(whole) = text.parse::<AnyAlgorithm>() else {
                continue;
            };
            splits += bursts_add_up(&whole);
            for split in splits_of(&whole) {
                for refills in 0..=(burst / n + 2).min(400) {
                    // The quanta of greedy intervals are less than a 64th of a period.
                    let now = tick(refills * period + (period / 32).min(period - 1));
                    let there = |bucket: &AnyAlgorithm| {
                        let drained = bucket.take_up_to(0, Tick::ZERO, u64::MAX).0;
                        bucket.available(drained, now)
                    };
                    let right = there(&whole);
                    assert_eq!(right, (refills * n).min(burst));
                    let there = split.in_permits(there(&split.part));
                    assert_eq!(there, right, "{text} in {}", split.of);
                }
            }
        }
    }
    assert!(splits > 40, "{splits}");
}

/// The shards of all other algorithms begin their periods together.
#[test]
fn only_first_hit_and_greedy_periods_begin_with_a_permit() {
    for algorithm in algorithms() {
        let text = algorithm.to_string();
        let begins = text.ends_with("first-hit") || text.ends_with("greedy");
        assert_eq!(algorithm.begins_with_a_permit(), begins, "{text}");
    }
    let aligned = Intervals::new(Quota::per_minute(3)).expect("it fits");
    assert!(!aligned.begins_with_a_permit());
    assert!(aligned.greedy().expect("it fits").begins_with_a_permit());
    let bucket = TokenBucket::new(Quota::per_minute(3)).expect("it fits");
    assert!(!bucket.begins_with_a_permit());
}
