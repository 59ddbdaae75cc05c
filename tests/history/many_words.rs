//! The windows that need more memory than a word keep their bounds: any slots that make a window, and any
//! interval that is shorter than one.

use std::time::Duration;

use tollgate::history::{Bound, Summary};
use tollgate::{ManualClock, Quota, SlidingLog, SlottedWindow};

use crate::work::{EVERYTHING, START, TAKING, kept, record_of};

fn per(n: u64, period: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(period))
}

/// How many threads, and permits in a request at most, and turns of each thread.
const SHAPES: [(u64, u64, u64); 4] = [
    (2, 2, 30_000),
    (3, 5, 20_000),
    (8, 30, 8_000),
    (16, 4, 4_000),
];

/// Slots that are as long as a step of the clock, much longer, and longer than the threads' skew; one slot,
/// and more slots than permits.
const SLOTTED: [(u64, u64, usize); 6] = [
    (3, 64, 64),
    (7, 60, 3),
    (40, 1000, 10),
    (100, 4096, 4),
    (50, 777, 1),
    (1000, 100_000, 5),
];

#[test]
fn slotted_window() {
    for (n, period, slots) in SLOTTED {
        let quota = per(n, period);
        let gate = || SlottedWindow::with_clock(quota, slots, ManualClock::at(START));
        let bound = Bound::of_slots(quota, slots).expect("a quota");
        let mut all = Summary::default();
        for (threads, most, turns) in SHAPES {
            let gate = || gate().expect("a quota");
            for mix in [TAKING.up_to(most), EVERYTHING.up_to(most)] {
                let summary = kept(&record_of(&gate(), threads, turns, mix), &bound);
                all.granted += summary.granted;
                all.gave_back += summary.gave_back;
                all.charged += summary.charged;
            }
        }
        assert!(all.granted > 3 * u128::from(n), "{n} in {period}: {all:?}");
        assert!(all.gave_back > 100 && all.charged > 100, "{all:?}");
    }
}

const LOGS: [(u64, u64); 6] = [
    (1, 20),
    (3, 64),
    (7, 60),
    (40, 1000),
    (100, 4096),
    (1000, 20_000),
];

#[test]
fn sliding_log() {
    for (n, period) in LOGS {
        let quota = per(n, period);
        let bound = Bound::of_log(quota).expect("a quota");
        let mut granted = 0;
        for (threads, most, turns) in SHAPES {
            for most in [2, most] {
                let gate = SlidingLog::with_clock(quota, ManualClock::at(START)).expect("a quota");
                let mix = TAKING.up_to(most);
                granted += kept(&record_of(&gate, threads, turns, mix), &bound).granted;
            }
        }
        assert!(granted > 3 * u128::from(n), "{n} in {period}: {granted}");
    }
}
