//! The limits that are tried, each beside its model: of every length and size, at the edges of what fits
//! and anywhere between.

use std::time::Duration;

use tollgate::{FixedWindow, Intervals, LeakyBucket, Quota, Rounding, SlidingWindow};

use crate::windows::budget::{self, FIFTY_YEARS};
use crate::windows::first::FirstHit;
use crate::windows::fixed::Fixed;
use crate::windows::intervals::Refilled;
use crate::windows::leaky::Leaky;
use crate::support::random::Random;
use crate::windows::sliding::Sliding;

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;
const YEAR: u64 = 365 * DAY;

/// Each algorithm beside its model, and how many permits it lacks at first.
type Cases<A, M> = Vec<(A, (M, u64))>;

fn per_ns(n: u64, period_ns: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(period_ns))
}

/// Windows of every length, and what some of them are filled with; 0 stands for as much as fits.
const SHAPES: [(u64, u64); 18] = [
    (1, 1),
    (5, 3),
    (1, 64),
    (3, 97),
    (7, 1_000),
    (10, SECOND),
    (100, SECOND),
    (0, SECOND),
    (999, 999_999_937),
    (1000, 60 * SECOND),
    (0, 60 * SECOND),
    (12, 3600 * SECOND),
    (1_000, DAY),
    (0, DAY),
    (2, 30 * DAY + 1),
    (9, 9 * YEAR - 1),
    (51, FIFTY_YEARS - 1),
    (0, FIFTY_YEARS),
];

/// These shapes, and any others. `largest` is the most that fits a period.
fn shapes(seed: u64, largest: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
    let mut random = Random(seed);
    // No rate may be above 10 a nanosecond, or below one a year.
    let most = |period: u64| largest(period).min(period.saturating_mul(10));
    let named = SHAPES.map(|(n, period)| (if n == 0 { most(period) } else { n }, period));
    let mut shapes: Vec<_> = named.into();
    while shapes.len() < 40 {
        let period = 1 + random.upto(FIFTY_YEARS - 1);
        let n = 1 + random.upto(most(period).saturating_sub(1));
        if period <= n.saturating_mul(YEAR) {
            shapes.push((n, period));
        }
    }
    shapes.retain(|(n, period)| *n <= most(*period));
    shapes
}

/// When windows begin: at the clock's start, later, or at those of another time.
fn alignment(random: &mut Random, period: u64) -> (Duration, Duration) {
    let offset = match random.below(4) {
        0 => 0,
        1 => random.upto(period),
        2 => period - 1,
        _ => random.upto(u64::MAX),
    };
    let origin = match random.below(3) {
        0 => random.upto(57 * YEAR),
        _ => 0,
    };
    (Duration::from_nanos(origin), Duration::from_nanos(offset))
}

pub(crate) fn fixed() -> Cases<FixedWindow, Fixed> {
    let mut random = Random(1);
    let shapes = shapes(2, Fixed::largest).into_iter();
    let cases = shapes.map(|(n, period)| {
        let (origin, offset) = alignment(&mut random, period);
        let windows = FixedWindow::new(per_ns(n, period)).expect("windows");
        let model = Fixed::new(n, period, origin, offset);
        assert_eq!(windows.largest_debt(), model.largest_debt());
        // Without an origin, tick 0 is where its clock begins.
        let windows = match origin {
            Duration::ZERO => windows,
            origin => windows.aligned_to_unix(origin),
        };
        (windows.offset(offset), (model, 0))
    });
    cases.collect()
}

pub(crate) fn first_hit() -> Cases<FixedWindow, FirstHit> {
    let shapes = shapes(3, FirstHit::largest).into_iter();
    let cases = shapes.map(|(n, period)| {
        let windows = FixedWindow::new(per_ns(n, period)).expect("windows");
        let windows = windows.opened_by_first_hit().expect("a quantum");
        let model = FirstHit::new(n, period, None);
        assert_eq!(windows.largest_debt(), model.largest_debt());
        let quantum = Duration::from_nanos(model.quantum());
        assert_eq!(windows.quantum(), Some(quantum));
        (windows, (model, 0))
    });
    cases.collect()
}

pub(crate) fn sliding() -> Cases<SlidingWindow, Sliding> {
    let mut random = Random(4);
    let shapes = shapes(5, Sliding::largest).into_iter();
    let both = [Rounding::Exact, Rounding::Down];
    let shapes = shapes.flat_map(|shape| both.map(|rounding| (shape, rounding)));
    let cases = shapes.map(|((n, period), rounding)| {
        let alignment = alignment(&mut random, period);
        let window = SlidingWindow::new(per_ns(n, period)).expect("a window");
        let model = Sliding::new(n, period, rounding, alignment);
        assert_eq!(window.largest_debt(), model.largest_debt());
        let window = window.rounding(rounding).offset(alignment.1);
        let window = match alignment.0 {
            Duration::ZERO => window,
            origin => window.aligned_to_unix(origin),
        };
        (window, (model, 0))
    });
    cases.collect()
}

/// A burst beside these shapes: one, the same, more, or as much as there may be.
fn burst(random: &mut Random, n: u64, most: u64) -> u64 {
    let most = most.min(1 << 40);
    let burst = match random.below(5) {
        0 => 1,
        1 => n,
        2 => n + random.upto(5 * n),
        3 => 1 + random.upto(n),
        _ => most,
    };
    burst.clamp(1, most)
}

fn missing(random: &mut Random, burst: u64) -> u64 {
    match random.below(3) {
        0 => burst - random.upto(burst),
        _ => 0,
    }
}

pub(crate) fn intervals() -> Cases<Intervals, Refilled> {
    let mut random = Random(6);
    let needed = |period: u64| u128::from(FIFTY_YEARS / period) + 2;
    let largest = |period| {
        let fits = |n| needed(period) * u128::from(n) <= u128::from(u64::MAX - 3);
        budget::largest(fits)
    };
    let shapes = shapes(7, largest).into_iter();
    let cases = shapes.map(|(n, period)| {
        // What 50 years leave of the word is for a burst and as much debt.
        let room = u128::from(u64::MAX - 1) - needed(period) * u128::from(n);
        let burst = burst(&mut random, n, u64::try_from(room / 2).expect("a half"));
        let missing = missing(&mut random, burst);
        let quota = per_ns(n, period).burst(burst).initial(burst - missing);
        let alignment = alignment(&mut random, period);
        let bucket = Intervals::new(quota).expect("a bucket").offset(alignment.1);
        let bucket = match alignment.0 {
            Duration::ZERO => bucket,
            origin => bucket.aligned_to_unix(origin),
        };
        (
            bucket,
            (Refilled::new((n, burst), period, alignment), missing),
        )
    });
    cases.collect()
}

pub(crate) fn greedy() -> Cases<Intervals, FirstHit> {
    let mut random = Random(8);
    let shapes = shapes(9, FirstHit::largest).into_iter();
    let cases = shapes.map(|(n, period)| {
        let burst = burst(&mut random, n, FirstHit::largest(period));
        let missing = missing(&mut random, burst);
        let quota = per_ns(n, period).burst(burst).initial(burst - missing);
        let bucket = Intervals::new(quota).expect("a bucket");
        let bucket = bucket.greedy().expect("a quantum");
        let model = FirstHit::new(burst, period, Some(n));
        let quantum = Duration::from_nanos(model.quantum());
        assert_eq!(bucket.quantum(), Some(quantum));
        (bucket, (model, missing))
    });
    cases.collect()
}

/// Reduced, and with 11 permits at most, so that the bucket is exact: permits, period and burst.
const STEADY: [(u64, u64, u64); 16] = [
    (1, 1, 1),
    (1, 1, 1000),
    (1, SECOND, 1),
    (1, SECOND, 5),
    (1, 100_000_000, 3),
    (1, 1_000_000, 1000),
    (1, 60 * SECOND, 7),
    (1, DAY, 90_000),
    (1, YEAR, 3),
    (1, 999_999_937, 11),
    (2, 5, 100),
    (3, 1, 1000),
    (10, 1, 1 << 40),
    (7, 999_999_937, 4),
    (9, DAY + 1, 2),
    (11, SECOND + 7, 30),
];

pub(crate) fn meters() -> Cases<LeakyBucket, Leaky> {
    let mut random = Random(10);
    let cases = STEADY.map(|(n, period, burst)| {
        let missing = missing(&mut random, burst);
        let quota = per_ns(n, period).burst(burst).initial(burst - missing);
        let bucket = LeakyBucket::meter(quota).expect("a bucket");
        (bucket, (Leaky::new(n, period, burst, None), missing))
    });
    cases.into()
}

pub(crate) fn queues() -> Cases<LeakyBucket, Leaky> {
    let mut random = Random(11);
    let shapes = STEADY.into_iter().flat_map(|shape| [shape; 3]);
    let cases = shapes.map(|(n, period, burst)| {
        let free = match random.below(4) {
            0 => 0,
            1 => 1,
            2 => random.upto(burst),
            _ => random.upto(u64::MAX),
        };
        let missing = missing(&mut random, burst);
        let quota = per_ns(n, period).burst(burst).initial(burst - missing);
        let bucket = LeakyBucket::queue(quota).expect("a bucket").free(free);
        (bucket, (Leaky::new(n, period, burst, Some(free)), missing))
    });
    cases.collect()
}
