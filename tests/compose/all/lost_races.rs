//! Another caller takes permits between the look and the taking. Each of these races is lost on
//! purpose: a word calls the other caller whenever it is changed.

use std::cell::{Cell, RefCell};

use tollgate::compose::AllDenied;
use tollgate::keyed::KeyedConcurrency;
use tollgate::store::{AtomicWord, WordCell};

use super::scripted::{Scripted, Step};
use super::{algorithm, full, secs};
use crate::support::*;

/// A word that notes its name whenever it is changed, and then lets others act.
pub(super) struct Watched<'w> {
    name: char,
    cell: WordCell,
    /// How often a caller tried to change it.
    pub(super) stores: Cell<u64>,
    /// Whether another caller takes a permit before the next exchange.
    disturb: Cell<bool>,
    notes: &'w RefCell<String>,
    then: &'w dyn Fn(char),
}

impl AtomicWord for Watched<'_> {
    fn load(&self) -> u64 {
        self.cell.load()
    }

    fn compare_exchange(&self, word: u64, next: u64) -> Result<(), u64> {
        self.stores.set(self.stores.get() + 1);
        if self.disturb.take() {
            let other = Limiter::with_cell(algorithm(2), ManualClock::new(), &self.cell);
            assert_eq!(other.take_up_to(1).n(), 1);
        }
        // An exchange of `WordCell` may fail spuriously. That is no lost race.
        while let Err(seen) = self.cell.compare_exchange(word, next) {
            if seen != word {
                return Err(seen);
            }
        }
        self.notes.borrow_mut().push(self.name);
        (self.then)(self.name);
        Ok(())
    }

    fn swap(&self, next: u64) -> u64 {
        self.stores.set(self.stores.get() + 1);
        self.cell.swap(next)
    }
}

type Limit<'w> = Limiter<TokenBucket, ManualClock, &'w Watched<'w>>;

/// The words of three limits: `a` is before `b`, and `b` before `c`.
pub(super) fn words<'w>(notes: &'w RefCell<String>, then: &'w dyn Fn(char)) -> [Watched<'w>; 3] {
    ['a', 'b', 'c'].map(|name| Watched {
        name,
        cell: WordCell::new(0),
        stores: Cell::new(0),
        disturb: Cell::new(false),
        notes,
        then,
    })
}

/// Makes a limit of two permits for each word.
fn limits<'w>(words: &'w [Watched<'w>; 3], clock: &ManualClock) -> [Limit<'w>; 3] {
    words
        .each_ref()
        .map(|word| Limiter::with_cell(algorithm(2), clock.clone(), word))
}

#[test]
fn members_are_taken_from_in_one_order_and_undone_in_reverse() {
    let (clock, notes) = (ManualClock::new(), RefCell::default());
    let words = words(&notes, &|_| {});
    let limits = limits(&words, &clock);
    for order in ORDERS {
        let all = All::new(order.map(|index| &limits[index])).expect("three limits");
        let granted = all.try_acquire().expect("they have it");
        assert_eq!(notes.take(), "abc", "{order:?}");
        assert_eq!((granted.undo(), notes.take()), (3, "cba".to_owned()));
        let nested = (&limits[order[0]], [&limits[order[1]], &limits[order[2]]]);
        let nested = All::new(nested).expect("three limits");
        drop(nested.try_acquire_each([0, 1, 1]).expect("they have it"));
        let rest: String = ['a', 'b', 'c'].into_iter().collect();
        let rest = rest.replace(words[order[0]].name, "");
        assert_eq!(notes.take(), rest, "{order:?}");
        clock.advance(secs(9).expect("a time"));
    }
}

/// The other caller's limiter of a word.
type Other<'c> = Limiter<TokenBucket, ManualClock, &'c WordCell>;

type Limits<'l, 'w> = All<[&'l Limit<'w>; 3], ManualClock>;

/// Runs a request for a permit of each of three limits. In the first `races` attempts, another
/// caller changes `c` after the request took from `a`, and may change it again after `a` was
/// undone. Returns the answer, the names of the changed words, and what is left.
fn race<T>(
    races: usize,
    order: [usize; 3],
    other: impl Fn(&Other<'_>, bool),
    ask: impl FnOnce(&Limits<'_, '_>, &RefCell<String>) -> T,
) -> (T, String, [u64; 3]) {
    let (clock, notes) = (ManualClock::new(), RefCell::default());
    // The word of `c`, which the other caller changes without a note.
    let c: RefCell<Option<&WordCell>> = RefCell::new(None);
    let (taken, at) = (RefCell::new(0), clock.clone());
    let then = |name| {
        let Some(cell) = *c.borrow() else { return };
        let mut taken = taken.borrow_mut();
        // Every second change of `a` is an undo.
        *taken += usize::from(name == 'a');
        if name == 'a' && *taken <= 2 * races {
            let is_undone = *taken % 2 == 0;
            other(
                &Limiter::with_cell(algorithm(2), at.clone(), cell),
                is_undone,
            );
        }
    };
    let words = words(&notes, &then);
    *c.borrow_mut() = Some(&words[2].cell);
    let limits = limits(&words, &clock);
    let all = All::new(order.map(|index| &limits[index])).expect("three limits");
    let answer = ask(&all, &notes);
    *c.borrow_mut() = None;
    let left = limits.each_ref().map(|limit| limit.available());
    (answer, notes.take(), left)
}

/// The other caller takes all of `c`, and brings it back.
fn raced(races: usize, order: [usize; 3]) -> (Result<(), AllDenied>, String, [u64; 3]) {
    let other = |c: &Other<'_>, is_undone: bool| match is_undone {
        true => c.reset(),
        false => assert_eq!(c.take_up_to(2).n(), 2),
    };
    race(races, order, other, |all, _| all.try_acquire().map(drop))
}

/// Returns the word of an empty limit.
fn empty_word(clock: &ManualClock) -> u64 {
    let word = WordCell::new(0);
    let limiter = Limiter::with_cell(algorithm(2), clock.clone(), &word);
    assert_eq!(limiter.take_up_to(2).n(), 2);
    word.load()
}

#[test]
fn a_request_looks_again_after_a_lost_race() {
    for order in ORDERS {
        for (races, changes) in [(0, "abc"), (1, "abbaabc"), (2, "abbaabbaabc")] {
            let (answer, notes, left) = raced(races, order);
            assert_eq!((answer, notes.as_str()), (Ok(()), changes), "{order:?}");
            assert_eq!(left, [1; 3]);
        }
    }
}

/// Another caller changes a word between a request's look at it and its exchange, and may empty the
/// last limit then. The request keeps what it took before, or gives all of it back.
#[test]
fn a_disturbed_attempt_is_made_again_and_keeps_the_grants_before_it() {
    for (disturbed, name) in ['a', 'b', 'c'].into_iter().enumerate() {
        for empties in [false, true] {
            let (clock, notes) = (ManualClock::new(), RefCell::default());
            let last: RefCell<Option<&WordCell>> = RefCell::new(None);
            let then = |changed| {
                if changed == 'b' {
                    let other = |cell| Limiter::with_cell(algorithm(2), clock.clone(), cell);
                    let _ = last.take().map(|cell| other(cell).take_up_to(2));
                }
            };
            let words = words(&notes, &then);
            words[disturbed].disturb.set(true);
            last.replace(empties.then_some(&words[2].cell));
            let limits = limits(&words, &clock);
            let all = All::new(limits.each_ref()).expect("three limits");
            let granted = all.try_acquire();
            let left = || limits.each_ref().map(|limit| limit.available());
            let mut had = [2, 2, if empties { 0 } else { 2 }];
            if !empties || disturbed < 2 {
                had[disturbed] -= 1;
            }
            match granted {
                Ok(granted) => {
                    assert!(!empties, "{name}");
                    assert_eq!((notes.take().as_str(), left()), ("abc", had.map(|n| n - 1)));
                    assert_eq!(granted.undo(), 3, "{name}");
                }
                Err(denied) => assert_eq!(denied.member(), Some(2), "{name}"),
            }
            assert_eq!(left(), had, "{name}");
        }
    }
}

#[test]
fn a_request_is_denied_after_three_lost_races_and_leaves_nothing_taken() {
    for order in ORDERS {
        let (answer, notes, left) = raced(3, order);
        let denied = answer.expect_err("three races are lost");
        let c = order.iter().position(|index| *index == 2);
        assert_eq!((denied.member(), denied.retry_after()), (c, secs(1)));
        assert_eq!(notes, "abbaabbaabba");
        assert_eq!(left, [2; 3]);
    }
}

/// The other caller keeps the permits: the request looks again, and is denied without another race.
#[test]
fn a_lost_race_undoes_every_member() {
    let (clock, notes) = (ManualClock::new(), RefCell::default());
    let inside = Concurrency::new(2).expect("a limit");
    let log = SlidingLog::with_clock(Quota::per_minute(2), clock.clone()).expect("a log");
    let then = |_: char| drop(log.take_up_to(2));
    let words = words(&notes, &then);
    let limits = limits(&words, &clock);
    let all = All::new((&log, &inside, &limits)).expect("five limits");
    let denied = all.try_acquire().map(drop).expect_err("the log is full");
    assert_eq!((denied.member(), denied.retry_after()), (Some(0), secs(60)));
    assert_eq!(notes.take(), "abccba");
    assert_eq!(limits.each_ref().map(|limit| limit.available()), [2; 3]);
    assert_eq!((inside.inside(), log.available()), (0, 0));
}

#[test]
fn a_lost_race_leaves_a_key() {
    let (_, [rate]) = full([10]);
    let calls = KeyedConcurrency::new(3, 100).expect("a limit");
    let denies = |step, _| {
        (step == Step::Take).then(|| {
            assert_eq!(calls.inside("acme"), 2, "it is taken from before the last");
            Denied::busy(2)
        })
    };
    let last = Scripted::last(&denies);
    let all = All::new((&rate, last.member(), calls.key("acme"))).expect("three limits");
    let denied = all.try_acquire_n(2).map(drop).expect_err("a lost race");
    let expected = (Some(1), Some(Denied::busy(2)));
    assert_eq!((denied.member(), denied.denied()), expected);
    assert_eq!((rate.available(), calls.inside("acme")), (10, 0));
}

/// The caller reserves within a time, and the other one takes all of `c`, into debt.
fn raced_reservation(
    races: usize,
    within: u64,
) -> (Result<Option<Duration>, AllDenied>, String, [u64; 3]) {
    let other = |c: &Other<'_>, is_undone: bool| {
        if !is_undone {
            assert_eq!(c.charge(2).n(), 2);
        }
    };
    race(races, [2, 0, 1], other, |all, notes| {
        let reserved = all.reserve_within(1, Duration::from_secs(within))?;
        let (due, made) = (reserved.time_left(), notes.take());
        assert_eq!((reserved.cancel(), notes.take().as_str()), (3, "cba"));
        *notes.borrow_mut() = made;
        Ok(Some(due))
    })
}

#[test]
fn a_reservation_that_loses_a_race_leaves_nothing_taken_and_looks_again() {
    let late = |answer: Result<_, AllDenied>| answer.expect_err("too late").retry_after();
    let (answer, changes, left) = raced_reservation(0, 0);
    let expected = (Ok(secs(0)), "abc", [2; 3]);
    assert_eq!((answer, changes.as_str(), left), expected);
    // Due when `c` is: all others are taken as of that tick.
    for (races, changes) in [(1, "abbaabc"), (2, "abbaabbaabc")] {
        let (answer, changed, left) = raced_reservation(races, 9);
        let due = secs(2 * races as u64 - 1);
        let expected = (Ok(due), changes, [2, 2, 0]);
        assert_eq!((answer, changed.as_str(), left), expected);
    }
    // The time is over after the first race: the second look denies.
    let (answer, changes, left) = raced_reservation(1, 0);
    let expected = (secs(1), "abba", [2, 2, 0]);
    assert_eq!((late(answer), changes.as_str(), left), expected);
    let (answer, changes, left) = raced_reservation(3, 9);
    assert_eq!((changes.as_str(), left), ("abbaabbaabba", [2, 2, 0]));
    assert_eq!(late(answer), secs(5));
}

/// Each lost race counts as granted and returned, and the denial after the third one once.
#[test]
fn a_counted_member_counts_a_reservation_that_loses_races() {
    let other = |c: &Other<'_>, is_undone: bool| {
        if !is_undone {
            assert_eq!(c.charge(2).n(), 2);
        }
    };
    for races in 0..=3 {
        let (counts, ..) = race(races, [0, 1, 2], other, |all, _| {
            let limits = all.inner().map(Counted::new);
            let all = All::new(limits.each_ref()).expect("three limits");
            assert_eq!(all.reserve(1).is_ok(), races < 3);
            limits.map(|limit| {
                let stats = limit.stats();
                [stats.granted, stats.permits, stats.denied, stats.returned]
            })
        });
        let (lost, granted) = (races as u64, u64::from(races < 3));
        let [before, last] = [
            [lost + granted, lost + granted, 0, lost],
            [granted, granted, 1 - granted, 0],
        ];
        assert_eq!(counts, [before, before, last], "{races}");
    }
}

/// What a reservation took as of a later tick is given back only if no other caller took since.
#[test]
fn a_reservation_that_loses_a_race_gives_back_what_it_took_last() {
    for another_takes in [false, true] {
        let (clock, notes) = (ManualClock::new(), RefCell::default());
        // The words of `a` and `c`, which the other caller changes without a note.
        let cells: RefCell<Option<[&WordCell; 2]>> = RefCell::new(None);
        let then = |_| {
            if let Some([a, c]) = cells.take() {
                let [a, c] =
                    [a, c].map(|cell| Limiter::with_cell(algorithm(2), clock.clone(), cell));
                let actual = a.take_up_to(u64::from(another_takes)).n();
                assert_eq!(actual, u64::from(another_takes));
                assert_eq!(c.take_up_to(2).n(), 2);
            }
        };
        let words = words(&notes, &then);
        cells.replace(Some([&words[0].cell, &words[2].cell]));
        let [a, _, c] = limits(&words, &clock);
        let all = All::new((&a, &c)).expect("two limits");
        assert!(
            all.reserve_within(1, Duration::ZERO).is_err(),
            "another was faster"
        );
        // One permit of `a` is used, and the other one stays taken.
        assert_eq!(a.available(), if another_takes { 0 } else { 2 });
    }
}

#[test]
fn a_request_reads_the_clock_again_after_a_lost_race() {
    let (clock, notes) = (ManualClock::new(), RefCell::default());
    let c: RefCell<Option<(&WordCell, u64)>> = RefCell::new(None);
    // The other caller empties `c`, which refills before the request looks again.
    let then = |_: char| {
        if let Some((cell, empty)) = c.take() {
            cell.swap(empty);
            clock.advance(secs(2).expect("a time"));
        }
    };
    let words = words(&notes, &then);
    let limits = limits(&words, &clock);
    for order in ORDERS {
        limits.iter().for_each(Limiter::reset);
        c.replace(Some((&words[2].cell, empty_word(&clock))));
        let all = All::new(order.map(|index| &limits[index])).expect("three limits");
        let granted = all.try_acquire().expect("`c` is full again");
        let ticks: Vec<_> = (0..3)
            .map(|member| granted.member(member).map(|part| part.at()))
            .collect();
        assert_eq!(ticks, [Some(clock.now()); 3]);
    }
}
