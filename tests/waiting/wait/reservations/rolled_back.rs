//! Grants that are rolled back beside reservations, in every order: the permits that callers use
//! keep the bound, each at the tick at which it is used. Nobody uses what is rolled back.

use tollgate::algorithm::{GiveBack, Reserve};
use tollgate_audit::{Audit, Bounded, Log};

use crate::support::*;

/// How a grant is given back.
type GivesBack = fn(&AnyAlgorithm, u64, Tick, &Granted) -> (u64, u64);

/// A grant, and whether its permits are used.
struct Held {
    granted: Granted,
    used_at: Tick,
    /// A reservation is never rolled back.
    is_reserved: bool,
    is_used: bool,
}

/// All operations on one word.
struct Search {
    algorithm: AnyAlgorithm,
    gives_back: GivesBack,
    held: Vec<Held>,
    done: Vec<String>,
    returned: u64,
    /// The first history that exceeds the bound.
    excess: Option<String>,
}

impl Search {
    fn check(&mut self) {
        let mut log = Log::new();
        for held in self.held.iter().filter(|held| held.is_used) {
            log.grant(held.used_at, held.granted.n());
        }
        let history: Audit = [log].into_iter().collect();
        if let Err(excess) = history.check(&self.algorithm.bound()) {
            let (algorithm, done) = (&self.algorithm, &self.done);
            self.excess
                .get_or_insert(format!("{excess}: {algorithm} after {done:?}"));
        }
    }

    fn go_on(&mut self, word: u64, now: Tick, steps: u32) {
        self.check();
        let Some(steps) = steps.checked_sub(1) else {
            return;
        };
        for n in 1..=self.algorithm.available(0, now) {
            if let Ok((next, granted)) = self.algorithm.step(word, now, n) {
                self.done.push(format!("take {n}"));
                self.takes(granted, now, false, (next, now, steps));
            }
            if let Ok((next, granted)) = self.algorithm.reserve(word, now, n, Tick::MAX) {
                let due = granted.due();
                if due > now {
                    self.done.push(format!("reserve {n} for {due:?}"));
                    self.takes(granted, due, true, (next, now, steps));
                }
            }
        }
        for which in 0..self.held.len() {
            let held = &mut self.held[which];
            if held.is_used && !held.is_reserved {
                let (next, back) = (self.gives_back)(&self.algorithm, word, now, &held.granted);
                assert!(back <= held.granted.n());
                held.is_used = false;
                self.returned += back;
                self.done.push(format!("roll back {which}: {back}"));
                self.go_on(next, now, steps);
                self.done.pop();
                self.held[which].is_used = true;
            }
        }
        for by in [1, 3] {
            self.done.push(format!("{by} ns"));
            let later = now.saturating_add(Duration::from_nanos(by));
            self.go_on(word, later, steps);
            self.done.pop();
        }
    }

    fn takes(
        &mut self,
        granted: Granted,
        used_at: Tick,
        is_reserved: bool,
        (next, now, steps): (u64, Tick, u32),
    ) {
        self.held.push(Held {
            granted,
            used_at,
            is_reserved,
            is_used: true,
        });
        self.go_on(next, now, steps);
        self.held.pop();
        self.done.pop();
    }
}

fn try_every_order(text: &str, gives_back: GivesBack) -> Search {
    let mut search = Search {
        algorithm: text.parse().expect(text),
        gives_back,
        held: Vec::new(),
        done: Vec::new(),
        returned: 0,
        excess: None,
    };
    search.go_on(0, tick(0), 6);
    search
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
