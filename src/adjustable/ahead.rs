//! Reservations, and all that waits.

use super::AdjustableAt;
use super::turn::{self, Ahead, part_of};
use crate::algorithm::Reserve;
use crate::algorithm::Settings;
use crate::clock::Tick;
use crate::outcome::{Denied, Granted};

impl<A: Reserve + Settings, C> AdjustableAt<'_, A, C> {
    /// Takes `n` permits, if they are there, or will be at `latest` or sooner: [`Granted::due`] says when.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they won't: `retry_after` says by how much they will be too late.
    #[inline]
    pub fn reserve_until(&self, n: u64, latest: Tick) -> Result<Granted, Denied> {
        let now = self.now;
        turn::update::<A, _>(&self.gate.ring, Ahead { now, n, latest })
    }

    /// Takes `n` permits that are there, in one turn: `None` may mean anything but that they were taken.
    #[inline(always)]
    pub(crate) fn reserve_once(&self, n: u64) -> Option<Granted> {
        let (now, latest) = (self.now, self.now);
        turn::try_once::<A, _>(&self.gate.ring, Ahead { now, n, latest })
    }

    /// How many permits were taken that are not due yet, a started one counted whole.
    #[inline]
    pub fn waiting(&self) -> u64 {
        let now = self.now;
        self.gate
            .change(move |algorithm: &A, pair| (pair.word, algorithm.waiting(pair.word, now)))
    }

    /// Gives back as much of the last `n` permits of a reservation as can be: what is kept of it, which may
    /// be due sooner now, and how many came back. Of one from before the quota was changed nothing does.
    #[inline]
    pub fn cancel(&self, granted: Granted, n: u64) -> (Granted, u64) {
        let now = self.now;
        self.gate.change(move |algorithm: &A, pair| {
            if granted.part() != part_of(pair.version) {
                let kept = granted.n().saturating_sub(n);
                return (pair.word, (granted.with_n(kept), 0));
            }
            let (next, kept, back) = algorithm.cancel(pair.word, now, &granted, n);
            (next, (kept, back))
        })
    }
}
