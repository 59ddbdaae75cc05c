//! The windows and intervals under test, each with its model. They have every length and size, at
//! the limits of what fits and anywhere in between.

use tollgate::algorithm::Rounding;

use crate::algorithm::counted::Counted;
use crate::algorithm::first::FirstHit;
use crate::algorithm::grid;
use crate::algorithm::quotas;
use crate::algorithm::refilled::Refilled;
use crate::support::*;

/// An algorithm with its model, and the number of permits that it lacks at first.
pub(crate) type Case<M> = (AnyAlgorithm, (M, u64));

/// Windows of every length, and the limits of some of them. 0 stands for the largest that fits.
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

/// Returns these shapes, and random others. `largest` is the most that fits in a period.
pub(crate) fn shapes(seed: u64, largest: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
    let mut random = Random(seed);
    // A rate must be at most 10 a nanosecond, and at least one a year.
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

/// The alignment of windows: tick 0 is `origin` after a window's start, and all windows are
/// `offset` later.
pub(crate) type Alignment = (Duration, Duration);

/// Returns an alignment at the clock's start, later, with the origin of another clock, or far
/// beyond all clocks.
fn alignment(random: &mut Random, period: u64) -> Alignment {
    let far = |random: &mut Random| Duration::new(random.upto(u64::MAX), random.below(999) as u32);
    let offset = match random.below(5) {
        0 => Duration::ZERO,
        1 => Duration::from_nanos(random.upto(period)),
        2 => Duration::from_nanos(period - 1),
        3 => Duration::from_nanos(random.upto(u64::MAX)),
        _ => far(random) / 2,
    };
    let origin = match random.below(4) {
        0 => Duration::from_nanos(random.upto(57 * YEAR)),
        1 => far(random),
        _ => Duration::ZERO,
    };
    (origin, offset)
}

/// Applies an alignment to the windows. Offsets add up.
macro_rules! aligned {
    ($windows:expr, $alignment:expr) => {{
        let (windows, (origin, offset)) = ($windows, $alignment);
        let windows = windows.offset(offset / 2).offset(offset - offset / 2);
        // Without an origin, windows start at the clock's tick 0.
        if origin.is_zero() {
            windows
        } else {
            windows.aligned_to_unix(origin)
        }
    }};
}

/// Returns the most permits that fit in a word with `counts` counts, for windows of a given length.
fn largest_count(counts: u32) -> impl Fn(u64) -> u64 {
    move |period| (1 << grid::counts(period, counts).0) - 1
}

pub(crate) fn fixed() -> Vec<Case<Counted>> {
    let mut random = Random(1);
    let cases = shapes(2, largest_count(1)).into_iter().map(|(n, period)| {
        let alignment = alignment(&mut random, period);
        let windows = FixedWindow::new(per_ns(n, period)).expect("windows");
        let model = Counted::new(n, period, None, alignment);
        assert_eq!(windows.largest_debt(), model.largest_debt());
        assert_eq!(windows.quantum(), None);
        (aligned!(windows, alignment).into(), (model, 0))
    });
    cases.collect()
}

pub(crate) fn sliding() -> Vec<Case<Counted>> {
    let mut random = Random(4);
    let shapes = shapes(5, largest_count(2)).into_iter();
    let both = [Rounding::Exact, Rounding::Down];
    let shapes = shapes.flat_map(|shape| both.map(|rounding| (shape, rounding)));
    let cases = shapes.map(|((n, period), rounding)| {
        let alignment = alignment(&mut random, period);
        let window = SlidingWindow::new(per_ns(n, period)).expect("a window");
        let model = Counted::new(n, period, Some(rounding), alignment);
        assert_eq!(window.largest_debt(), model.largest_debt());
        let window = aligned!(window.rounding(rounding), alignment);
        (window.into(), (model, 0))
    });
    cases.collect()
}

pub(crate) fn first_hit() -> Vec<Case<FirstHit>> {
    let shapes = shapes(3, FirstHit::largest).into_iter();
    let cases = shapes.map(|(n, period)| {
        let windows = FixedWindow::new(per_ns(n, period)).expect("windows");
        let windows = windows.opened_by_first_hit().expect("a quantum");
        let model = FirstHit::new(n, period, None);
        assert_eq!(windows.largest_debt(), model.largest_debt());
        let quantum = Duration::from_nanos(model.quantum());
        assert_eq!(windows.quantum(), Some(quantum));
        (windows.into(), (model, 0))
    });
    cases.collect()
}

/// Returns a burst for these shapes (one, the same, more, or the largest possible), and the number
/// of permits that the bucket lacks at first.
fn burst(random: &mut Random, n: u64, most: u64) -> (u64, u64) {
    let most = most.min(1 << 40);
    let burst = match random.below(5) {
        0 => 1,
        1 => n,
        2 => n + random.upto(5 * n),
        3 => 1 + random.upto(n),
        _ => most,
    };
    let burst = burst.clamp(1, most);
    let missing = match random.below(3) {
        0 => burst - random.upto(burst),
        _ => 0,
    };
    (burst, missing)
}

pub(crate) fn intervals() -> Vec<Case<Refilled>> {
    let mut random = Random(6);
    // The part of the word that is not needed for 50 years holds a burst and as much debt.
    let taken = |n: u64, period| grid::needed(period) * u128::from(n);
    let fits = |period| grid::largest(|n| taken(n, period) <= u128::from(u64::MAX - 3));
    let cases = shapes(7, fits).into_iter().map(|(n, period)| {
        let room = u128::from(u64::MAX - 1) - taken(n, period);
        let most = u64::try_from(room / 2).expect("a half");
        let (burst, missing) = burst(&mut random, n, most);
        let quota = per_ns(n, period).burst(burst).initial(burst - missing);
        let alignment = alignment(&mut random, period);
        let bucket = aligned!(Intervals::new(quota).expect("a bucket"), alignment);
        let model = Refilled::new(n, burst, period, alignment);
        (bucket.into(), (model, missing))
    });
    cases.collect()
}

pub(crate) fn greedy() -> Vec<Case<FirstHit>> {
    let mut random = Random(8);
    let shapes = shapes(9, FirstHit::largest).into_iter();
    let cases = shapes.map(|(n, period)| {
        let (burst, missing) = burst(&mut random, n, FirstHit::largest(period));
        let quota = per_ns(n, period).burst(burst).initial(burst - missing);
        let bucket = Intervals::new(quota).expect("a bucket").greedy();
        let bucket = bucket.expect("a quantum");
        let model = FirstHit::new(burst, period, Some(n));
        let quantum = Duration::from_nanos(model.quantum());
        assert_eq!(bucket.quantum(), Some(quantum));
        (bucket.into(), (model, missing))
    });
    cases.collect()
}

/// Returns the algorithms of all comparisons.
pub(crate) fn all() -> Vec<AnyAlgorithm> {
    fn of<M>(cases: Vec<Case<M>>) -> impl Iterator<Item = AnyAlgorithm> {
        cases.into_iter().map(|(algorithm, _)| algorithm)
    }
    let quotas = quotas::exact().into_iter().chain(quotas::elsewhere());
    let buckets = quotas.enumerate().map(|(i, quota)| match i % 5 {
        0 => LeakyBucket::meter(quota).map(AnyAlgorithm::from),
        1 => LeakyBucket::queue(quota).map(|queue| queue.free(i as u64 % 3).into()),
        2 => Gcra::new(quota).map(AnyAlgorithm::from),
        3 => TokenBucket::new(quota.initial(0)).map(AnyAlgorithm::from),
        _ => TokenBucket::new(quota).map(AnyAlgorithm::from),
    });
    let (ms, year) = (Duration::from_millis, Duration::from_nanos(YEAR));
    let tolerances = [(10, 25), (1000, 0), (7, 86_400_000)]
        .map(|(interval, tolerance)| Gcra::from_interval(ms(interval), ms(tolerance)));
    let tolerances = tolerances
        .into_iter()
        .chain([Gcra::from_interval(year, year / 3)]);
    let buckets = buckets.chain(tolerances.map(|gcra| gcra.map(AnyAlgorithm::from)));
    let windows = of(fixed()).chain(of(first_hit())).chain(of(sliding()));
    let intervals = of(intervals()).chain(of(greedy()));
    let buckets = buckets.map(|bucket| bucket.expect("a bucket"));
    buckets.chain(windows).chain(intervals).collect()
}
