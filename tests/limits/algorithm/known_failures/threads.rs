//! Failures of other limiters with concurrent threads.

use crate::algorithm::known_failures::{INTERVALS, Tested, WINDOWS, both, limiters};
use crate::support::*;

/// Runs `work` on several threads at once, and returns the sum.
fn on_threads(
    limiter: Tested,
    threads: u64,
    work: impl Fn(&Tested, u64) -> u64 + Send + Sync + 'static,
) -> (u64, Tested) {
    deadline("threads that ask a limiter", move || {
        let granted = threads::on_threads(0..threads, |id| work(&limiter, id));
        (granted.into_iter().sum(), limiter)
    })
}

/// pingora-limits: 11 to 15 of 16 threads panicked in the first second, when the time since the
/// start was negative.
#[test]
fn threads_at_the_start_of_a_clock_are_answered() {
    // The threads' clocks differ by a few moments, and some are before the start.
    let [limiter, _] = both(Quota::per_day(500));
    let (granted, limiter) = on_threads(limiter, 16, |limiter, id| {
        let now = tick(SECOND).saturating_sub(Duration::from_millis(id * 100));
        let take = |_| limiter.0.at(now).take_up_to(1).n() + limiter.0.at(now).take_up_to(0).n();
        (0..100).map(take).sum()
    });
    // The last permit is not for callers whose tick is before the first one's.
    let rest = limiter.0.at(tick(SECOND)).take_up_to(1000);
    assert_eq!(granted + rest.n(), 500);
    // From the clock's first tick, with windows that began before it.
    for limiter in limiters(
        &[&WINDOWS[..1], &WINDOWS[2..3], &INTERVALS[..1]],
        "500/d origin 86399s",
    ) {
        let (granted, limiter) = on_threads(limiter, 16, |limiter, id| limiter.count(100, id / 8));
        assert_eq!(granted, 500, "{limiter:?}");
    }
}

/// Sentinel: a slot of the LeapArray is checked and added to separately, and reset by the first
/// caller in a new window. Counts of the old window were lost or counted in the new one.
#[test]
fn threads_on_both_sides_of_a_window_boundary_get_the_limit_of_each() {
    for edge in (1..20).map(|second| second * SECOND) {
        let [limiter] = <[Tested; 1]>::try_from(limiters(&[&WINDOWS[..1]], "1000/s")).expect("one");
        // Half of the threads are a nanosecond before the boundary, and may find the word past it.
        let (before, limiter) = on_threads(limiter, 8, move |limiter, id| {
            let granted = (0..500).filter_map(|_| limiter.take(1, edge - id % 2).ok());
            granted.filter(|granted| granted.at() < tick(edge)).count() as u64
        });
        assert!(before <= 1000, "{before}");
        // 4000 requests, 2000 of them after the boundary. Permits counted before it are not counted
        // after it.
        assert_eq!(limiter.0.at(tick(edge)).available(), 0);
    }
}
