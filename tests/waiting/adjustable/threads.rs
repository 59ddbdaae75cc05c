//! Threads that take permits while one changes the quota.

use tollgate_audit::{Audit, Bounded, Log};

use super::MANY;
use crate::support::*;

/// Grants, with the version of the quota if that is certain.
type Seen = Vec<(u64, Granted)>;

type Tested = Adjustable<AnyAlgorithm, ManualClock>;

/// Takes many times, and then until the version of a grant is certain.
fn take(limiter: &Tested, taking: &AtomicU64, id: u64) -> Seen {
    let (mut random, mut seen, skew) = (Random(id), Vec::new(), 50 * id);
    for turn in 1.. {
        limiter
            .clock()
            .advance(Duration::from_nanos(random.below(4)));
        let before = limiter.version();
        let now = (limiter.now().as_nanos() + random.below(2 * skew + 1)).saturating_sub(skew);
        let granted = limiter.at(tick(now)).take_up_to(random.below(4));
        if granted.n() > 0 && before == limiter.version() {
            seen.push((before, granted));
        }
        if turn == MANY {
            taking.fetch_sub(1, SeqCst);
        }
        if turn >= MANY && !seen.is_empty() {
            break;
        }
    }
    seen
}

/// Checks that the grants under each quota keep its bound on their own.
fn each_keeps_its_bound(algorithms: &[AnyAlgorithm], keep: Keep, threads: u64) {
    let clock = ManualClock::at(tick(1_000_000));
    let limiter = Adjustable::with_clock(algorithms[0], clock);
    let of_version = |version: u64| &algorithms[version as usize % algorithms.len()];
    let taking = AtomicU64::new(threads);
    let mut seen = on_threads_while(
        0..threads,
        |id| take(&limiter, &taking, id),
        |ended| {
            limiter.set(*of_version(limiter.version() + 1), keep);
            limiter.clock().advance(Duration::from_nanos(100));
            thread::yield_now();
            ended == 0 && taking.load(SeqCst) > 0
        },
    );
    for version in 0..=limiter.version() {
        let logs = seen.iter_mut().map(|seen| {
            // Sorted by time, so those of this version come first.
            let many = seen.iter().take_while(|(of, _)| *of == version).count();
            let mut log = Log::new();
            for (_, granted) in seen.drain(..many) {
                log.granted(&granted);
            }
            log
        });
        let algorithm = of_version(version);
        if let Err(excess) = logs.collect::<Audit>().check(&algorithm.bound()) {
            panic!("{excess}, by {algorithm}, {keep:?}, version {version}");
        }
    }
    assert!(seen.iter().all(Vec::is_empty));
}

#[test]
fn each_quota_keeps_its_own_bound() {
    let families = [
        "token-bucket 1/10ns burst 7 | token-bucket 3/40ns burst 20 | token-bucket 1/1us burst 3",
        "fixed-window 9/500ns | fixed-window 30/700ns | fixed-window 5/300ns first-hit",
        "sliding-window 9/500ns | sliding-window 30/700ns rounding down",
        "intervals 9/500ns burst 20 | intervals 5/300ns burst 9 | intervals 5/300ns burst 9 greedy",
        "leaky-meter 1/20ns burst 5 | sliding-window 9/500ns | gcra 1/70ns tolerance 333ns",
    ];
    deadline("threads that take while the quota changes", move || {
        for texts in families {
            let family: Vec<_> = texts.split(" | ").map(algorithm).collect();
            for (keep, threads) in [
                (Keep::AsIs, 2),
                (Keep::AsIs, 6),
                (Keep::Scaled, 3),
                (Keep::Used, 3),
                (Keep::Fresh, 3),
            ] {
                each_keeps_its_bound(&family, keep, threads);
            }
        }
    });
}
