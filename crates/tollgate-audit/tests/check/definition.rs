//! Compares the check with the definition of each bound, interval by interval, on random histories.

use core::time::Duration;

use super::Kind::{self, Charge, GiveBack, Grant, Reset};
use super::{Event, history};
use tollgate::algorithm::Rounding;
use tollgate::{Quota, SlidingWindow};
use tollgate_audit::{Bound, Bounded};

/// A bound, and its meaning written without the code under test.
struct Promise {
    name: &'static str,
    bound: Bound,
    /// Units in a permit, and in a burst.
    permit: i128,
    burst: i128,
    /// The refill between two ticks, in units, or `None` if no interval contains both.
    comes: fn(u64, u64) -> Option<i128>,
    /// Whether a charge at the first tick counts against a grant at the second.
    owed: fn(u64, u64) -> bool,
}

const PERIOD: u64 = 10;
const OFFSET: u64 = 3;

fn edges(from: u64, to: u64) -> i128 {
    let begins = |tick: &u64| (tick + PERIOD - OFFSET).is_multiple_of(PERIOD);
    (from + 1..=to).filter(begins).count() as i128
}

/// Counts the slots that begin after one tick and not after the other.
fn slots(from: u64, to: u64, length: u64, lead: u64) -> u64 {
    let begins = |tick: &u64| (tick + lead).is_multiple_of(length);
    (from + 1..=to).filter(begins).count() as u64
}

fn steps(length: u64) -> i128 {
    (0..).find(|k| k * PERIOD >= length).unwrap_or(0).into()
}

fn promises() -> [Promise; 9] {
    let period = Duration::from_nanos(PERIOD);
    let offset = Duration::from_nanos(OFFSET);
    let always = |_, _| true;
    let permits = |name, bound, comes| Promise {
        name,
        bound,
        permit: 1,
        burst: 3,
        comes,
        owed: always,
    };
    let two_of_three = Quota::per(2, period).burst(3);
    let three = Quota::per(3, period);
    let sliding = SlidingWindow::new(three)
        .expect("a quota")
        .rounding(Rounding::Down)
        .offset(offset);
    [
        Promise {
            permit: 10,
            burst: 30,
            ..permits("quota", super::bound(), |from, to| Some((to - from).into()))
        },
        Promise {
            permit: 10,
            burst: 35,
            ..permits(
                "interval",
                Bound::of_interval(period, Duration::from_nanos(25)).expect("an interval"),
                |from, to| Some((to - from).into()),
            )
        },
        permits(
            "windows",
            Bound::of_windows(three).expect("a quota").offset(offset),
            |from, to| (edges(from, to) == 0).then_some(0),
        ),
        permits(
            "refills",
            Bound::of_refills(two_of_three)
                .expect("a quota")
                .offset(offset),
            |from, to| Some(2 * edges(from, to)),
        ),
        permits(
            "steps",
            Bound::of_steps(two_of_three).expect("a quota"),
            |from, to| Some(2 * steps(to - from)),
        ),
        permits("log", Bound::of_log(three).expect("a quota"), |from, to| {
            (to - from < PERIOD).then_some(0)
        }),
        permits(
            "slots",
            Bound::of_slots(three, 5).expect("a quota"),
            |from, to| (slots(from, to, 2, 0) < 5).then_some(0),
        ),
        permits(
            "slots elsewhere on the clock",
            Bound::of_slots(three, 2).expect("a quota").offset(offset),
            |from, to| (slots(from, to, 5, 2) < 2).then_some(0),
        ),
        Promise {
            permit: 10,
            burst: 39,
            owed: |charged, now| edges(charged, now) == 0,
            ..permits("sliding, rounded down", sliding.bound(), |from, to| {
                Some(i128::from(3 * (to - from)))
            })
        },
    ]
}

impl Promise {
    /// Returns what a reset is worth: a burst, and the refill while the ticks before and after it
    /// overlap.
    fn worth(&self, events: &[Event], reset: &Event) -> i128 {
        let before = takings(events).filter(|e| e.3[0] <= reset.3[1]);
        let after = takings(events).filter(|e| e.3[1] >= reset.3[0]);
        let (before, after) = (before.map(|e| e.0).max(), after.map(|e| e.0).min());
        let overlap = match (before, after) {
            (Some(latest), Some(earliest)) if latest > earliest => (self.comes)(earliest, latest),
            _ => (self.comes)(0, 0),
        };
        // If no interval crosses an edge, there is no refill.
        self.burst + overlap.unwrap_or(0)
    }

    /// Returns whether all intervals between grants keep the bound, with or without charges.
    fn is_kept(&self, events: &[Event], with_charges: bool) -> bool {
        let counts = |e: &&Event| e.1 == Grant || with_charges && e.1 == Charge;
        let begin = || events.iter().filter(counts).map(|event| event.0);
        let end = || of(events, Grant).map(|event| event.0);
        begin().all(|from| {
            let mut to = end().filter(|to| *to >= from);
            to.all(|to| self.holds(events, from, to, counts))
        })
    }

    fn holds(
        &self,
        events: &[Event],
        from: u64,
        to: u64,
        counts: impl Fn(&&Event) -> bool,
    ) -> bool {
        let Some(comes) = (self.comes)(from, to) else {
            return true;
        };
        let later = |e: &&Event| e.0 >= from;
        let begun = events.iter().filter(later).filter(&counts);
        let begun = begun.map(|e| e.3[0]).min();
        let done = of(events, Grant).filter(|e| e.0 <= to);
        let done = done.map(|e| e.3[1]).max();
        let next = of(events, Grant).filter(|e| e.0 >= to);
        let next = next.map(|e| e.3[0]).min();
        let taken = events.iter().filter(&counts).filter(|e| {
            let is_owed = || e.0 < to && Some(e.3[1]) < next && (self.owed)(e.0, to);
            (from..=to).contains(&e.0) && (e.1 == Grant || is_owed())
        });
        let taken: u64 = taken.map(|event| event.2).sum();
        let overlaps = |e: &&Event| Some(e.3[0]) <= done && Some(e.3[1]) >= begun;
        let gave_back: u64 = of(events, GiveBack).filter(overlaps).map(|e| e.2).sum();
        let resets = of(events, Reset).filter(overlaps);
        let resets: i128 = resets.map(|reset| self.worth(events, reset)).sum();
        (i128::from(taken) - i128::from(gave_back)) * self.permit - resets <= self.burst + comes
    }
}

fn of(events: &[Event], kind: Kind) -> impl Iterator<Item = &Event> {
    events.iter().filter(move |event| event.1 == kind)
}

fn takings(events: &[Event]) -> impl Iterator<Item = &Event> {
    let kinds = [Grant, Charge];
    events.iter().filter(move |event| kinds.contains(&event.1))
}

/// Generates small random histories of these kinds of events.
struct Random {
    seed: u64,
    kinds: &'static [Kind],
}

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.seed >> 33) % end
    }

    fn events(&mut self) -> Vec<Event> {
        let length = self.below(8) + 1;
        (0..length).map(|_| self.event()).collect()
    }

    fn event(&mut self) -> Event {
        let kind = self.kinds[self.below(self.kinds.len() as u64) as usize];
        let n = match kind {
            Reset => 1,
            _ => self.below(3) + 1,
        };
        let (tick, begun) = (self.below(60), self.below(60));
        let took = [[begun, begun + self.below(20)], [tick, tick]];
        (tick, kind, n, took[self.below(2) as usize])
    }
}

#[test]
fn the_check_agrees_with_the_definition() {
    let mut random = Random {
        seed: 0x5eed,
        kinds: &[Grant, Grant, Grant, GiveBack, Reset],
    };
    for promise in promises() {
        let (mut kept, mut broken) = (0, 0);
        for _ in 0..20_000 {
            let events = random.events();
            let right = promise.is_kept(&events, false);
            let found = history(&events).check(&promise.bound);
            assert_eq!(found.is_ok(), right, "{}: {events:?}", promise.name);
            *(if right { &mut kept } else { &mut broken }) += 1;
        }
        let name = promise.name;
        assert!(
            kept > 1000 && broken > 1000,
            "{name}: {kept} kept, {broken} broken"
        );
    }
}

/// With charges, the grants alone are still checked exactly. Any further excess is in an interval
/// that charges have filled.
#[test]
fn charges_hide_no_excess_and_cause_no_false_one() {
    let mut random = Random {
        seed: 0xc4a6,
        kinds: &[Grant, Grant, Grant, Charge, GiveBack, Reset],
    };
    for promise in promises() {
        let mut by_charges = 0;
        for _ in 0..20_000 {
            let events = random.events();
            let by_grants = promise.is_kept(&events, false);
            match history(&events).check(&promise.bound) {
                Ok(_) => assert!(by_grants, "{}: {events:?}", promise.name),
                Err(_) if by_grants => {
                    let name = promise.name;
                    assert!(!promise.is_kept(&events, true), "{name}: {events:?}");
                    by_charges += 1;
                }
                Err(_) => {}
            }
        }
        assert!(by_charges > 100, "{}: {by_charges}", promise.name);
    }
}

/// The numbers of an excess are those of its interval.
#[test]
fn an_excess_describes_its_interval() {
    let mut random = Random {
        seed: 0xe8ce,
        kinds: &[Grant],
    };
    for promise in promises() {
        let mut found = 0;
        for _ in 0..5000 {
            let events = random.events();
            let Err(excess) = history(&events).check(&promise.bound) else {
                continue;
            };
            let (from, to) = (excess.from.as_nanos(), excess.to.as_nanos());
            let inside = events.iter().filter(|e| (from..=to).contains(&e.0));
            let granted: u64 = inside.map(|e| e.2).sum();
            let comes = (promise.comes)(from, to).expect("an interval");
            let allowed = (promise.burst + comes) / promise.permit;
            let expected = (granted.into(), allowed);
            assert_eq!((excess.granted, excess.allowed as i128), expected);
            assert!(excess.granted > allowed, "{}: {excess:?}", promise.name);
            found += 1;
        }
        assert!(found > 500, "{}: {found}", promise.name);
    }
}
