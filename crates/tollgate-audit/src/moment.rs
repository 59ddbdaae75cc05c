//! The grants and charges of one tick.

use crate::log::Taking;
use tollgate::Tick;

/// The takings (grants and charges) of one tick.
#[derive(Clone, Copy)]
pub(crate) struct Moment<'h> {
    pub(crate) tick: Tick,
    takings: &'h [Taking],
    /// The earliest beginning of a grant at this tick or a later one.
    pub(crate) grants_begin: Tick,
    /// The earliest beginning of a taking at this tick or a later one.
    pub(crate) begin: Tick,
}

impl<'h> Moment<'h> {
    /// Makes the moment of `takings`, which are not empty. `start` is the index of the first of
    /// them.
    pub(crate) fn of(
        takings: &'h [Taking],
        start: usize,
        grants_begin: &[Tick],
        begin: &[Tick],
    ) -> Self {
        let of_start = |begun: &[Tick]| begun.get(start).copied().unwrap_or(Tick::MAX);
        Self {
            tick: takings.first().map_or(Tick::MAX, |taking| taking.tick),
            takings,
            grants_begin: of_start(grants_begin),
            begin: of_start(begin),
        }
    }

    pub(crate) fn grants(&self) -> impl Iterator<Item = &'h Taking> {
        self.takings.iter().filter(|taking| !taking.is_charge)
    }

    pub(crate) fn charges(&self) -> impl Iterator<Item = &'h Taking> {
        self.takings.iter().filter(|taking| taking.is_charge)
    }

    pub(crate) fn granted(&self) -> u128 {
        self.grants().map(|taking| u128::from(taking.n)).sum()
    }

    /// Returns when the last grant of this tick ended.
    pub(crate) fn done(&self) -> Option<Tick> {
        self.grants().map(|taking| taking.took.done).max()
    }
}
