//! Real threads on one limiter at a standing tick, where every count must come out exactly. Small
//! enough for Miri; `scripts/sanitize` runs it there with many seeds, and under ThreadSanitizer.

use std::sync::Barrier;
use std::thread;

use tollgate::{Limiter, ManualClock, NoClock, Quota, Tick, TokenBucket};

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
