//! Every counting model is a reference that knows each answer exactly.

use std::ops::RangeInclusive;

use crate::support::model::{Answers, Fraction, Model};
use crate::support::reference::{Reference, Span, Wait};

impl<M: Model> Reference for M {
    type Mark = M::Mark;

    fn limit(&self) -> u64 {
        Model::limit(self)
    }

    fn period(&self) -> u64 {
        Model::period(self)
    }

    fn edge(&self, now: u64) -> u64 {
        Model::edge(self, now)
    }

    fn horizon(&self) -> Option<u64> {
        Some(Model::horizon(self))
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
            None => Wait::NEVER,
        }
    }

    fn counted_at(&self, now: u64, _n: u64) -> u64 {
        Model::counted_at(self, now)
    }

    fn remaining(&self, now: u64) -> Span {
        match self.reports_remaining() {
            true => Reference::available(self, now),
            false => Span::only(0),
        }
    }

    fn as_new_after(&self, now: u64, counted_at: u64) -> Span {
        Span::only(self.as_new_at(now).saturating_sub(counted_at))
    }

    fn delay(&self, now: u64, n: u64) -> Span {
        Span::only(if n == 0 { 0 } else { Model::delay(self, now) })
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
