//! Real threads on one limiter at a standing tick, where every count must come out exactly. Small
//! enough for Miri; `scripts/sanitize` runs it there with many seeds, and under ThreadSanitizer.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::{AnyAlgorithm, Denied, Limiter, ManualClock, NoClock, Quota, Tick, TokenBucket};

const THREADS: u64 = 4;
const TURNS: u64 = if cfg!(miri) { 6 } else { 20_000 };

/// Runs `work` on all threads at once and adds up what they return.
fn on_all_threads(work: impl Fn(u64) -> u64 + Sync) -> u64 {
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|id| {
                let (work, start) = (&work, &start);
                scope.spawn(move || {
                    start.wait();
                    work(id)
                })
            })
            .collect();
        let counts = workers.into_iter().map(|worker| worker.join());
        counts.map(|count| count.expect("a worker panicked")).sum()
    })
}

fn gate(burst: u64) -> Limiter<TokenBucket, ManualClock> {
    let quota = Quota::per_second(1).burst(burst);
    Limiter::with_clock(
        TokenBucket::new(quota).expect("a quota"),
        ManualClock::new(),
    )
}

#[test]
fn exactly_the_burst_is_granted() {
    let gate = gate(THREADS * TURNS / 2 + 1);
    let granted = on_all_threads(|_| {
        (0..TURNS)
            .map(|_| u64::from(gate.try_acquire().is_ok()))
            .sum()
    });
    assert_eq!(granted, THREADS * TURNS / 2 + 1);
    assert_eq!(gate.available(), 0);
}

#[test]
fn a_limiter_starts_once_whoever_comes_first() {
    let quota = Quota::per_second(1).burst(100).initial(THREADS + 1);
    let bucket = TokenBucket::new(quota).expect("a quota");
    for _ in 0..TURNS.min(500) {
        let gate = Limiter::unstarted(bucket, NoClock);
        let granted = on_all_threads(|_| {
            let at = gate.at(Tick::from_nanos(7));
            u64::from(at.try_acquire().is_ok()) + at.take_up_to(1).n()
        });
        assert_eq!(granted, THREADS + 1);
    }
}

#[test]
fn what_is_undone_is_all_there_again() {
    let gate = gate(THREADS * 3);
    let undone = on_all_threads(|id| {
        let turns = (0..TURNS).filter_map(|_| gate.try_acquire_n(id % 3 + 1).ok());
        turns.map(|granted| gate.undo(granted)).sum()
    });
    assert!(undone > 0);
    assert_eq!(gate.available(), THREADS * 3);
    assert!(gate.at(gate.now()).is_idle());
}

#[test]
fn charges_and_refunds_balance() {
    let gate = gate(50);
    let charged = |id| (0..TURNS).map(|_| gate.charge(id + 1).n()).sum::<u64>();
    let refunded = |id| (0..TURNS).map(|_| gate.refund(id + 1)).sum::<u64>();
    let back = on_all_threads(|id| {
        let owed = charged(id);
        let back = refunded(id);
        assert!(owed >= TURNS * (id + 1));
        back
    });
    let all = TURNS * (1..=THREADS).sum::<u64>();
    assert!(back <= all, "{back} of {all} came back");
    let owed = gate.charge(0).debt();
    assert_eq!(gate.refund(u64::MAX), all - back);
    assert!(owed <= all - back);
    assert_eq!(gate.available(), 50);
}

#[test]
fn a_reset_is_one_burst_and_no_more() {
    let gate = gate(10);
    let granted = on_all_threads(|id| {
        let before = gate.take_up_to(10).n();
        if id == 0 {
            gate.reset();
        }
        before + (0..TURNS).map(|_| gate.take_up_to(3).n()).sum::<u64>()
    });
    assert!((10..=20).contains(&granted), "{granted}");
    assert_eq!(gate.available(), 0);
}

/// Every algorithm, with so many permits at once; one comes every microsecond, so that nothing is
/// rounded.
fn each(n: u64) -> Vec<AnyAlgorithm> {
    let texts = [
        "token-bucket N/Nus",
        "gcra N/Nus",
        "leaky-meter N/Nus",
        "leaky-queue N/Nus free 3",
        "fixed-window N/Nus",
        "fixed-window N/Nus first-hit",
        "sliding-window N/Nus",
        "sliding-window N/Nus rounding down",
        "intervals N/Nus",
        "intervals N/Nus greedy",
    ];
    // Miri is slow, and the others have no code of their own.
    let texts = if cfg!(miri) { &texts[4..7] } else { &texts[..] };
    let algorithms = texts.iter().map(|text| {
        let text = text.replace('N', &n.to_string());
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    });
    algorithms.collect()
}

const PERIOD: u64 = 1_000_000;

/// A tick at which nothing begins.
const NOW: Tick = Tick::from_nanos(123_456_789);

#[test]
fn exactly_what_is_there_is_granted_by_each_algorithm() {
    let n = THREADS * TURNS.min(400) / 2 + 1;
    for algorithm in each(n) {
        let gate = Limiter::unstarted(algorithm, NoClock);
        let at = gate.at(NOW);
        let granted = on_all_threads(|id| {
            let turns = 0..TURNS.min(400);
            turns.map(|_| at.take_up_to(1 + id % 2).n()).sum()
        });
        assert_eq!(granted, n, "{algorithm}");
        assert_eq!((at.available(), at.level().ceil()), (0, n), "{algorithm}");
    }
}

/// Half of the threads are before the edge of a window, half after it; the window before is full. No
/// matter who comes first: those before it are counted in the new one, or denied.
#[test]
fn a_new_window_is_entered_once() {
    let n = THREADS * TURNS.min(400) / 2 + 1;
    for text in [
        "fixed-window N/ms",
        "fixed-window N/ms first-hit",
        "intervals N/ms",
    ] {
        let algorithm: AnyAlgorithm = text.replace('N', &n.to_string()).parse().expect("a text");
        let gate = Limiter::unstarted(algorithm, NoClock);
        let ticks = [6 * PERIOD - 1, 6 * PERIOD].map(Tick::from_nanos);
        let first = gate.at(Tick::from_nanos(5 * PERIOD)).take_up_to(u64::MAX);
        assert_eq!(first.n(), n, "{algorithm}");
        let granted = on_all_threads(|id| {
            let at = gate.at(ticks[id as usize % 2]);
            (0..TURNS.min(400)).map(|_| at.take_up_to(2).n()).sum()
        });
        assert_eq!(granted, n, "{algorithm}");
        assert_eq!(gate.at(ticks[1]).available(), 0, "{algorithm}");
        assert!(matches!(
            gate.try_acquire_at(ticks[0]),
            Err(Denied::Later { .. })
        ));
    }
}

#[test]
fn what_is_undone_is_all_there_again_with_each_algorithm() {
    for algorithm in each(THREADS * 3) {
        let gate = Limiter::unstarted(algorithm, NoClock);
        let at = gate.at(NOW);
        let undone = on_all_threads(|id| {
            let turns = (0..TURNS.min(2000)).filter_map(|_| at.try_acquire_n(id % 3 + 1).ok());
            turns.map(|granted| at.undo(granted)).sum()
        });
        assert!(undone > 0, "{algorithm}");
        assert_eq!(at.available(), THREADS * 3, "{algorithm}");
        assert!(at.level().is_zero(), "{algorithm}");
        // A period that somebody began may begin a quantum later than it was asked for.
        let soon = NOW.saturating_add(Duration::from_nanos(1000));
        assert!(gate.at(soon).is_idle(), "{algorithm}");
    }
}

/// What was recorded comes back, and nothing else.
#[test]
fn charges_and_refunds_balance_with_each_algorithm() {
    for algorithm in each(50) {
        let gate = Limiter::unstarted(algorithm, NoClock);
        let at = gate.at(NOW);
        let charged = on_all_threads(|id| (0..TURNS.min(500)).map(|_| at.charge(id).n()).sum());
        assert_eq!(at.level().ceil(), charged, "{algorithm}");
        let refunded = on_all_threads(|id| (0..TURNS.min(250)).map(|_| at.refund(id)).sum());
        assert!(refunded <= charged, "{algorithm}");
        assert_eq!(at.refund(u64::MAX), charged - refunded, "{algorithm}");
        assert_eq!(at.available(), 50, "{algorithm}");
    }
}
