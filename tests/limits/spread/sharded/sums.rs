//! The parts' bounds add up to exactly the whole's: on the numbers, of quotas that do not come out
//! even.

use std::time::Duration;

use tollgate::{
    Algorithm, AnyAlgorithm, ConfigError, Debt, Forecast, Gcra, LeakyBucket, Quota, Requota, Split,
    Tick, TokenBucket,
};

use crate::spread::read;
use crate::support::random::Random;

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;
const YEAR: u64 = 365 * DAY;

fn per_ns(n: u64, period_ns: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(period_ns))
}

/// The quota with the largest burst that fits.
fn largest(quota: Quota) -> Quota {
    match TokenBucket::new(quota.burst(u64::MAX)) {
        Err(ConfigError::BurstTooLarge { max, .. }) => quota.burst(max),
        other => panic!("{quota} takes a burst of everything: {other:?}"),
    }
}

/// Rates at every edge.
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

/// All the parts of it, as far as it can be split, into a few numbers of them.
fn splits_of(whole: &AnyAlgorithm) -> Vec<Vec<AnyAlgorithm>> {
    let all = |of: u64| (0..of).map(|i| whole.part(i, of)).collect();
    let numbers = [1, 2, 3, 4, 7, 13, 16, 97, 256].into_iter();
    let numbers = numbers.filter(|of| *of <= whole.most_parts());
    numbers.filter_map(all).collect()
}

/// What is there at once is shared out, to the last permit. How many splits were checked.
fn bursts_add_up(whole: &AnyAlgorithm) -> usize {
    let splits = splits_of(whole);
    for parts in &splits {
        for now in [0, 12_345, 50 * YEAR].map(Tick::from_nanos) {
            let fresh = parts.iter().map(|part| part.available(0, now));
            assert_eq!(fresh.clone().sum::<u64>(), whole.available(0, now));
            assert!(fresh.min() > Some(0));
            // So is what there is at first. (Where a rate is not exact the last permit of each part
            // is there a nanosecond later.)
            let first = parts
                .iter()
                .map(|part| part.available(part.initial_word(now), now));
            let (first, right) = (first.sum::<u64>(), whole.quota().initial_permits());
            assert!(first <= right && right - first <= parts.len() as u64);
        }
    }
    splits.len()
}

/// When `k` permits are there after a fresh one was drained at `start` and charged so much that
/// none of them was there before.
fn due(algorithm: &AnyAlgorithm, start: Tick, k: u64) -> Option<u64> {
    let all = algorithm.available(0, start) + k - 1;
    let (word, charged) = algorithm.charge(0, start, all);
    (charged.n() == all).then_some(())?;
    Some(algorithm.due(word, start, 1)?.as_nanos() - start.as_nanos())
}

/// A part's permits come at exactly the `of`-th part of the rate: `k` of them need `k * of * period
/// / n`, to the nanosecond at which the whole's own rate is kept, for decades. That it is a
/// rational is what makes the sum of the parts' rates the rate. `beyond` is what the whole has
/// beyond its whole permits, which is with the first part.
fn rates_add_up(whole: &AnyAlgorithm, beyond: u64) -> u32 {
    let quota = whole.quota();
    let (n, period) = (u128::from(quota.permits()), quota.period().as_nanos());
    let mut checked = 0;
    for parts in splits_of(whole) {
        let of = parts.len() as u128;
        // Up to forty years of permits.
        let most = u128::from(40 * YEAR) * n / period / of;
        for (index, part) in parts.iter().enumerate() {
            let mut random = Random(index as u64);
            let beyond = if index == 0 {
                u128::from(beyond) * of
            } else {
                0
            };
            for start in [0, 7 * YEAR].map(Tick::from_nanos) {
                for _ in 0..4 {
                    let k = 1 + random.upto(u64::try_from(most).unwrap_or(u64::MAX));
                    let Some(due) = due(part, start, k) else {
                        continue;
                    };
                    let right = (u128::from(k) * of * period).div_ceil(n) - beyond;
                    let late = u128::from(due).checked_sub(right);
                    let of = format!("{quota}, {index} of {of}");
                    assert!(late.is_some_and(|late| late <= 1), "{of}: {due}, {right}");
                    checked += 1;
                }
            }
        }
    }
    checked
}

#[test]
fn the_parts_of_buckets_add_up() {
    let (mut splits, mut checked) = (0, 0);
    for quota in adversaries() {
        let buckets: [AnyAlgorithm; 3] = [
            TokenBucket::new(quota).expect("a bucket").into(),
            Gcra::new(quota).expect("a gcra").into(),
            LeakyBucket::meter(quota).expect("a meter").into(),
        ];
        for bucket in buckets {
            splits += bursts_add_up(&bucket);
            checked += rates_add_up(&bucket, 0);
        }
        for initial in [0, 1, quota.burst_size() / 2, quota.burst_size() - 1] {
            let bucket = TokenBucket::new(quota.initial(initial)).expect("a bucket");
            splits += bursts_add_up(&bucket.into());
        }
    }
    assert!(splits > 300 && checked > 5000, "{splits} and {checked}");
}

/// What a tolerance has beyond whole permits is not lost: the first part has it, times as many as
/// there are.
#[test]
fn an_uneven_tolerance_is_shared_out_as_well() {
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
        checked += rates_add_up(&gcra, tolerance % interval);
    }
    assert!(checked > 300, "{checked}");
}

/// Windows share out their permits, and each part is such a window: at the same time, of the same
/// length.
#[test]
fn the_parts_of_windows_add_up() {
    let mut splits = 0;
    for quota in ["2/s", "1000/s", "97/d", "3/5ns", "65535/s", "200/1095d"] {
        for kind in [
            "fixed-window QUOTA offset 3ns",
            "fixed-window QUOTA first-hit",
            "sliding-window QUOTA",
            "sliding-window QUOTA offset 3ns rounding down",
        ] {
            let whole = read(&kind.replace("QUOTA", quota));
            splits += bursts_add_up(&whole);
            for parts in splits_of(&whole) {
                ends_are_the_same(&whole, &parts);
            }
        }
    }
    assert!(splits > 60, "{splits}");
}

/// All parts are as good as new when the whole is, and not before. A period that begins with a
/// permit begins at a multiple of the part's own quantum.
fn ends_are_the_same(whole: &AnyAlgorithm, parts: &[AnyAlgorithm]) {
    let period = whole.quota().period().as_nanos() as u64;
    for start in [0, 1, period - 1, period, 5 * period / 2].map(Tick::from_nanos) {
        let new = |algorithm: &AnyAlgorithm| {
            let all = algorithm.available(0, start);
            let (_, granted) = algorithm.step(0, start, all).expect("fresh");
            assert!(granted.at() >= start);
            granted.reset_after()
        };
        for part in parts {
            let off = new(part).abs_diff(new(whole));
            let quantum = Duration::from_nanos(1 + period / 64);
            assert!(off <= quantum, "{part:?} and {whole:?}");
        }
    }
}

/// Intervals share out each refill as well, also where that is no whole number of permits. After
/// any number of refills the parts, drained at the beginning, have together what the whole has, but
/// for the permits that are not whole in a part yet.
#[test]
fn the_parts_of_intervals_add_up() {
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
            for parts in splits_of(&whole) {
                for refills in 0..=(burst / n + 2).min(400) {
                    // The quanta of what is greedy are less than a 64th of a period.
                    let now = Tick::from_nanos(refills * period + (period / 32).min(period - 1));
                    let there = |bucket: &AnyAlgorithm| {
                        let drained = bucket.take_up_to(0, Tick::ZERO, u64::MAX).0;
                        bucket.available(drained, now)
                    };
                    let (right, of) = (there(&whole), parts.len() as u64);
                    let there: u64 = parts.iter().map(there).sum();
                    assert_eq!(right, (refills * n).min(burst));
                    // Where every part has whole permits only, none is missing.
                    let is_even = (n % of == 0 || greedy.is_empty())
                        && refills * n % of == 0
                        && refills * n < burst / 2;
                    let missing = if is_even { 0 } else { of - 1 };
                    let few = right.saturating_sub(missing);
                    assert!(
                        (few..=right).contains(&there),
                        "{text} in {of}: {there}, {right}"
                    );
                }
            }
        }
    }
    assert!(splits > 40, "{splits}");
}
