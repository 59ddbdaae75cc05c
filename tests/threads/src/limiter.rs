//! One word at a standing tick, where every count must be exact.

use crate::support::verbs::*;
use crate::support::*;

const THREADS: u64 = scaled(3, 4, 4);
const TURNS: u64 = scaled(4, 500, 20_000);
const PERIOD: u64 = 1_000_000;

/// A tick at which no window or period begins.
const NOW: Tick = tick(123_456_789);

/// Every algorithm, with `n` permits at once and one more every microsecond, so that nothing is
/// rounded.
fn each(n: u64) -> Vec<AnyAlgorithm> {
    let texts = [
        "token-bucket N/Nms",
        "fixed-window N/Nms",
        "fixed-window N/Nms first-hit",
        "sliding-window N/Nms",
        "gcra N/Nms",
        "leaky-meter N/Nms",
        "leaky-queue N/Nms free 3",
        "sliding-window N/Nms rounding down",
        "intervals N/Nms",
        "intervals N/Nms greedy",
    ];
    // Miri is slow, and the other algorithms have no code of their own here.
    let texts = if cfg!(miri) { &texts[..3] } else { &texts[..] };
    let read = |text: &&str| algorithm(&text.replace('N', &n.to_string()));
    texts.iter().map(read).collect()
}

#[test]
fn a_limiter_starts_exactly_once() {
    deadline("a limiter that starts", || {
        let initial = THREADS + 1;
        let bucket = algorithm(&format!("token-bucket 1/s burst 100 initial {initial}"));
        for _ in 0..TURNS / 2 {
            let limiter = Limiter::unstarted(bucket, NoClock);
            let granted = sum(0..THREADS, |_| {
                let at = limiter.at(NOW);
                u64::from(at.try_acquire().is_ok()) + at.take_up_to(1).n()
            });
            assert_eq!(granted, initial);
        }
    });
}

/// limitador checks and then adds, which grants 1001 of 1000. Sentinel's first pass is a plain
/// store.
#[test]
fn each_algorithm_grants_exactly_what_is_available() {
    deadline("threads that take permits", || {
        let n = THREADS * TURNS / 2 + 1;
        for algorithm in each(n) {
            let limiter = Limiter::unstarted(algorithm, NoClock);
            let granted = sum(0..THREADS, |id| {
                let verbs = Verb::taking(1 + id % 2).into_iter().cycle();
                let turns = verbs.skip(id as usize).take(TURNS as usize);
                let granted = turns.map(|verb| match ask!(limiter.at(NOW), verb, &mut None) {
                    Answer::Granted(granted) => granted.n(),
                    _ => 0,
                });
                granted.sum()
            });
            assert_eq!(granted, n, "{algorithm}");
            let at = limiter.at(NOW);
            assert_eq!((at.available(), at.level().ceil()), (0, n), "{algorithm}");
        }
    });
}

/// Half of the threads are before the end of a full window, half after it. In any order, the
/// threads before it are counted in the new window, or denied.
#[test]
fn a_new_window_is_entered_once() {
    deadline("threads that enter a window", || {
        let n = THREADS * TURNS / 2 + 1;
        for text in [
            "fixed-window N/ms",
            "fixed-window N/ms first-hit",
            "intervals N/ms",
        ] {
            let algorithm = algorithm(&text.replace('N', &n.to_string()));
            let limiter = Limiter::unstarted(algorithm, NoClock);
            let ticks = [6 * PERIOD - 1, 6 * PERIOD].map(tick);
            let first = limiter.at(tick(5 * PERIOD)).take_up_to(u64::MAX);
            assert_eq!(first.n(), n, "{algorithm}");
            let granted = sum(0..THREADS, |id| {
                let at = limiter.at(ticks[id as usize % 2]);
                (0..TURNS).map(|_| at.take_up_to(2).n()).sum()
            });
            assert_eq!(granted, n, "{algorithm}");
            assert_eq!(limiter.at(ticks[1]).available(), 0, "{algorithm}");
            let denied = limiter.at(ticks[0]).try_acquire();
            assert!(matches!(denied, Err(Denied::Later { .. })), "{denied:?}");
        }
    });
}

/// There are more permits than the threads hold at once, so each request is granted.
#[test]
fn undone_permits_are_all_available_again() {
    deadline("threads that undo", || {
        for algorithm in each(THREADS * 3) {
            // Nothing comes back to a queue while others wait behind the grant.
            let may_keep = algorithm.to_string().starts_with("leaky-queue");
            let limiter = Limiter::unstarted(algorithm, NoClock);
            let at = limiter.at(NOW);
            let each = on_threads(0..THREADS, |id| {
                let (mut granted, mut undone) = (0, 0);
                for _ in 0..TURNS {
                    match at.try_acquire_n(id % 3 + 1) {
                        Ok(grant) => {
                            granted += grant.n();
                            undone += at.undo(grant);
                        }
                        Err(denied) => assert!(may_keep, "{algorithm}: {denied}"),
                    }
                }
                (granted, undone)
            });
            let granted: u64 = each.iter().map(|(granted, _)| granted).sum();
            let undone: u64 = each.iter().map(|(_, undone)| undone).sum();
            let kept = granted - undone;
            assert!(
                may_keep || kept == 0,
                "{algorithm}: {kept} permits did not come back"
            );
            assert_eq!(at.level().ceil(), kept, "{algorithm}");
            assert_eq!(at.available(), THREADS * 3 - kept, "{algorithm}");
            // A period that a permit opened may begin up to a quantum after the request.
            let soon = NOW.saturating_add(Duration::from_nanos(1000));
            assert!(kept > 0 || limiter.at(soon).is_idle(), "{algorithm}");
        }
    });
}

/// Charges are recorded as far as they fit. The narrowest word is full early.
#[test]
fn charges_and_refunds_balance() {
    deadline("threads that charge and refund", || {
        for algorithm in each(50) {
            let limiter = Limiter::unstarted(algorithm, NoClock);
            let at = limiter.at(NOW);
            let turns = 0..TURNS.min(250);
            let each = on_threads(1..=THREADS, |n| {
                let charged: u64 = turns.clone().map(|_| at.charge(n).n()).sum();
                let back: u64 = turns.clone().map(|_| at.refund(n)).sum();
                (charged, back)
            });
            let left = each.iter().map(|(charged, _)| charged).sum::<u64>()
                - each.iter().map(|(_, back)| back).sum::<u64>();
            assert!(each.iter().any(|(charged, _)| *charged > 0), "{algorithm}");
            assert_eq!(at.level().ceil(), left, "{algorithm}");
            assert_eq!(at.charge(0).debt(), left.saturating_sub(50));
            assert_eq!(at.refund(u64::MAX), left, "{algorithm}");
            assert_eq!(at.available(), 50, "{algorithm}");
        }
    });
}

#[test]
fn a_reset_gives_exactly_one_burst() {
    deadline("a reset", || {
        let limiter = Limiter::unstarted(algorithm("token-bucket 1/s burst 10"), NoClock);
        let granted = sum(0..THREADS, |id| {
            let at = limiter.at(NOW);
            let before = at.take_up_to(10).n();
            if id == 0 {
                limiter.reset();
            }
            before + (0..TURNS).map(|_| at.take_up_to(3).n()).sum::<u64>()
        });
        assert!((10..=20).contains(&granted), "{granted}");
        assert_eq!(limiter.at(NOW).available(), 0);
    });
}
