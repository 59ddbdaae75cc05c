//! Grants that are rolled back beside reservations, in every order: the permits that callers use
//! keep the bound, each at the tick at which it is used. Nobody uses what is rolled back.

use tollgate::algorithm::GiveBack;

use super::orders::{Back, Search};
use crate::support::*;

type GivesBack = fn(&AnyAlgorithm, u64, Tick, &Granted) -> (u64, u64);

fn try_every_order(text: &str, gives_back: GivesBack) -> Search<AnyAlgorithm> {
    let search = Search {
        gives_back: Back::Whole(gives_back),
        ..Search::new(algorithm(text))
    };
    search.run(6, Search::keeps_the_bound)
}

/// Limits that record reservations as a longer line. To undo a grant puts a newcomer beside a
/// caller that waits.
const LINES: [&str; 6] = [
    "token-bucket 2/4ns",
    "token-bucket 1/2ns burst 3",
    "gcra 1/2ns burst 2",
    "leaky-meter 2/4ns",
    "intervals 2/4ns",
    "intervals 2/4ns greedy",
];

/// Limits that count each permit in the window in which it is due, or have no reservations.
const WINDOWS: [&str; 5] = [
    "sliding-window 2/4ns",
    "sliding-window 3/12ns",
    "sliding-window 2/4ns rounding down",
    "fixed-window 2/4ns",
    "fixed-window 2/4ns first-hit",
];

#[test]
fn rolling_back_beside_reservations_keeps_the_bound_at_use() {
    for text in LINES.into_iter().chain(WINDOWS) {
        let search = try_every_order(text, AnyAlgorithm::roll_back);
        assert_eq!(search.excess, None);
        assert!(search.returned > 100, "{text}: {}", search.returned);
    }
}

#[test]
fn undoing_instead_of_rolling_back_would_exceed_the_bound() {
    for text in LINES {
        let search = try_every_order(text, AnyAlgorithm::undo);
        assert!(search.excess.is_some(), "{text}");
    }
}

/// While no caller waits, rolling back and undoing are the same.
#[test]
fn without_reservations_everything_comes_back() {
    for text in LINES.into_iter().chain(WINDOWS) {
        let algorithm: AnyAlgorithm = text.parse().expect(text);
        for (before, n, after) in [(0, 2, 0), (1, 1, 0), (0, 1, 1)] {
            let now = tick(8);
            let take = |word, n| algorithm.step(word, now, n).expect("it is available");
            let (word, _) = take(0, before);
            let (word, granted) = take(word, n);
            let (word, _) = take(word, after);
            let (word, back) = algorithm.roll_back(word, now, &granted);
            assert_eq!((back, granted.n()), (n, n), "{text}");
            let left = algorithm.available(0, now) - before - after;
            assert_eq!(algorithm.available(word, now), left, "{text}");
        }
    }
}
