//! The check finds a single permit too many among hundreds of thousands, with each kind of bound.

use std::fmt::Debug;
use std::time::Duration;

use tollgate::history::{Bound, Bounded, History, Log};
use tollgate::primitive::{AtomicU64, Ordering};
use tollgate::{
    Algorithm, Denied, FixedWindow, Granted, Intervals, LeakyBucket, Limiter, ManualClock, Quota,
    Rounding, SlidingWindow, Tick, TokenBucket,
};

/// An algorithm that lets the first request through for nothing which it denies at some tick or
/// later.
struct Slips<A> {
    algorithm: A,
    slip: Tick,
    slipped: AtomicU64,
}

impl<A: Algorithm> Algorithm for Slips<A> {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        let decided = self.algorithm.step(word, now, n);
        // ORDERING: Relaxed. A flag for a test of one thread.
        if decided.is_err() && now >= self.slip && self.slipped.swap(1, Ordering::Relaxed) == 0 {
            return Ok((word, Granted::new(n, now)));
        }
        decided
    }

    fn available(&self, word: u64, now: Tick) -> u64 {
        self.algorithm.available(word, now)
    }

    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.algorithm.is_idle(word, now)
    }
}

/// All that is there is taken at each of these ticks, one permit after the other, and more is asked
/// for; in the middle one is had too many.
fn history(algorithm: impl Algorithm, from: u64, step: u64, slips: bool) -> History {
    let ticks = 100_000;
    let middle = Tick::from_nanos(from + ticks / 2 * step);
    let algorithm = Slips {
        algorithm,
        slip: if slips { middle } else { Tick::MAX },
        slipped: AtomicU64::new(0),
    };
    let clock = ManualClock::at(Tick::from_nanos(from));
    let gate = Limiter::with_clock(algorithm, clock.clone());
    let mut logs = [Log::new(), Log::new(), Log::new()];
    for turn in 0..ticks as usize {
        while let Ok(granted) = gate.try_acquire() {
            logs[turn % 3].granted(&granted);
        }
        clock.advance(Duration::from_nanos(step));
    }
    logs.into_iter().collect()
}

fn is_found<A: Bounded + Copy + Debug>(algorithm: A, from: u64, step: u64) {
    let bound = algorithm.bound();
    let right = history(algorithm, from, step, false);
    if let Err(excess) = right.check(&bound) {
        panic!("{algorithm:?}: {excess}");
    }
    let wrong = history(algorithm, from, step, true);
    match wrong.check(&bound) {
        Ok(summary) => panic!("{algorithm:?}: {summary:?}"),
        Err(excess) => assert_eq!(excess.granted as u128, excess.allowed + 1, "{excess}"),
    }
}

fn per(n: u64, period: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(period))
}

#[test]
fn of_what_comes_steadily() {
    let quota = per(1, 10).burst(50);
    is_found(TokenBucket::new(quota).expect("a quota"), 3, 7);
    is_found(LeakyBucket::queue(quota).expect("a quota"), 3, 7);
}

#[test]
fn of_a_window() {
    let windows = FixedWindow::new(per(100, 1000)).expect("a quota");
    is_found(windows, 3, 7);
    is_found(windows.offset(Duration::from_nanos(5)), 3, 7);
}

/// One that is full at its end, and is asked for the next one's permits from the beginning, promises
/// no more than it grants.
#[test]
fn of_a_sliding_window() {
    let windows = SlidingWindow::new(per(1000, 1_000_000)).expect("a quota");
    is_found(windows, 999_999, 7);
    is_found(windows.rounding(Rounding::Down), 999_999, 7);
}

/// Asked only when something comes, they grant all that they promise.
#[test]
fn of_what_comes_in_steps() {
    let intervals = Intervals::new(per(3, 4096).burst(10)).expect("a quota");
    is_found(intervals, 5, 64);
    // From a tick on that is a multiple of the quantum, so that nothing is rounded.
    is_found(intervals.greedy().expect("it fits"), 64, 4096);
    let windows = FixedWindow::new(per(3, 4096)).expect("a quota");
    is_found(windows.opened_by_first_hit().expect("it fits"), 64, 4096);
}

/// Nobody waits less than a bound says: what a bucket with one permit more at once grants exceeds it.
#[test]
fn of_a_bound_that_is_too_small() {
    let quota = per(1, 10).burst(50);
    let bound = Bound::of_quota(quota.burst(49)).expect("a quota");
    let all = history(TokenBucket::new(quota).expect("a quota"), 3, 7, false);
    let excess = all.check(&bound).expect_err("fifty at once");
    assert_eq!((excess.granted, excess.allowed), (50, 49));
}
