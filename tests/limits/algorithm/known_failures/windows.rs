//! Failures of other limiters' windows.

use crate::algorithm::known_failures::{INTERVALS, WINDOWS, limiters};
use crate::support::*;

/// axum_gcra: N at first, N + 1 after idling. Tested here with permits that come all at once. A
/// window that was idle has the permits of one window, not of two.
#[test]
fn idle_windows_and_refills_accumulate_nothing() {
    for limiter in limiters(&[&WINDOWS, &INTERVALS], "10/s") {
        let mut now = 0;
        for idle in [2, 3, 17, 1000, 1_000_000] {
            for part in [0, 1, SECOND / 2, SECOND - 1] {
                now += idle * SECOND + part;
                // A refill by the clock may come in the same second.
                now -= now % SECOND;
                let actual = limiter.count(30, now);
                assert_eq!(actual, 10, "{limiter:?} after {idle} s and {part} ns");
                assert_eq!(limiter.count(30, now + SECOND - 1), 0, "{limiter:?}");
            }
        }
    }
}

/// Zuul sets a counter's expiry after the first increment. A process that dies in between leaves a
/// window that never ends. Here one word holds both.
#[test]
fn an_open_window_always_ends() {
    for limiter in limiters(&[&WINDOWS], "10/s") {
        for now in [1, 7, 70, 1000].map(|second| tick(second * SECOND)) {
            let now = limiter.0.at(now);
            assert!(now.take_up_to(u64::MAX).n() > 0, "{limiter:?}");
            let [one, all] = [1, 10].map(|n| now.time_until(n).expect("it ends"));
            assert!(
                !one.is_zero() && one <= all && all.as_secs() <= 2,
                "{all:?}: {limiter:?}"
            );
        }
    }
}
