//! Idle keys leave and come back, and nobody notices: every answer is that of a limiter that was there all the time.

use tollgate::{Keep, Tick};

use crate::all;
use crate::exact::Run;
use crate::own::{Every, Verb};

/// Many more than there are slots.
const MANY: u64 = 100_000;

fn follow<A: Every>(algorithm: A, period: u64, seed: u64, changing: bool) {
    let text = format!("{algorithm:?}");
    let mut run = Run::new(algorithm, period, seed);
    for turn in 0..8_000 {
        run.go_on();
        // Now and then a few that are busy, and those who have left among the others.
        let key = match run.random.one_in(4) {
            true => run.random.below(20),
            false => run.random.below(MANY),
        };
        let now = Tick::from_nanos(run.now);
        match run.verb(key, now) {
            // Whether it is in the table is all that can be told.
            Verb::Forget => continue,
            verb => run.ask(key, now, verb),
        };
        if changing && turn % 400 == 0 {
            // What is full stays full, whoever has left.
            run.change(&[Keep::Scaled, Keep::Fresh], false);
        }
    }
    let stats = run.table.stats();
    assert_eq!((stats.evicted, stats.no_room), (0, 0), "{text}");
    assert!(stats.taken_over > 100, "{stats:?} {text}");
    let left = stats.taken_over + stats.forgotten;
    assert_eq!(stats.inserted, stats.tracked + left, "{text}");
    assert!(run.owns.len() as u64 > stats.tracked + 20, "{text}");
}

#[test]
fn who_comes_back_finds_what_a_limiter_that_stayed_would_have() {
    for (seed, (algorithm, period)) in all().into_iter().enumerate() {
        follow(algorithm, period, seed as u64, false);
    }
}

#[test]
fn and_so_through_changes_of_the_quota() {
    for (seed, (algorithm, period)) in all().into_iter().enumerate() {
        follow(algorithm, period, 50 + seed as u64, true);
    }
}
