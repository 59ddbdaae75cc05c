//! The leaky bucket, and what has windows. Each has two or three permits at once. The second tick
//! is the first one of a new window, and the first is the last one before that: whoever is late
//! there is in the window before.

use std::time::Duration;

use tollgate::algorithm::Rounding;
use tollgate::{AnyAlgorithm, FixedWindow, Intervals, LeakyBucket, Quota, SlidingWindow};

use super::all_verbs;
use crate::subject::Subject;
use crate::words::MakeWord;

const fn per(n: u64, period: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(period))
}

/// A queue of three, in which one goes ahead of a permit every 2 ns.
///
/// # Panics
///
/// Never: the quota is a quota.
pub fn queue(place: MakeWord) -> Subject<LeakyBucket> {
    let queue = LeakyBucket::queue(per(1, 2).burst(3)).expect("a quota");
    all_verbs(queue.free(1), place)
}

/// Two permits in each 4 ns of the clock.
///
/// # Panics
///
/// Never: the quota is a quota.
pub fn fixed(place: MakeWord) -> Subject<FixedWindow> {
    let windows = FixedWindow::new(per(2, 4)).expect("a quota");
    all_verbs(windows, place).at(7, 8)
}

/// Two permits in 100 ns from the first hit on, which is rounded up to a 64th of that: who hits at
/// tick 7 is heard of until tick 108.
///
/// # Panics
///
/// Never: the quota is a quota.
pub fn first_hit(place: MakeWord) -> Subject<FixedWindow> {
    let windows = FixedWindow::new(per(2, 100)).expect("a quota");
    let windows = windows.opened_by_first_hit().expect("it fits");
    all_verbs(windows, place).at(7, 108)
}

/// Three permits in 8 ns. The second tick is two into the next window, where three quarters of this
/// one weigh.
///
/// # Panics
///
/// Never: the quota is a quota.
pub fn sliding(place: MakeWord) -> Subject<SlidingWindow> {
    let windows = SlidingWindow::new(per(3, 8)).expect("a quota");
    all_verbs(windows, place).at(15, 18)
}

/// The same, rounded down.
///
/// # Panics
///
/// Never: the quota is a quota.
pub fn sliding_down(place: MakeWord) -> Subject<SlidingWindow> {
    let windows = SlidingWindow::new(per(3, 8)).expect("a quota");
    all_verbs(windows.rounding(Rounding::Down), place).at(15, 18)
}

/// Two permits at every fourth nanosecond, in a bucket of three that starts with one.
///
/// # Panics
///
/// Never: the quota is a quota.
pub fn intervals(place: MakeWord) -> Subject<Intervals> {
    let intervals = Intervals::new(per(2, 4).burst(3)).expect("a quota");
    all_verbs(intervals, place).at(7, 8)
}

/// The same, of a bucket that starts with nothing.
///
/// # Panics
///
/// Never: the quota is a quota.
pub fn empty_intervals(place: MakeWord) -> Subject<Intervals> {
    let intervals = Intervals::new(per(2, 4).burst(3).initial(0)).expect("a quota");
    all_verbs(intervals, place).at(7, 8)
}

/// Two permits 4 ns after the first one was taken, and so on, in a bucket of three.
///
/// # Panics
///
/// Never: the quota is a quota.
pub fn greedy(place: MakeWord) -> Subject<Intervals> {
    let intervals = Intervals::new(per(2, 4).burst(3)).expect("a quota");
    all_verbs(intervals.greedy().expect("it fits"), place).at(7, 11)
}

/// Any algorithm: the fixed window.
///
/// # Panics
///
/// Never: the quota is a quota.
pub fn any(place: MakeWord) -> Subject<AnyAlgorithm> {
    let windows = FixedWindow::new(per(2, 4)).expect("a quota");
    all_verbs(AnyAlgorithm::from(windows), place).at(7, 8)
}
