//! Callers whose clocks are behind by less than a quantum: their grants count at ticks that keep
//! the bound.

use crate::support::*;

/// Twenty permits come at once at 1000 and at 2000 or, if the first tick is rounded up to 15.625,
/// at 1016 and 2016. A caller whose clock is 14 ns behind then takes permits that have come since.
/// In another history three windows open one after the other as soon as possible, from a multiple
/// of the quantum or from another tick, and the late caller takes from the last one.
#[test]
fn a_caller_late_by_less_than_a_quantum_keeps_the_bound() {
    let greedy = "intervals 20/1us burst 60 greedy";
    let window = "fixed-window 60/1us first-hit";
    for (text, takes) in [
        (
            greedy,
            [(1, 0), (59, 999), (20, 1000), (1, 2000), (19, 1986)],
        ),
        (
            greedy,
            [(1, 1), (59, 1015), (20, 1016), (1, 2016), (19, 2001)],
        ),
        (
            window,
            [(1, 0), (59, 999), (60, 1000), (1, 2000), (59, 1986)],
        ),
        (
            window,
            [(1, 1), (59, 1015), (60, 1016), (1, 2032), (59, 2018)],
        ),
    ] {
        let algorithm = algorithm(text);
        let limiter = Limiter::unstarted(algorithm, NoClock);
        let mut log = Log::new();
        for (n, at) in takes {
            let granted = limiter.at(tick(at)).try_acquire_n(n);
            log.granted(&granted.unwrap_or_else(|denied| panic!("{n} at {at}: {denied}")));
        }
        let history: Audit = [log].into_iter().collect();
        let kept = history.check(&algorithm.bound());
        assert!(kept.is_ok(), "{text}: {kept:?}");
    }
}
