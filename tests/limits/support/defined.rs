//! A model that counts is a reference that knows each answer exactly.

use std::ops::RangeInclusive;

use crate::support::model::{Answers, Fraction, Model};
use crate::support::random::Random;
use crate::support::reference::{FIFTY_YEARS, Reference, Span, Wait};
use crate::support::seen::Seen;

const YEAR: u64 = FIFTY_YEARS / 50;

/// How long it takes to what never comes.
const NEVER: Span = Span {
    lo: i128::MAX,
    hi: i128::MAX,
};

impl<M: Model> Reference for M {
    type Mark = M::Mark;

    fn limit(&self) -> u64 {
        Model::limit(self)
    }

    /// The same, one that matters or one beside it, a later one, an earlier one; and seldom one from the
    /// far end of time.
    fn moment(&self, still: u64, random: &mut Random, seen: &mut Seen) -> u64 {
        let period = self.period();
        let beside =
            |random: &mut Random, tick: u64| tick.saturating_add(random.below(3)).saturating_sub(1);
        let target = match random.below(24) {
            0..=5 => still,
            6 => still.saturating_add(1),
            7 => still.saturating_add(random.upto(1_000_000)),
            8..=11 => beside(random, self.edge(still)),
            12 | 13 => {
                let n = random.upto(Model::limit(self));
                beside(random, self.due(still, n).unwrap_or(still))
            }
            14 => beside(random, self.as_new_at(still).max(still)),
            15 => beside(random, still.saturating_add(period)),
            16 | 17 => still.saturating_add(random.upto(period.saturating_mul(3))),
            18 => still.saturating_sub(random.upto(1000)),
            19 => still.saturating_sub(random.upto(period.saturating_mul(2))),
            20 => still.saturating_add(random.upto(period / 8)),
            21 if random.one_in(40) => still.saturating_add(random.below(9 * YEAR)),
            22 if random.one_in(60) => random.below(FIFTY_YEARS),
            23 if random.one_in(150) => {
                seen.note("far away");
                return match random.below(4) {
                    0 => u64::MAX - random.below(2),
                    1 => beside(random, self.horizon()),
                    2 => random.next(),
                    _ => 0,
                };
            }
            _ => still.saturating_add(random.upto(period)),
        };
        if target > FIFTY_YEARS {
            seen.note("fifty years are over");
            return random.upto(FIFTY_YEARS);
        }
        target
    }

    fn available(&self, now: u64) -> Span {
        Span::only(Answers::available(self, now))
    }

    fn wait(&self, now: u64, n: u64) -> Wait {
        match self.due(now, n) {
            Some(due) => Wait {
                span: Span::only(due - now),
                may_be_never: false,
                is_never: false,
            },
            None => Wait {
                span: NEVER,
                may_be_never: true,
                is_never: true,
            },
        }
    }

    fn counted_at(&self, now: u64, _n: u64) -> u64 {
        Model::counted_at(self, now)
    }

    fn remaining(&self, now: u64) -> Span {
        match self.tells_what_remains() {
            true => Reference::available(self, now),
            false => Span::only(0),
        }
    }

    fn as_new_after(&self, now: u64, counted_at: u64) -> Span {
        Span::only(self.as_new_at(now).saturating_sub(counted_at))
    }

    fn delay(&self, now: u64, n: u64) -> u64 {
        match n {
            0 => 0,
            _ => Model::delay(self, now),
        }
    }

    fn take(&mut self, now: u64, n: u64) {
        Model::take(self, now, n);
    }

    fn debt(&self, now: u64) -> Span {
        Span::only(Answers::debt(self, now))
    }

    fn room(&self, now: u64) -> RangeInclusive<u64> {
        let room = Model::room(self, now);
        room..=room
    }

    fn mark(&self, now: u64) -> M::Mark {
        Model::mark(self, now)
    }

    fn undo(&mut self, now: u64, n: u64, mark: M::Mark) -> Option<Span> {
        Model::undo(self, now, n, mark).map(Span::only)
    }

    fn refund(&mut self, now: u64, n: u64) -> Span {
        Span::only(Model::refund(self, now, n))
    }

    fn is_idle(&self, now: u64) -> (bool, bool) {
        let idle = Model::is_idle(self, now);
        (idle, idle)
    }

    fn level(&self, now: u64) -> Option<Fraction> {
        Some(self.weight(self.clock(now)))
    }

    fn reset(&mut self) {
        Model::reset(self);
    }
}
