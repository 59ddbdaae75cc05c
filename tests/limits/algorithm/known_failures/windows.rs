//! What went wrong in the windows of others.

use tollgate::Tick;

use crate::algorithm::known_failures::{INTERVALS, WINDOWS, limiters};
use crate::algorithm::quotas::SECOND;

/// axum_gcra: N at first, N + 1 after idling, where permits come all at once as well. A window that
/// was idle has one window's permits, and not those of two.
#[test]
fn idle_windows_and_refills_accumulate_nothing() {
    for limiter in limiters(&[&WINDOWS, &INTERVALS], "10/s") {
        let mut now = 0;
        for idle in [2, 3, 17, 1000, 1_000_000] {
            for part in [0, 1, SECOND / 2, SECOND - 1] {
                now += idle * SECOND + part;
                // A refill by the clock may come in the same second.
                now -= now % SECOND;
                assert_eq!(
                    limiter.count(30, now),
                    10,
                    "{limiter:?} after {idle} s and {part} ns"
                );
                assert_eq!(limiter.count(30, now + SECOND - 1), 0, "{limiter:?}");
            }
        }
    }
}

/// AspNetCoreRateLimit counts a request and then refuses it, as `limits` does with a moving window
/// that is hit too often: a caller that goes on asking is never let in again.
#[test]
fn denied_requests_do_not_count() {
    for limiter in limiters(&[&WINDOWS, &["fixed-window QUOTA origin 700ms"]], "10/s") {
        let mut granted = 0;
        // A hundred a second, all of them asking again and again.
        for now in (0..20 * SECOND).step_by(10_000_000) {
            granted += limiter.count(1, now);
            let level = limiter.0.at(Tick::from_nanos(now)).level();
            assert!(level.floor() <= 10, "{limiter:?}");
        }
        // Up to 21 windows. The sliding estimate settles at nine a second for who asks so often.
        assert!((181..=210).contains(&granted), "{granted}: {limiter:?}");
    }
}

/// ShenYu's sliding log counts before it forgets, and ignores how many are asked for.
#[test]
fn after_a_gap_all_permits_are_available_and_each_one_counts() {
    for limiter in limiters(&[&WINDOWS], "10/s") {
        for now in [0, 5, 3600].map(|second| second * SECOND) {
            let took =
                [(7, 0), (4, 1), (3, 2)].map(|(n, later)| limiter.take(n, now + later).is_ok());
            assert_eq!(took, [true, false, true], "{limiter:?}");
        }
    }
}

/// Zuul: the counter gets its expiry with its first increment; a process that dies between the two
/// leaves a window that never ends. Here there is nothing between: the word is both.
#[test]
fn an_open_window_always_ends() {
    for limiter in limiters(&[&WINDOWS], "10/s") {
        for now in [1, 7, 70, 1000].map(|second| Tick::from_nanos(second * SECOND)) {
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
