//! Callers whose clocks are behind by less than a quantum: what they get counts where it keeps the bound.

use std::time::Duration;

use tollgate::history::{Bounded, History, Log};
use tollgate::{FixedWindow, Intervals, Limiter, NoClock, Quota, Tick};

/// Takes so many at each of these ticks, one after the other, and checks the algorithm's own bound.
fn keeps<A: Bounded + Copy + std::fmt::Debug>(algorithm: A, takes: &[(u64, u64)]) {
    let gate = Limiter::unstarted(algorithm, NoClock);
    let mut log = Log::new();
    for &(n, tick) in takes {
        let granted = gate.try_acquire_n_at(n, Tick::from_nanos(tick));
        log.granted(&granted.unwrap_or_else(|denied| panic!("{n} at {tick}: {denied}")));
    }
    let history: History = [log].into_iter().collect();
    let kept = history.check(&algorithm.bound());
    assert!(kept.is_ok(), "{algorithm:?}: {kept:?}");
}

/// Twenty come at once. They come at 1000 and 2000, or, where the first tick is rounded up to 15.625, at 1016
/// and 2016; and whose clock is 14 ns behind gets of those that have come.
#[test]
fn for_a_refill() {
    let quota = Quota::per(20, Duration::from_nanos(1000)).burst(60);
    let greedy = Intervals::new(quota).expect("a quota");
    let greedy = greedy.greedy().expect("it fits");
    assert_eq!(greedy.quantum(), Some(Duration::from_nanos(16)));
    keeps(
        greedy,
        &[(1, 0), (59, 999), (20, 1000), (1, 2000), (19, 1986)],
    );
    keeps(
        greedy,
        &[(1, 1), (59, 1015), (20, 1016), (1, 2016), (19, 2001)],
    );
}

/// Three windows are open one after the other as soon as can be, from a multiple of the quantum on or from
/// another tick; and whose clock is 14 ns behind gets of the last one.
#[test]
fn for_a_window() {
    let windows = FixedWindow::new(Quota::per(60, Duration::from_nanos(1000))).expect("a quota");
    let windows = windows.opened_by_first_hit().expect("it fits");
    assert_eq!(windows.quantum(), Some(Duration::from_nanos(16)));
    keeps(
        windows,
        &[(1, 0), (59, 999), (60, 1000), (1, 2000), (59, 1986)],
    );
    keeps(
        windows,
        &[(1, 1), (59, 1015), (60, 1016), (1, 2032), (59, 2018)],
    );
}
