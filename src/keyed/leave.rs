//! Keys that are forgotten.

use super::core::Core;
use super::seen::Found;
use super::slot::Content;
use super::spot::Spot;
use super::stats::Event;
use crate::algorithm::Algorithm;

impl<A: Algorithm> Core<A> {
    /// Whether the key is in the table.
    pub(super) fn tracks(&self, spot: &Spot) -> bool {
        matches!(self.table.look(spot).find(spot.tag()), Found::Live(..))
    }

    /// Whether the key was in the table. It isn't any more.
    pub(super) fn forget(&self, spot: &Spot) -> bool {
        loop {
            let seen = self.table.look(spot);
            // Who has only claimed a slot for it comes afterwards.
            let Found::Live(at, held) = seen.find(spot.tag()) else {
                return false;
            };
            if self.table.exchange(at, held, Content::GIVEN_UP).is_ok() {
                self.events.count(Event::Forgotten);
                return true;
            }
        }
    }
}
