//! The leaky bucket and the algorithms with windows as subjects, each with a burst of two or three
//! permits. Unless a function says otherwise, the subject's later tick is the first of a new window
//! and its earlier tick is the last of the old one. So a late thread is in the old window.

use std::time::Duration;

use tollgate::algorithm::Rounding;
use tollgate::{AnyAlgorithm, FixedWindow, Intervals, LeakyBucket, Quota, SlidingWindow};

use super::all_verbs;
use crate::subject::Subject;
use crate::words::MakeWord;

const fn per(n: u64, period: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(period))
}

/// A queue with a burst of three, one permit every 2 ns, and one permit without delay.
pub fn queue(make_word: MakeWord) -> Subject<LeakyBucket> {
    let queue = LeakyBucket::queue(per(1, 2).burst(3)).expect("a quota");
    all_verbs(queue.free(1), make_word)
}

/// A fixed window: two permits in each 4 ns of the clock.
pub fn fixed(make_word: MakeWord) -> Subject<FixedWindow> {
    let windows = FixedWindow::new(per(2, 4)).expect("a quota");
    all_verbs(windows, make_word).at(7, 8)
}

/// A window opened by the first hit: two permits in 100 ns. Its beginning is rounded up to a
/// multiple of a 64th of that, so the window of a hit at tick 7 ends at tick 108.
pub fn first_hit(make_word: MakeWord) -> Subject<FixedWindow> {
    let windows = FixedWindow::new(per(2, 100)).expect("a quota");
    let windows = windows.opened_by_first_hit().expect("it fits");
    all_verbs(windows, make_word).at(7, 108)
}

/// A sliding window of three permits in 8 ns. The later tick is 2 ns into the next window, where
/// the previous window counts for three quarters.
pub fn sliding(make_word: MakeWord) -> Subject<SlidingWindow> {
    let windows = SlidingWindow::new(per(3, 8)).expect("a quota");
    all_verbs(windows, make_word).at(15, 18)
}

/// The same sliding window, rounded down.
pub fn sliding_down(make_word: MakeWord) -> Subject<SlidingWindow> {
    let windows = SlidingWindow::new(per(3, 8)).expect("a quota");
    all_verbs(windows.rounding(Rounding::Down), make_word).at(15, 18)
}

/// A bucket of three that gets two permits every 4 ns of the clock.
pub fn intervals(make_word: MakeWord) -> Subject<Intervals> {
    let intervals = Intervals::new(per(2, 4).burst(3)).expect("a quota");
    all_verbs(intervals, make_word).at(7, 8)
}

/// The same bucket, starting empty.
pub fn empty_intervals(make_word: MakeWord) -> Subject<Intervals> {
    let intervals = Intervals::new(per(2, 4).burst(3).initial(0)).expect("a quota");
    all_verbs(intervals, make_word).at(7, 8)
}

/// A greedy bucket of three: two permits come 4 ns after the first one is taken, and so on.
pub fn greedy(make_word: MakeWord) -> Subject<Intervals> {
    let intervals = Intervals::new(per(2, 4).burst(3)).expect("a quota");
    all_verbs(intervals.greedy().expect("it fits"), make_word).at(7, 11)
}

/// `AnyAlgorithm`, holding a fixed window.
pub fn any(make_word: MakeWord) -> Subject<AnyAlgorithm> {
    let windows = FixedWindow::new(per(2, 4)).expect("a quota");
    all_verbs(AnyAlgorithm::from(windows), make_word).at(7, 8)
}
