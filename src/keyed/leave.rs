//! Keys that leave because somebody says so, and those that are banned.

use core::convert::Infallible;

use super::core::Core;
use super::slot::Content;
use super::spot::Spot;
use super::stats::Event;
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::deed::{Deed, Held};
use crate::outcome::Denied;

impl<A: Algorithm> Core<A> {
    /// Whether the key was in the table. It isn't any more. Who has only claimed a slot for it comes into it afterwards.
    pub(super) fn forget(&self, spot: &Spot) -> bool {
        loop {
            let found = self.table.visit(spot, |at, held| {
                let is_here = held.is_live() && held.is_of(spot.tag, at.second);
                is_here.then_some((at, held))
            });
            let Some((at, held)) = found else {
                return false;
            };
            if self.table.exchange(at, held, Content::GIVEN_UP).is_ok() {
                self.events.count(Event::Forgotten);
                return true;
            }
        }
    }
}

/// The deed of a ban: all permits that there are at its end are taken.
pub(super) struct Ban {
    pub(super) until: Tick,
}

impl<A: Algorithm> Deed<A> for Ban {
    type Answer = ();
    type Refusal = Denied;
    const BANS: bool = true;

    fn run(&mut self, algorithm: &A, held: Held) -> Result<(u64, ()), Denied> {
        let until = self.until.max(held.now);
        let (next, _) = algorithm.take_up_to(held.word, until, u64::MAX);
        Ok((next, ()))
    }

    fn refused(&self, why: fn(u64) -> Denied) -> Option<Denied> {
        Some(why(0))
    }
}

/// The deed of a reset, which ends a ban too.
pub(super) struct Reset;

impl<A> Deed<A> for Reset {
    type Answer = ();
    type Refusal = Infallible;
    const GRANTS: bool = true;

    fn run(&mut self, _algorithm: &A, _held: Held) -> Result<(u64, ()), Infallible> {
        Ok((0, ()))
    }
}
