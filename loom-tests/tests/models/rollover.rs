//! Races between threads at the edge of a window, with every outcome spelled out: two start the new
//! window at once, a late thread is still in the old one, and an undo or a charge in the old window
//! meets a permit taken in the new one.

use tollgate::algorithm::{Debt, GiveBack};
use tollgate_loom_tests::prelude::*;
use tollgate_loom_tests::races::{FIXED, Races};
use tollgate_loom_tests::samples::windows;

const NO_ORDER: &str = "no order";
const TOO_MANY: &str = "more than was promised";

/// Explores the races on the crate's word, and on two broken words, which must fail with `why`.
fn explore<A>(name: &str, make: fn(MakeWord) -> Subject<A>, races: &Races<'_>, why: &str)
where
    A: GiveBack + Debt + Send + Sync + 'static,
{
    let title = format!("rollover::{name}");
    model(&title, None, |run| races.explore(&make(words::cell), run));
    let title = format!("rollover::{name}, compares and stores");
    broken(&title, why, None, |run| {
        races.explore(&make(words::stores), run);
    });
    let title = format!("rollover::{name}, exchanges unconditionally");
    broken(&title, why, None, |run| {
        races.explore(&make(words::overwrites), run);
    });
}

#[test]
fn fixed_window() {
    explore("fixed window", windows::fixed, &FIXED, NO_ORDER);
}

#[test]
fn any_algorithm() {
    explore("any", windows::any, &FIXED, NO_ORDER);
}

/// Two permits in 100 ns. The window from tick 7 ends at 108, since its beginning is rounded up.
/// The next one begins at 108 and ends at 210 for the same reason. A late thread is counted at the
/// tick to which that window's beginning is rounded up.
const FIRST_HIT: Races<'_> = Races {
    old: 7,
    new: 108,
    all: 2,
    both: &[
        "1 at 108, 1 left | 1 at 108, 0 left",
        "1 at 108, 0 left | 1 at 108, 1 left",
    ],
    late: &[
        "1 at 7, 0 left | 2 at 108, 0 left",
        "denied for 203 | 2 at 108, 0 left",
    ],
    undo: &[
        "2 returned | 2 at 108, 0 left, denied for 102",
        "0 returned | 2 at 108, 0 left, denied for 102",
    ],
    charge: &[
        "charged 3 at 7, owes 2 | 1 at 108, 1 left, 1 at 108, 0 left",
        "charged 3 at 110, owes 2 | 1 at 108, 1 left, denied for 102",
        "charged 3 at 110, owes 3 | 1 at 108, 1 left, 1 at 108, 0 left",
    ],
};

#[test]
fn fixed_window_opened_by_the_first_hit() {
    explore("first hit", windows::first_hit, &FIRST_HIT, NO_ORDER);
}

/// Three permits in 8 ns. In the middle of the next window the old one weighs half. A late thread
/// is counted at the beginning of the next window, where the old one weighs fully.
const SLIDING: Races<'_> = Races {
    old: 15,
    new: 20,
    all: 3,
    both: &[
        "1 at 20, 0 left | denied for 2",
        "denied for 2 | 1 at 20, 0 left",
    ],
    late: &[
        "1 at 15, 0 left | denied for 2",
        "denied for 9 | 2 at 20, 0 left",
    ],
    undo: &[
        "3 returned | 2 at 20, 1 left, 1 at 20, 0 left",
        "3 returned | denied for 2, 1 at 20, 2 left",
        "0 returned | denied for 2, 1 at 20, 0 left",
    ],
    charge: &[
        "charged 4 at 15, owes 2 | denied for 1, denied for 1",
        "charged 4 at 16, owes 3 | 1 at 20, 1 left, denied for 9",
        "charged 4 at 16, owes 4 | 1 at 20, 1 left, 1 at 20, 0 left",
    ],
};

#[test]
fn sliding_window() {
    explore("sliding window", windows::sliding, &SLIDING, TOO_MANY);
}

/// The same rounded down, so that one and a half permits weigh one.
const SLIDING_DOWN: Races<'_> = Races {
    both: &[
        "1 at 20, 1 left | 1 at 20, 0 left",
        "1 at 20, 0 left | 1 at 20, 1 left",
    ],
    late: &[
        "1 at 15, 0 left | 2 at 20, 0 left",
        "denied for 6 | 2 at 20, 0 left",
    ],
    undo: &[
        "3 returned | 2 at 20, 1 left, 1 at 20, 0 left",
        "0 returned | 2 at 20, 0 left, denied for 2",
    ],
    charge: &[
        "charged 4 at 15, owes 2 | 1 at 20, 0 left, denied for 1",
        "charged 4 at 16, owes 3 | 1 at 20, 2 left, denied for 8",
        "charged 4 at 16, owes 4 | 1 at 20, 2 left, 1 at 20, 1 left",
    ],
    ..SLIDING
};

#[test]
fn sliding_window_rounded_down() {
    explore(
        "rounded down",
        windows::sliding_down,
        &SLIDING_DOWN,
        NO_ORDER,
    );
}

/// A bucket of three that gets two more at 8, 12 and 16. A late thread undoes only what its own
/// clock has not refilled.
const INTERVALS: Races<'_> = Races {
    old: 7,
    new: 8,
    all: 3,
    both: FIXED.both,
    late: &[
        "1 at 7, 0 left | 2 at 8, 0 left",
        "denied for 1 | 2 at 8, 1 left",
    ],
    undo: &[
        "3 returned | 2 at 8, 1 left, 1 at 8, 0 left",
        "3 returned | 2 at 8, 0 left, 1 at 8, 2 left",
        "3 returned | 2 at 8, 0 left, denied for 4",
    ],
    charge: &[
        "charged 4 at 7, owes 2 | denied for 4, denied for 4",
        "charged 4 at 7, owes 4 | 1 at 8, 2 left, denied for 8",
        "charged 4 at 7, owes 5 | 1 at 8, 2 left, 1 at 8, 1 left",
    ],
};

#[test]
fn intervals() {
    explore("intervals", windows::intervals, &INTERVALS, NO_ORDER);
}

/// A bucket of three that gets two more 4 ns after the first was taken. A late thread can take from
/// these too, and its undo returns as many as fit beside them.
const GREEDY: Races<'_> = Races {
    old: 7,
    new: 11,
    all: 3,
    both: &[
        "1 at 11, 1 left | 1 at 11, 0 left",
        "1 at 11, 0 left | 1 at 11, 1 left",
    ],
    late: &[
        "1 at 7, 0 left | 2 at 11, 0 left",
        "1 at 11, 0 left | 2 at 11, 1 left",
    ],
    undo: &[
        "3 returned | 2 at 11, 1 left, 1 at 11, 0 left",
        "1 returned | 2 at 11, 0 left, 1 at 11, 0 left",
        "1 returned | 2 at 11, 0 left, denied for 4",
    ],
    charge: &[
        "charged 4 at 7, owes 2 | denied for 4, denied for 4",
        "charged 4 at 11, owes 2 | 1 at 11, 2 left, denied for 8",
        "charged 4 at 11, owes 3 | 1 at 11, 2 left, 1 at 11, 1 left",
    ],
};

#[test]
fn intervals_greedy() {
    explore("greedy intervals", windows::greedy, &GREEDY, NO_ORDER);
}
