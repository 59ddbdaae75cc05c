use core::cmp::Reverse;
use core::iter::Peekable;
use core::slice;
use std::collections::BinaryHeap;

use super::log::Span;
use crate::clock::Tick;

/// What came back, in units, and in permits if it named any.
pub(super) struct Worth {
    pub(super) units: i128,
    pub(super) permits: i128,
    pub(super) is_reset: bool,
    pub(super) took: Span,
}

/// What came back, as a check meets it.
pub(super) struct Credits<'h> {
    /// By its beginning, and not before now.
    coming: Peekable<slice::Iter<'h, Worth>>,
    /// What may still overlap with an interval that begins now, by its end.
    back: BinaryHeap<Reverse<(Tick, i128, i128)>>,
    /// How much that is.
    pub(super) units: i128,
    pub(super) permits: i128,
}

impl<'h> Credits<'h> {
    /// All of these are still to come. They are sorted by their beginning.
    pub(super) fn new(credits: &'h [Worth]) -> Self {
        Self {
            coming: credits.iter().peekable(),
            back: BinaryHeap::new(),
            units: 0,
            permits: 0,
        }
    }

    /// The next one that may have come back before the last of the grants so far, which ended at
    /// `done`. It counts in all intervals that have begun.
    pub(super) fn receive(&mut self, done: Option<Tick>) -> Option<&'h Worth> {
        let credit = self.coming.next_if(|c| Some(c.took.begun) <= done)?;
        self.units = self.units.saturating_add(credit.units);
        self.permits += credit.permits;
        let entry = (credit.took.done, credit.units, credit.permits);
        self.back.push(Reverse(entry));
        Some(credit)
    }

    /// Forgets what came back before `begun`: it counts in no interval that is still to begin.
    pub(super) fn expire(&mut self, begun: Tick) {
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
