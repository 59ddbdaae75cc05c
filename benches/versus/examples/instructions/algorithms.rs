//! The rows of the algorithms other than the bucket and GCRA: each with the system clock and at a
//! given tick, allowed and denied. Some rows repeat an algorithm as [`AnyAlgorithm`].

use tollgate::algorithm::Gauge;
use tollgate::{
    AnyAlgorithm, FixedWindow, Intervals, LeakyBucket, Limiter, Quota, SlidingWindow, Tick,
};

use crate::counted::{counted_delay_at, counted_level_at, counted_remaining_at, counted_retry_at};
use crate::{Row, at_tick, started, times, with_clock};

/// Returns a quota that does not run dry within a run and fits every word layout. [`dry`] runs dry
/// with the first permit.
fn wide() -> Quota {
    Quota::per_minute(500_000)
}

fn dry() -> Quota {
    Quota::per_day(1)
}

fn meter(quota: Quota) -> LeakyBucket {
    LeakyBucket::meter(quota).expect("a quota that fits")
}

fn queue(quota: Quota) -> LeakyBucket {
    LeakyBucket::queue(quota).expect("a quota that fits")
}

pub(crate) fn fixed(quota: Quota) -> FixedWindow {
    FixedWindow::new(quota).expect("a quota that fits")
}

fn first_hit(quota: Quota) -> FixedWindow {
    let window = fixed(quota).opened_by_first_hit();
    window.expect("a quota that fits")
}

fn sliding(quota: Quota) -> SlidingWindow {
    SlidingWindow::new(quota).expect("a quota that fits")
}

fn intervals(quota: Quota) -> Intervals {
    Intervals::new(quota).expect("a quota that fits")
}

fn greedy(quota: Quota) -> Intervals {
    let bucket = intervals(quota).greedy();
    bucket.expect("a quota that fits")
}

fn any(algorithm: impl Into<AnyAlgorithm>) -> AnyAlgorithm {
    std::hint::black_box(algorithm.into())
}

/// Returns a tick within the third window.
fn later() -> Tick {
    std::hint::black_box(Tick::from_nanos(200_000_123_456_789))
}

/// The four rows of an algorithm.
macro_rules! rows {
    ($($name:literal: $make:expr),* $(,)?) => {
        &[$(
            (concat!($name, "-allowed"), |count| {
                with_clock(($make)(wide()), tollgate::clock::SystemClock, true, count)
            }),
            (concat!($name, "-denied"), |count| {
                with_clock(($make)(dry()), tollgate::clock::SystemClock, false, count)
            }),
            (concat!($name, "-at-allowed"), |count| at_tick(($make)(wide()), later(), true, count)),
            (concat!($name, "-at-denied"), |count| at_tick(($make)(dry()), later(), false, count)),
        )*]
    };
}

pub(crate) static EACH: &[Row] = rows! {
    "meter": meter,
    "queue": queue,
    "fixed": fixed,
    "first-hit": first_hit,
    "sliding": sliding,
    "intervals": intervals,
    "greedy": greedy,
    "any-bucket": |quota| any(crate::bucket(quota)),
    "any-fixed": |quota| any(fixed(quota)),
    "any-sliding": |quota| any(sliding(quota)),
};

/// Reading fields of an answer costs extra.
pub(crate) static READ: &[Row] = &[
    ("queue-at-delay", |count| {
        let (limiter, now) = (started(queue(wide())), later());
        times(count, || counted_delay_at(&limiter, now).is_some())
    }),
    ("fixed-at-remaining", |count| {
        let (limiter, now) = (started(fixed(wide())), later());
        times(count, || counted_remaining_at(&limiter, now) < 500_000)
    }),
    ("sliding-at-remaining", |count| {
        let (limiter, now) = (started(sliding(wide())), later());
        times(count, || counted_remaining_at(&limiter, now) < 500_000)
    }),
    ("fixed-at-retry-after", |count| {
        let limiter = started(fixed(dry()));
        assert!(limiter.at(later()).try_acquire().is_ok());
        times(count, || counted_retry_at(&limiter, later()).is_some())
    }),
    ("sliding-at-retry-after", |count| {
        let limiter = started(sliding(dry()));
        assert!(limiter.at(later()).try_acquire().is_ok());
        times(count, || counted_retry_at(&limiter, later()).is_some())
    }),
    ("sliding-at-level", |count| level(sliding(wide()), count)),
    ("meter-at-level", |count| level(meter(wide()), count)),
];

fn level<A: Gauge>(algorithm: A, count: u64) -> u64 {
    let (limiter, now): (Limiter<A, _>, _) = (started(algorithm), later());
    assert!(limiter.at(now).try_acquire().is_ok());
    times(count, || counted_level_at(&limiter, now) == 1)
}
