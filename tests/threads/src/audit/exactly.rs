//! With enough requests, limiters grant exactly what they promise, and no less.

use std::collections::BTreeMap;

use crate::support::*;

const PERIOD: u64 = 8192;
const N: u64 = 300;
/// The most that a thread's tick differs from the clock.
const SKEW: u64 = 600;
/// The middle of a window, so that no thread's tick is in another window.
const START: u64 = 122 * PERIOD + PERIOD / 2;

/// The turns of each of four threads. A turn moves the clock by 1.5 ns on average, so at least
/// `WINDOWS` windows pass.
const TURNS: u64 = scaled(2000, 10_000, 40_000);
const WINDOWS: usize = (TURNS * 4 / PERIOD) as usize;

/// Asks greedily from several threads. Each request moves the clock by at most 3 ns, and each
/// thread that reads the clock between `SKEW` after a window's start and `SKEW` before its end asks
/// in that window. So a window gets at least 2300 requests, even if one thread stands still.
fn greedily(limiter: &Limiter<AnyAlgorithm, ManualClock>) -> Vec<Granted> {
    let grants = on_threads(0..4, |id| {
        let mut random = Random(id);
        let turns = (0..TURNS).map(|_| {
            let now = limiter
                .clock()
                .advance(Duration::from_nanos(random.below(4)));
            let now = now.as_nanos() + random.below(2 * SKEW + 1) - SKEW;
            limiter.at(tick(now)).take_up_to(random.below(3) + 1)
        });
        turns.filter(|granted| granted.n() > 0).collect::<Vec<_>>()
    });
    grants.into_iter().flatten().collect()
}

fn limiter(start: u64, text: &str) -> Limiter<AnyAlgorithm, ManualClock> {
    Limiter::with_clock(algorithm(text), ManualClock::at(tick(start)))
}

/// Returns the permits granted in each window except the last, which has not ended.
fn by_window(grants: &[Granted], window: impl Fn(&Granted) -> u64) -> Vec<(u64, u64)> {
    let mut counts = BTreeMap::new();
    for granted in grants {
        *counts.entry(window(granted)).or_insert(0) += granted.n();
    }
    counts.pop_last();
    assert!(counts.len() >= WINDOWS, "{counts:?}");
    counts.into_iter().collect()
}

/// Sentinel: a slot of the LeapArray is checked and added to separately, and reset by the first
/// caller in a new window. Counts of the old window were lost or counted in the new one.
#[test]
fn each_window_grants_exactly_n() {
    deadline("threads that take all", || {
        for offset in [0, 1, 4000] {
            let limiter = limiter(
                START + offset,
                &format!("fixed-window 300/8192ns offset {offset}ns"),
            );
            let window = |granted: &Granted| (granted.at().as_nanos() + PERIOD - offset) / PERIOD;
            let counts = by_window(&greedily(&limiter), window);
            let first = counts[0].0;
            let right = (first..).map(|window| (window, N));
            assert!(
                counts.iter().copied().eq(right.take(counts.len())),
                "{counts:?}"
            );
        }
    });
}

#[test]
fn each_first_hit_window_grants_exactly_n() {
    deadline("threads that take all", || {
        // A grant identifies its window by the window's end.
        let end = |granted: &Granted| {
            granted
                .at()
                .saturating_add(granted.reset_after())
                .as_nanos()
        };
        let counts = by_window(
            &greedily(&limiter(START, "fixed-window 300/8192ns first-hit")),
            end,
        );
        assert!(counts.iter().all(|(_, n)| *n == N), "{counts:?}");
        assert!(
            counts
                .windows(2)
                .all(|pair| pair[1].0 - pair[0].0 >= PERIOD)
        );
    });
}

#[test]
fn a_bucket_grants_exactly_its_burst_and_all_refills() {
    deadline("threads that take all", || {
        let limiter = limiter(START, "intervals 300/8192ns burst 601");
        let granted = greedily(&limiter).iter().map(Granted::n).sum::<u64>();
        let end = limiter.now().saturating_add(Duration::from_nanos(SKEW));
        let rest = limiter.at(end).take_up_to(u64::MAX).n();
        let refills = end.as_nanos() / PERIOD - START / PERIOD;
        assert_eq!(granted + rest, 601 + refills * N);
    });
}

/// The permits of a queue leave at its rate if all callers wait as told. Each request is for up to
/// three permits, which leave together with the last one. If the interval is not a whole number of
/// nanoseconds, permits leave at the next nanosecond, so an interval can hold what the rate makes
/// in one nanosecond more: less than a permit.
#[test]
fn a_queue_leaves_at_its_rate() {
    deadline("threads in a queue", || {
        for (n, period, free, at_once) in
            [(1, 10, 0, 3), (1, 10, 2, 3), (1, 10, 7, 8), (3, 40, 0, 4)]
        {
            let mut log = Log::new();
            let queue = limiter(
                START,
                &format!("leaky-queue {n}/{period}ns burst 500 free {free}"),
            );
            for granted in greedily(&queue) {
                log.grant(granted.at().saturating_add(granted.delay()), granted.n());
            }
            let all: Audit = [log].into_iter().collect();
            let check = |burst| {
                let quota = Quota::per(n, Duration::from_nanos(period)).burst(burst);
                all.check(&Bound::of_quota(quota).expect("a quota"))
            };
            let granted = check(at_once).expect("the rate").granted;
            assert!(granted >= u128::from(TURNS * 4 * n / period), "{granted}");
            assert!(check(2).is_err());
        }
    });
}
