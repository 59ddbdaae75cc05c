//! What is in the slots where a key may be, looked at once.

use super::slot::Content;
use super::spot::Spot;
use super::table::{At, Table};
use crate::primitive::{SLOTS, mistake};

/// A key's home lines and their neighbours, in its own order.
#[derive(Debug)]
pub(super) struct Seen {
    homes: [Option<SeenLine>; 2],
    neighbours: [Option<SeenLine>; 2],
}

#[derive(Debug, Clone, Copy)]
pub(super) struct SeenLine {
    line: usize,
    second: bool,
    /// Which of its slots the key prefers.
    preferred: usize,
    held: [Content; SLOTS],
}

/// What a look for a key finds.
pub(super) enum Found {
    Live(At, Content),
    Pending(At, Content),
    Nothing,
}

/// A line with fewer slots taken is as good as any.
const FEW: usize = SLOTS / 2;

impl Table {
    /// Looks at the slots where a key may be. At the neighbours only if there is no slot in the home lines that was
    /// never used: whoever put the key into a neighbour found none there, and they don't come back.
    pub(super) fn look(&self, spot: &Spot) -> Seen {
        let [first, second, third, fourth] = spot.lines();
        let look = |line: Option<(usize, bool)>| Some(self.look_at(spot, line?));
        let homes = [first, second].map(look);
        let never_used = |held: &Content| {
            *held == Content::NEVER_USED || (mistake!(SkipsByFree) && held.is_free())
        };
        let mut held = homes.iter().flatten().flat_map(|line| &line.held);
        let neighbours = match held.any(never_used) {
            true => [None; 2],
            false => [third, fourth].map(look),
        };
        Seen { homes, neighbours }
    }

    fn look_at(&self, spot: &Spot, (line, second): (usize, bool)) -> SeenLine {
        let mut held = [Content::NEVER_USED; SLOTS];
        for (place, held) in held.iter_mut().enumerate() {
            *held = self.load(At {
                line,
                place,
                second,
            });
        }
        SeenLine {
            line,
            second,
            preferred: spot.preferred(second),
            held,
        }
    }
}

impl Seen {
    /// All slots, in the key's own order.
    pub(super) fn slots(&self) -> impl Iterator<Item = (At, Content)> + '_ {
        let lines = self.homes.iter().chain(&self.neighbours).flatten();
        lines.flat_map(SeenLine::slots)
    }

    /// Where the key is, or is to be.
    pub(super) fn find(&self, tag: u64) -> Found {
        let mut pending = Found::Nothing;
        for (at, held) in self.slots().filter(|(at, held)| held.is_of(tag, at.second)) {
            if held.is_live() {
                return Found::Live(at, held);
            }
            if let Found::Nothing = pending {
                pending = Found::Pending(at, held);
            }
        }
        pending
    }

    /// A slot that is nobody's: at home, if there is one, in the line where fewer are taken, or in the first where
    /// hardly any is.
    pub(super) fn free(&self) -> Option<(At, Content)> {
        let free_in = |[first, second]: &[Option<SeenLine>; 2]| {
            let (first, second) = (Self::free_of(first), Self::free_of(second));
            match first.0 < FEW || first.0 <= second.0 {
                true => first.1.or(second.1),
                false => second.1.or(first.1),
            }
        };
        free_in(&self.homes).or_else(|| free_in(&self.neighbours))
    }

    /// How many slots of a line are taken, and one that is not.
    fn free_of(line: &Option<SeenLine>) -> (usize, Option<(At, Content)>) {
        let Some(line) = line else {
            return (SLOTS, None);
        };
        let taken = line.held.iter().filter(|held| !held.is_free()).count();
        (taken, line.as_preferred().find(|(_, held)| held.is_free()))
    }

    /// A slot whose key leaves, of those that `is_idle`: at home, if there is one, in the line where more are.
    pub(super) fn idle(&self, is_idle: impl Fn(Content) -> bool) -> Option<(At, Content)> {
        let idle_of = |line: &Option<SeenLine>| {
            let mut idle = (0_usize, None);
            for slot in line.iter().flat_map(SeenLine::as_preferred) {
                if slot.1.is_live() && is_idle(slot.1) {
                    idle = (idle.0 + 1, idle.1.or(Some(slot)));
                }
            }
            idle
        };
        let idle_in = |[first, second]: &[Option<SeenLine>; 2]| {
            let (first, second) = (idle_of(first), idle_of(second));
            match first.0 >= second.0 {
                true => first.1,
                false => second.1,
            }
        };
        idle_in(&self.homes).or_else(|| idle_in(&self.neighbours))
    }
}

impl SeenLine {
    fn slots(&self) -> impl Iterator<Item = (At, Content)> + '_ {
        (0..SLOTS).filter_map(|place| self.slot(place))
    }

    /// The same, beginning where the key is looked for first.
    fn as_preferred(&self) -> impl Iterator<Item = (At, Content)> + '_ {
        (0..SLOTS).filter_map(|turn| self.slot((turn ^ self.preferred) % SLOTS))
    }

    fn slot(&self, place: usize) -> Option<(At, Content)> {
        let held = *self.held.get(place)?;
        let at = At {
            line: self.line,
            place,
            second: self.second,
        };
        Some((at, held))
    }
}
