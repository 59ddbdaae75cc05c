use core::fmt;

use super::Adjustable;
use super::turn;
use crate::algorithm::Settings;
use crate::clock::Tick;
use crate::deed::{Change, Deed, verbs_of_deeds};
use crate::outcome::{Denied, Granted};

/// A view of an [`Adjustable`] limiter at one tick: [`Adjustable::at`] makes one. Its verbs are those of the
/// limiter.
pub struct AdjustableAt<'a, A, C> {
    pub(super) gate: &'a Adjustable<A, C>,
    pub(super) now: Tick,
}

verbs_of_deeds!(AdjustableAt, Settings);

impl<A: Settings, C> AdjustableAt<'_, A, C> {
    /// The tick of this view.
    #[inline]
    pub const fn now(&self) -> Tick {
        self.now
    }

    /// [`Adjustable::reset`].
    #[inline]
    pub fn reset(&self) {
        let Ok(()) = self.update(Change(|_: &A, _| (0, ())));
    }

    #[inline(always)]
    fn update<D: Deed<A>>(&self, deed: D) -> Result<D::Answer, D::Refusal> {
        turn::update(&self.gate.ring, self.now, deed)
    }

    #[inline(always)]
    fn try_once<D: Deed<A>>(&self, deed: D) -> Option<D::Answer> {
        turn::try_once(&self.gate.ring, self.now, deed)
    }
}

impl<A, C> Clone for AdjustableAt<'_, A, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, C> Copy for AdjustableAt<'_, A, C> {}

impl<A: fmt::Debug, C: fmt::Debug> fmt::Debug for AdjustableAt<'_, A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdjustableAt")
            .field("gate", &self.gate)
            .field("now", &self.now)
            .finish()
    }
}
