//! An algorithm from outside the crate gets all the models that fit it by implementing the trait.

#![cfg(tollgate_loom)]

use tollgate::{Algorithm, Denied, Granted, Tick};
use tollgate_loom_tests::{Subject, broken, model, places, suite};

/// At most so many permits in each window of 10 ns, and the count forgotten at its end. The word is
/// `[window: 32 bits | taken: 32 bits]`.
struct Window(u64);

impl Window {
    /// The window that counts, and what was taken in it: late callers are counted today.
    fn read(&self, word: u64, now: Tick) -> (u64, u64) {
        let (window, taken) = (word >> 32, word & u64::from(u32::MAX));
        let current = now.as_nanos() / 10;
        if current > window {
            (current, 0)
        } else {
            (window, taken)
        }
    }
}

impl Algorithm for Window {
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        let (window, taken) = self.read(word, now);
        if n > self.0 {
            return Err(Denied::never(n, self.0));
        }
        if taken + n > self.0 {
            let end = Tick::from_nanos((window + 1) * 10);
            return Err(Denied::later(n, end.saturating_since(now)));
        }
        Ok(((window << 32) | (taken + n), Granted::new(n, now)))
    }

    fn available(&self, word: u64, now: Tick) -> u64 {
        self.0 - self.read(word, now).1
    }

    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.read(word, now).1 == 0
    }
}

/// Two at once, and the end of a window between the threads' ticks.
fn window() -> Subject<Window> {
    Subject::new(|| Window(2)).at(29, 30)
}

#[test]
fn it_gets_the_models() {
    let name = "own_algorithm::each_against_each_other";
    model(name, None, |run| {
        suite::each_verb_against_each_other(&window(), run)
    });
    let name = "own_algorithm::each_after_a_grant";
    model(name, None, |run| {
        suite::each_verb_after_a_grant(&window(), run)
    });
    let name = "own_algorithm::each_among_three";
    model(name, Some(3), |run| {
        suite::each_verb_among_three(&window(), run)
    });
    let name = "own_algorithm::it_starts_once";
    model(name, None, |run| suite::each_verb_starts(&window(), run));
    let name = "own_algorithm::exactly_the_burst_at_one_tick";
    model(name, None, |run| {
        suite::exactly_the_burst_at_one_tick(&window(), run)
    });
    let name = "own_algorithm::at_different_ticks";
    model(name, Some(3), |run| {
        suite::the_bound_at_different_ticks(&window(), run)
    });
}

#[test]
fn it_fails_in_a_broken_cell() {
    let name = "own_algorithm::compares and stores";
    broken(name, "granted twice", None, |run| {
        suite::each_verb_against_each_other(&window().on(places::stores), run);
    });
}
