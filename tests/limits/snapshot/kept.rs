//! A restored limiter decides as one that never stopped.

use tollgate::store::View;

use super::{One, on};
use crate::algorithm::rounding::{KINDS, inexact};
use crate::support::algorithms::is_bucket;
use crate::support::forged::with_number;
use crate::support::*;

/// Returns a tick that is later by at most a maximum: often a fraction of a period, sometimes an
/// odd number.
fn later(random: &mut Random, now: Tick, algorithm: &AnyAlgorithm) -> Tick {
    let period = algorithm.quota().period().as_nanos() as u64;
    let by = match random.below(4) {
        0 => 0,
        1 => random.upto(2 * period),
        2 => period / (1 + random.below(10)),
        _ => random.upto(period / algorithm.quota().permits()),
    };
    now.saturating_add(Duration::from_nanos(by))
}

/// Takes or charges some permits.
fn use_some(random: &mut Random, one: &One, algorithm: &AnyAlgorithm, now: Tick) {
    let most = algorithm.quota().burst_size();
    let n = 1 + random.upto(most.saturating_sub(1));
    match random.below(8) {
        0 => _ = on!(one, now, |view| view.charge(random.upto(n))),
        1 => _ = on!(one, now, |view| view.take_up_to(most)),
        _ => _ = on!(one, now, |view| view.try_acquire_n(n)),
    }
}

/// Uses it `least` times or up to eleven times more. Returns the tick after the last.
fn used(random: &mut Random, one: &One, algorithm: &AnyAlgorithm, least: u64) -> Tick {
    let mut now = tick(random.upto(YEAR));
    for _ in 0..least + random.below(12) {
        use_some(random, one, algorithm, now);
        now = later(random, now, algorithm);
    }
    now
}

/// Returns what is visible of a decision and of the rest, except for the tick.
fn seen<S: tollgate::store::Store<Algorithm = AnyAlgorithm>>(view: &View<S>, n: u64) -> String {
    let decided = view.try_acquire_n(n).map(|granted| {
        let (delay, reset) = (granted.delay(), granted.reset_after());
        (granted.n(), granted.remaining(), delay, reset)
    });
    let (available, level) = (view.available(), view.level());
    format!(
        "{decided:?}, {available}, {level:?}, {:?}",
        view.time_until(n)
    )
}

/// Runs each kind, saves it at a random tick, restores it after a random pause on a clock that
/// shows `on_clock(now, period)`, and compares it with the original.
fn compared(seed: u64, on_clock: impl Fn(&mut Random, u64, u64) -> u64) {
    let mut random = Random(seed);
    for algorithm in algorithms() {
        let period = algorithm.quota().period().as_nanos() as u64;
        // If the interval is not a whole number of nanoseconds, it is rounded when its word is
        // moved. A first-hit window is rounded to its quantum.
        let text = algorithm.to_string();
        let is_exact = match is_bucket(&algorithm) {
            true => period.checked_rem(algorithm.quota().permits()) == Some(0),
            false => !text.ends_with("first-hit") && !text.ends_with("greedy"),
        };
        for make in One::kinds(&algorithm).flat_map(|make| [make; 40]) {
            let (kept, mut restored) = (make(algorithm), make(algorithm));
            let then = used(&mut random, &kept, &algorithm, 0);
            let bytes = kept.saved(then);
            let mut now = later(&mut random, then, &algorithm);
            let to = match is_exact {
                true => on_clock(&mut random, now.as_nanos(), period),
                false => now.as_nanos(),
            };
            let (from, to) = (now, tick(to));
            let on_clock = |now: Tick| to.saturating_add(now.saturating_since(from));
            // The state before the restore does not count.
            use_some(&mut random, &restored, &algorithm, on_clock(now));
            restored.restore(on_clock(now), &bytes, now.saturating_since(then));
            for turn in 0..12 {
                let n = 1 + random.upto(algorithm.quota().burst_size().saturating_sub(1));
                let wait = on!(&kept, now, |view| view.time_until(n));
                let due = now.max(on_clock(now));
                if due.saturating_add(wait.unwrap_or(Duration::MAX)) > tick(FIFTY_YEARS) {
                    // One of the clocks may end before that.
                    break;
                }
                let expected = on!(&kept, now, |view| seen(&view, n));
                let found = on!(&restored, on_clock(now), |view| seen(&view, n));
                assert_eq!(
                    found, expected,
                    "{algorithm}, turn {turn}, {from:?} is {to:?}"
                );
                now = later(&mut random, now, &algorithm);
            }
        }
    }
}

#[test]
fn what_is_restored_on_the_same_clock_decides_as_if_it_never_stopped() {
    compared(1, |_, now, _| now);
}

#[test]
fn what_is_restored_on_a_clock_that_differs_by_whole_periods_decides_as_if_it_never_stopped() {
    compared(2, |random, now, period| {
        now % period + period * random.below(3 * YEAR / period)
    });
}

#[test]
fn what_is_restored_on_any_clock_has_no_more_permits() {
    let (mut random, mut early, mut late) = (Random(3), 0, 0);
    let rounded: Vec<_> = [KINDS; 4]
        .iter()
        .flatten()
        .map(|kind| inexact(kind, &mut random))
        .collect();
    for algorithm in algorithms().into_iter().chain(rounded) {
        for make in One::kinds(&algorithm).flat_map(|make| [make; 200]) {
            let (kept, mut restored) = (make(algorithm), make(algorithm));
            let then = used(&mut random, &kept, &algorithm, 1);
            let now = later(&mut random, then, &algorithm);
            let to = tick(random.upto(3 * YEAR));
            restored.restore(to, &kept.saved(then), now.saturating_since(then));
            let n = 1 + random.upto(algorithm.quota().burst_size().saturating_sub(1));
            let asked =
                |one: &One, now| on!(one, now, |view| (view.available(), view.time_until(n)));
            let ((had, was), (has, is)) = (asked(&kept, now), asked(&restored, to));
            assert!(has <= had, "{algorithm}: {has} of {had}");
            if let (Some(was), Some(is), true) = (was, is, is_bucket(&algorithm)) {
                // The tick may be the one before or after, if the fractions of the two clocks
                // differ. Intervals of whole nanoseconds have none.
                let quota = algorithm.quota();
                let rest = quota.period().as_nanos() % u128::from(quota.permits());
                let off = Duration::from_nanos(u64::from(rest > 0));
                assert!(
                    was <= is + off && is <= was + off,
                    "{algorithm}: {is:?}, {was:?}"
                );
                early += u64::from(is < was);
                late += u64::from(is > was);
            }
        }
    }
    assert!(early > 0 && late > 0, "nothing was rounded");
}

/// The common daily limit. The next process's clock starts at another time of day.
#[test]
fn a_daily_utc_window_continues_after_a_restart_and_ends_at_midnight() {
    let hour = |hour: u64| Duration::from_secs(hour * 3600);
    let at = |hours: u64| Tick::ZERO.saturating_add(hour(hours));
    let windows = |start: u64| {
        let daily = FixedWindow::new(Quota::per_day(10)).expect("a day");
        AnyAlgorithm::from(daily.aligned_to_unix(hour(start)))
    };
    for (start, make) in
        (0..48).flat_map(|start| [(start, One::limiter as fn(_) -> _), (start, One::key)])
    {
        for runs in [0, 1, 5, 23, 24, 47, 100] {
            let saved = make(windows(start));
            let taken = on!(&saved, at(runs), |view| view.try_acquire_n(7));
            assert!(taken.is_ok(), "a new day");
            let (saved_at, bytes) = (start + runs, saved.saved(at(runs)));
            for pause in 0..30 {
                let restarted_at = saved_at + pause;
                let mut next = make(windows(restarted_at));
                next.restore(at(0), &bytes, hour(pause));
                let is_next_day = saved_at / 24 < restarted_at / 24;
                let left = if is_next_day { 10 } else { 3 };
                let midnight = 24 - restarted_at % 24;
                for (after, left) in [(0, left), (midnight - 1, left), (midnight, 10)] {
                    let found = on!(&next, at(after), |view| view.available());
                    assert_eq!(found, left, "{start} {runs} {pause} {after}");
                }
            }
        }
    }
}

#[test]
fn the_time_of_day_measures_the_pause_and_a_backward_step_counts_as_none() {
    const TIME_OF_DAY: usize = 4 * 8;
    let bucket = tollgate::TokenBucket::new(Quota::per_hour(1).burst(100)).expect("a quota");
    let restored = |bytes: &[u8]| {
        let limiter = Limiter::with_clock(bucket, ManualClock::new());
        (limiter.restore(bytes).expect("whole"), limiter.available())
    };
    let limiter = Limiter::with_clock(bucket, ManualClock::new());
    limiter.try_acquire_n(60).expect("fresh");
    let bytes = limiter.snapshot();
    assert!(bytes[TIME_OF_DAY..TIME_OF_DAY + 8] != [0; 8]);
    // It was saved in 1970 with 60 permits taken. All are available by now.
    let (elapsed, available) = restored(&with_number(&bytes, TIME_OF_DAY, 1));
    assert!(elapsed.as_secs() > 365 * 86_400 && available == 100);
    // Saved in the far future, or at an unknown time.
    for time_of_day in [u64::MAX, 0] {
        let bytes = with_number(&bytes, TIME_OF_DAY, time_of_day);
        assert_eq!(restored(&bytes), (Duration::ZERO, 40));
    }
}
