//! What went wrong in the windows of other rate limiters, each as a test that it does not go wrong here.

use tollgate::{AnyAlgorithm, Limiter, NoClock, Tick};

const SECOND: u64 = 1_000_000_000;

/// Every kind of window, with ten permits a second.
fn windows() -> impl Iterator<Item = Limiter<AnyAlgorithm, NoClock>> {
    let texts = [
        "fixed-window 10/s",
        "fixed-window 10/s origin 700ms",
        "fixed-window 10/s first-hit",
        "sliding-window 10/s",
        "sliding-window 10/s rounding down",
    ];
    texts.into_iter().map(|text| {
        let window: AnyAlgorithm = text.parse().expect("a window");
        Limiter::unstarted(window, NoClock)
    })
}

/// AspNetCoreRateLimit counts a request and then refuses it, as `limits` does with a moving window that
/// is hit too often: who goes on asking is never let in again.
#[test]
fn what_is_refused_does_not_count() {
    for gate in windows() {
        let mut granted = 0;
        // A hundred a second, all of them asking again and again.
        for now in (0..20 * SECOND).step_by(10_000_000).map(Tick::from_nanos) {
            granted += u64::from(gate.try_acquire_at(now).is_ok());
            assert!(gate.at(now).level().floor() <= 10, "{gate:?}");
        }
        // Up to 21 windows. The sliding estimate settles at nine a second for who asks so often.
        assert!((181..=210).contains(&granted), "{granted}: {gate:?}");
    }
}

/// ShenYu's sliding log counts before it forgets, and ignores how many are asked for.
#[test]
fn after_a_gap_all_are_there_and_each_of_several_counts() {
    for gate in windows() {
        for now in [0, 5, 3600].map(|second| second * SECOND) {
            let take = |n, later| gate.try_acquire_n_at(n, Tick::from_nanos(now + later));
            assert!(take(7, 0).is_ok(), "{gate:?}");
            assert!(take(4, 1).is_err(), "{gate:?}");
            assert!(take(3, 2).is_ok(), "{gate:?}");
        }
    }
}

/// Zuul: the counter gets its expiry with its first increment; whoever dies between the two leaves a
/// window that never ends. Here there is nothing between: the word is both.
#[test]
fn a_window_that_is_open_is_over_in_time() {
    for gate in windows() {
        for second in [1, 7, 70, 1000] {
            let now = gate.at(Tick::from_nanos(second * SECOND));
            assert!(now.take_up_to(u64::MAX).n() > 0, "{gate:?}");
            let wait = now.time_until(1).expect("it ends").as_nanos() as u64;
            assert!((1..=2 * SECOND).contains(&wait), "{wait}: {gate:?}");
            assert!(
                now.time_until(10).is_some_and(|wait| wait.as_secs() <= 2),
                "{gate:?}"
            );
        }
    }
}
