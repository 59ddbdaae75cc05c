//! What is in the slots where a key may be, looked at once.

use super::slot::Content;
use super::spot::Spot;
use super::table::{At, Table};
use crate::primitive::{SLOTS, mistake};

/// A key's home lines and their neighbours, in its own order.
#[derive(Debug)]
pub(super) struct Seen {
    homes: [SeenLine; 2],
    neighbours: Option<[SeenLine; 2]>,
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
        let (homes, neighbours) = spot.lines();
        let look = |[first, second]: [usize; 2]| {
            [
                self.look_at(first, spot.preferred(false), false),
                self.look_at(second, spot.preferred(true), true),
            ]
        };
        let homes = look(homes);
        let never_used = |held: &Content| {
            *held == Content::NEVER_USED || (mistake!(SkipsByFree) && held.is_free())
        };
        let [first, second] = &homes;
        let has_room = first.held.iter().any(never_used) || second.held.iter().any(never_used);
        Seen {
            homes,
            neighbours: neighbours.filter(|_| !has_room).map(look),
        }
    }

    fn look_at(&self, line: usize, preferred: usize, second: bool) -> SeenLine {
        SeenLine {
            line,
            second,
            preferred,
            held: self.load_line(line),
        }
    }
}

impl Seen {
    /// All slots, in the key's own order.
    pub(super) fn slots(&self) -> impl Iterator<Item = (At, Content)> + '_ {
        self.lines().flat_map(SeenLine::slots)
    }

    fn lines(&self) -> impl Iterator<Item = &SeenLine> {
        let neighbours: &[_] = self.neighbours.as_ref().map_or(&[], |lines| lines);
        self.homes.iter().chain(neighbours)
    }

    /// Where the key is, or is to be.
    pub(super) fn find(&self, tag: u64) -> Found {
        let mut pending = None;
        for line in self.lines() {
            for (at, held) in line.slots() {
                if held.is_of(tag, line.second) {
                    if held.is_live() {
                        return Found::Live(at, held);
                    }
                    pending = pending.or(Some((at, held)));
                }
            }
        }
        pending.map_or(Found::Nothing, |(at, held)| Found::Pending(at, held))
    }

    /// What one pair of lines has, else the other: the homes come first.
    fn in_turn<T>(&self, of: impl Fn(&[SeenLine; 2]) -> Option<T>) -> Option<T> {
        of(&self.homes).or_else(|| of(self.neighbours.as_ref()?))
    }

    /// A slot that is nobody's: at home, if there is one, in the line where fewer are taken, or in the first where
    /// hardly any is.
    pub(super) fn free(&self) -> Option<(At, Content)> {
        self.in_turn(|[first, second]| {
            let (taken, others) = (first.taken(), second.taken());
            let (line, other) = match taken < FEW || taken <= others {
                true => (first, second),
                false => (second, first),
            };
            line.free().or_else(|| other.free())
        })
    }

    /// A slot whose key leaves, of those that `is_idle`: at home, if there is one, in the line where more are.
    pub(super) fn idle(&self, is_idle: impl Fn(Content) -> bool) -> Option<(At, Content)> {
        self.in_turn(|[first, second]| {
            let (first, second) = (first.idle(&is_idle), second.idle(&is_idle));
            match first.0 >= second.0 {
                true => first.1,
                false => second.1,
            }
        })
    }
}

impl SeenLine {
    fn slots(&self) -> impl Iterator<Item = (At, Content)> + '_ {
        let slots = self.held.iter().enumerate();
        slots.map(|(place, held)| (self.at(place), *held))
    }

    /// The same, beginning where the key is looked for first.
    fn as_preferred(&self) -> impl Iterator<Item = (At, Content)> + '_ {
        (0..SLOTS).filter_map(|turn| {
            let place = (turn ^ self.preferred) % SLOTS;
            Some((self.at(place), *self.held.get(place)?))
        })
    }

    const fn at(&self, place: usize) -> At {
        At {
            line: self.line,
            place,
            second: self.second,
        }
    }

    /// How many slots are taken.
    fn taken(&self) -> usize {
        self.held.iter().filter(|held| !held.is_free()).count()
    }

    /// One that is not.
    fn free(&self) -> Option<(At, Content)> {
        self.as_preferred().find(|(_, held)| held.is_free())
    }

    /// How many slots have a key that `is_idle`, and one of them.
    fn idle(&self, is_idle: impl Fn(Content) -> bool) -> (usize, Option<(At, Content)>) {
        let idle = |(_, held): &(At, Content)| held.is_live() && is_idle(*held);
        let mut idle = self.as_preferred().filter(idle);
        let first = idle.next();
        (usize::from(first.is_some()) + idle.count(), first)
    }
}
