//! The parts' bounds add up to exactly the whole's: on the numbers, of quotas that do not come out even.

use std::time::Duration;

use tollgate::{
    Algorithm, AnyAlgorithm, ConfigError, Debt, FixedWindow, Gcra, Intervals, LeakyBucket, Quota,
    Requota, Rounding, SlidingWindow, Split, Tick, TokenBucket,
};

use crate::support::random::Random;

const SECOND: u64 = 1_000_000_000;
const YEAR: u64 = 365 * 86_400 * SECOND;

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
fn adversaries() -> Vec<Quota> {
    vec![
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
        largest(per_ns(11, 86_400 * SECOND + 1)),
        largest(Quota::per_second(13)),
        largest(Quota::per_second(1)),
        per_ns(999_999_999_999_999_989, 9_999_999_999_999_999_961).burst(1000),
    ]
}

/// All the parts of it, as far as it can be split, into a few numbers of them.
fn splits_of<A: Split>(whole: &A) -> Vec<Vec<A>> {
    let all = |of: u64| {
        (0..of)
            .map(|i| whole.part(i, of))
            .collect::<Option<Vec<_>>>()
    };
    let most = whole.most_parts();
    let splits = [2, 3, 4, 7, 13, 16, 97, 256].into_iter();
    splits.filter(|of| *of <= most).filter_map(all).collect()
}

/// What is there at once is shared out, to the last permit.
fn bursts_add_up<A: Split + Requota>(whole: &A) -> usize {
    let splits = splits_of(whole);
    for parts in &splits {
        for now in [0, 12_345, 50 * YEAR].map(Tick::from_nanos) {
            let sum = |word: &dyn Fn(&A) -> u64| -> u64 {
                parts
                    .iter()
                    .map(|part| part.available(word(part), now))
                    .sum()
            };
            assert_eq!(sum(&|_| 0), whole.available(0, now));
            let (least, most) = parts.iter().fold((u64::MAX, 0), |(least, most), part| {
                let there = part.available(0, now);
                (least.min(there), most.max(there))
            });
            assert!(least > 0 && most > 0);
            // So is what there is at first. (Where a rate is not exact the last one of each is there a
            // nanosecond later.)
            let initial = sum(&|part| part.initial_word(now));
            let right = whole.quota().initial_permits();
            assert!(initial <= right, "{initial} and {right}");
            assert!(right - initial <= parts.len() as u64);
        }
    }
    splits.len()
}

/// When `k` permits are there after a fresh one was drained at `start` and charged so much that none of them
/// was there before.
fn due<A: Split + Debt>(algorithm: &A, start: Tick, k: u64) -> Option<u64> {
    let burst = algorithm.available(0, start);
    let (word, charged) = algorithm.charge(0, start, burst + k - 1);
    (charged.n() == burst + k - 1).then_some(())?;
    Some(algorithm.due(word, start, 1)?.as_nanos() - start.as_nanos())
}

/// A part's permits come at exactly the `of`-th part of the rate: `k` of them need `k * of * period / n`, to the
/// nanosecond at which the whole's own rate is kept, for decades. That it is a rational is what makes the sum
/// of the parts' rates the rate.
fn rates_add_up<A: Split + Debt + Requota>(whole: &A, less: u64) -> u32 {
    let quota = whole.quota();
    let (n, period) = (u128::from(quota.permits()), quota.period().as_nanos());
    let mut checked = 0;
    for parts in splits_of(whole) {
        let of = parts.len() as u128;
        for (index, part) in parts.iter().enumerate() {
            let mut random = Random(index as u64);
            // What the whole has beyond its whole permits is with the first part.
            let less = if index == 0 { u128::from(less) * of } else { 0 };
            for start in [0, 7 * YEAR] {
                for _ in 0..8 {
                    // Up to forty years of permits.
                    let most = u128::from(40 * YEAR) * n / period / of;
                    let k = 1 + random.upto(u64::try_from(most).unwrap_or(u64::MAX));
                    let Some(due) = due(part, Tick::from_nanos(start), k) else {
                        continue;
                    };
                    let right = (u128::from(k) * of * period).div_ceil(n) - less;
                    let late = u128::from(due).checked_sub(right);
                    assert!(
                        late.is_some_and(|late| late <= 1),
                        "{quota}, {index} of {of}: {due}, {right}"
                    );
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
        let (bucket, gcra, meter) = (
            TokenBucket::new(quota).expect("a bucket"),
            Gcra::new(quota).expect("a gcra"),
            LeakyBucket::meter(quota).expect("a meter"),
        );
        splits += bursts_add_up(&bucket) + bursts_add_up(&gcra) + bursts_add_up(&meter);
        checked += rates_add_up(&bucket, 0) + rates_add_up(&gcra, 0) + rates_add_up(&meter, 0);
        for initial in [0, 1, quota.burst_size() / 2, quota.burst_size() - 1] {
            let bucket = TokenBucket::new(quota.initial(initial)).expect("a bucket");
            splits += bursts_add_up(&bucket);
        }
    }
    println!("{splits} splits, {checked} permits");
    assert!(splits > 300 && checked > 5000, "{splits} and {checked}");
}

/// What a tolerance has beyond whole permits is not lost: the first part has it, times as many as there are.
#[test]
fn an_uneven_tolerance_is_shared_out_as_well() {
    let mut checked = 0;
    for (interval, tolerance) in [
        (10_000_000, 25_000_000),
        (10_000_000, 99_999_999),
        (SECOND, 6 * SECOND + 1),
        (7, 100),
        (YEAR, 3 * YEAR + 12_345),
        (86_400 * SECOND, 4_217_172_818_427_387_903),
    ] {
        let [long, short] = [interval, tolerance].map(Duration::from_nanos);
        let gcra = Gcra::from_interval(long, short).expect("a gcra");
        assert!(bursts_add_up(&gcra) > 0);
        checked += rates_add_up(&gcra, tolerance % interval);
    }
    assert!(checked > 500, "{checked}");
}

/// Windows share out their permits, and each part is such a window: at the same time, of the same length.
#[test]
fn the_parts_of_windows_add_up() {
    let quotas = [
        Quota::per_second(2),
        Quota::per_second(1000),
        Quota::per_day(97),
        per_ns(3, 5),
        per_ns(65_535, SECOND),
        per_ns(200, 3 * YEAR),
    ];
    let mut splits = 0;
    for quota in quotas {
        let windows = FixedWindow::new(quota).expect("windows");
        let window = SlidingWindow::new(quota).expect("a window");
        let offset = Duration::from_nanos(3);
        let all: [AnyAlgorithm; 4] = [
            windows.offset(offset).into(),
            windows.opened_by_first_hit().expect("a quantum").into(),
            window.into(),
            window.rounding(Rounding::Down).offset(offset).into(),
        ];
        for whole in all {
            splits += bursts_add_up(&whole);
            for parts in splits_of(&whole) {
                ends_are_the_same(&whole, &parts);
            }
        }
    }
    assert!(splits > 60, "{splits}");
}

/// All parts are as good as new when the whole is, and not before.
fn ends_are_the_same(whole: &AnyAlgorithm, parts: &[AnyAlgorithm]) {
    let period = whole.quota().period().as_nanos() as u64;
    for start in [0, 1, period - 1, period, 5 * period / 2] {
        let tick = Tick::from_nanos(start);
        let new = |algorithm: &AnyAlgorithm| {
            let all = algorithm.available(0, tick);
            let (_, granted) = algorithm.step(0, tick, all).expect("fresh");
            (granted.at(), granted.reset_after())
        };
        for part in parts {
            let ((at, part), (same, whole)) = (new(part), new(whole));
            // A period that begins with a permit begins at a multiple of the part's own quantum.
            let off = part.abs_diff(whole);
            assert!(
                off <= Duration::from_nanos(1 + period / 64),
                "{part:?} and {whole:?}"
            );
            assert!(at >= tick && same >= tick);
        }
    }
}

/// Intervals share out each refill as well, also where that is no whole number of permits.
#[test]
fn the_parts_of_intervals_add_up() {
    let mut splits = 0;
    for (n, period, burst) in [
        (10, SECOND, 25),
        (1, SECOND, 100),
        (7, 13, 40),
        (97, 60 * SECOND, 97),
        (3, 86_400 * SECOND, 1 << 30),
        (200, YEAR, 16),
    ] {
        let quota = per_ns(n, period).burst(burst);
        let aligned = Intervals::new(quota).expect("a bucket");
        for whole in [Some(aligned), aligned.greedy().ok()].into_iter().flatten() {
            splits += bursts_add_up(&whole);
            for parts in splits_of(&whole) {
                refills_add_up(&whole, &parts);
            }
        }
    }
    assert!(splits > 40, "{splits}");
}

/// After any number of refills the parts, drained at the beginning, have together what the whole has, but for
/// the permits that are not whole in a part yet.
fn refills_add_up(whole: &Intervals, parts: &[Intervals]) {
    let (n, burst) = (whole.quota().permits(), whole.quota().burst_size());
    let period = whole.quota().period().as_nanos() as u64;
    let drained = |bucket: &Intervals| bucket.take_up_to(0, Tick::ZERO, u64::MAX).0;
    let word = drained(whole);
    for refills in 0..=(burst / n + 2).min(400) {
        // The quanta of what is greedy are less than a 64th of a period.
        let now = Tick::from_nanos(refills * period + (period / 32).min(period - 1));
        let there: u64 = parts
            .iter()
            .map(|part| part.available(drained(part), now))
            .sum();
        let right = whole.available(word, now);
        assert_eq!(right, (refills * n).min(burst));
        assert!(
            there <= right && right - there < parts.len() as u64,
            "{there} and {right}"
        );
        if refills * n % parts.len() as u64 == 0 && refills * n < burst / 2 {
            // Then every part has whole permits only.
            let even = n % parts.len() as u64 == 0 || !format!("{whole:?}").contains("Greedy");
            assert!(!even || there == right, "{there} and {right}");
        }
    }
}
