//! Keys that are put into a table which nobody uses yet.

use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::keyed::plans::Plans;
use crate::keyed::slot::Content;
use crate::keyed::spot::Spot;
use crate::keyed::table::{At, Table};
use crate::primitive::SLOTS;

/// A table that is being filled.
pub(super) struct Fill<'p, A> {
    pub(super) table: Table,
    plans: &'p Plans<A>,
    now: Tick,
    /// How many keys are in it.
    pub(super) keys: u64,
    /// How many were, or came, and have given way.
    pub(super) no_room: u64,
}

impl<'p, A: Algorithm> Fill<'p, A> {
    pub(super) const fn new(table: Table, plans: &'p Plans<A>, now: Tick) -> Self {
        Self {
            table,
            plans,
            now,
            keys: 0,
            no_room: 0,
        }
    }

    /// Puts a key into the table, or gives it this content, if it is there already. Where there is no room, the one that
    /// is nearest to idle gives way.
    pub(super) fn put(&mut self, spot: &Spot, of: impl Fn(bool) -> Content) {
        let there = self
            .table
            .visit(spot, |at, held| held.is_of(spot.tag).then_some((at, held)));
        if let Some((at, held)) = there {
            self.write(at, held, of(at.second));
        } else if let Some(at) = self.room(spot) {
            self.write(at, Content::NEVER_USED, of(at.second));
            self.keys = self.keys.saturating_add(1);
        } else if let Some((at, held)) = self.moved_on(spot) {
            self.write(at, held, of(at.second));
            self.keys = self.keys.saturating_add(1);
        } else {
            self.no_room = self.no_room.saturating_add(1);
            let own = self.plans.idle_at(of(false), self.now);
            match self.nearest_to_idle(spot) {
                Some((idle_at, at, held)) if idle_at < own => self.write(at, held, of(at.second)),
                _ => {}
            }
        }
    }

    fn write(&self, at: At, held: Content, next: Content) {
        // Nobody else writes there.
        let _ = self.table.exchange(at, held, next);
    }

    /// A slot that was never used: in the home line that is less in use, or, when both are full, in a neighbour. (That is
    /// where a key is looked for.)
    fn room(&self, spot: &Spot) -> Option<At> {
        let [first, second, third, fourth] = spot.lines();
        self.less_used(spot, [first, second])
            .or_else(|| self.less_used(spot, [third, fourth]))
    }

    fn less_used(&self, spot: &Spot, lines: [Option<(usize, bool)>; 2]) -> Option<At> {
        let mut best = None;
        for (line, second) in lines.into_iter().flatten() {
            let free = |(_, held): &(At, Content)| *held == Content::NEVER_USED;
            let count = self.table.slots_of(line).filter(free).count();
            let slots = (0..SLOTS).map(|turn| At {
                line,
                place: (turn ^ spot.preferred(second)) % SLOTS,
                second,
            });
            let mut slots = slots.filter(|at| self.table.load(*at) == Content::NEVER_USED);
            if best.is_none_or(|(most, _)| count > most) {
                best = slots.next().map(|at| (count, at)).or(best);
            }
        }
        best.map(|(_, at)| at)
    }

    /// A key that is where this one may be, and has been put where it may be too: what is there now is left over.
    fn moved_on(&self, spot: &Spot) -> Option<(At, Content)> {
        let pairs = self.table.pairs();
        self.table.visit(spot, |at, held| {
            let hash = Spot::hash(at.line, held.tag(), held.is_second(), pairs)?;
            let next = self.room(&self.table.spot(hash))?;
            self.write(next, Content::NEVER_USED, held.with_second(next.second));
            Some((at, held))
        })
    }

    /// Of the keys that are where this one may be.
    fn nearest_to_idle(&self, spot: &Spot) -> Option<(Tick, At, Content)> {
        let mut nearest: Option<(Tick, At, Content)> = None;
        let _ = self.table.visit(spot, |at, held| {
            let idle_at = self.plans.idle_at(held, self.now);
            if nearest.is_none_or(|(soonest, ..)| idle_at < soonest) {
                nearest = Some((idle_at, at, held));
            }
            None::<()>
        });
        nearest
    }
}
