use core::cmp::Reverse;
use core::iter::Peekable;
use core::slice;
use std::collections::BinaryHeap;

use crate::log::Span;
use tollgate::Tick;

/// The worth of a credit, in units and in permits. For a reset, `permits` is 0.
pub(crate) struct Worth {
    pub(crate) units: i128,
    pub(crate) permits: i128,
    pub(crate) is_reset: bool,
    pub(crate) took: Span,
}

/// The credits that a check has counted so far, and those still to come.
pub(crate) struct Credits<'h> {
    /// The credits to come, sorted by when they began.
    coming: Peekable<slice::Iter<'h, Worth>>,
    /// Counted credits that may overlap an interval that begins now: when each ended, its units and
    /// its permits. The one that ended first is on top.
    back: BinaryHeap<Reverse<(Tick, i128, i128)>>,
    /// The sums of `back`.
    pub(crate) units: i128,
    pub(crate) permits: i128,
}

impl<'h> Credits<'h> {
    /// Makes the credits of a check, with none counted yet. `credits` is sorted by when they began.
    pub(crate) fn new(credits: &'h [Worth]) -> Self {
        Self {
            coming: credits.iter().peekable(),
            back: BinaryHeap::new(),
            units: 0,
            permits: 0,
        }
    }

    /// Counts and returns the next credit that may have come back before the last grant so far,
    /// which ended at `done`. It counts in all intervals that have begun.
    pub(crate) fn receive(&mut self, done: Option<Tick>) -> Option<&'h Worth> {
        let credit = self.coming.next_if(|c| Some(c.took.begun) <= done)?;
        self.units = self.units.saturating_add(credit.units);
        self.permits += credit.permits;
        let entry = (credit.took.done, credit.units, credit.permits);
        self.back.push(Reverse(entry));
        Some(credit)
    }

    /// Forgets credits that ended before `begun`: they count in no interval that begins from now
    /// on.
    pub(crate) fn expire(&mut self, begun: Tick) {
        while let Some(&Reverse((done, units, permits))) = self.back.peek() {
            if done >= begun {
                break;
            }
            self.back.pop();
            self.units = self.units.saturating_sub(units);
            self.permits -= permits;
        }
    }
}
