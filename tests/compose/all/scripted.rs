//! A member that does what a test says.

use tollgate::compose::{Held, Member};
use tollgate::store::Place;

use crate::support::*;

/// A member that grants, unless a test says otherwise. A composition takes from it last if it
/// can't undo.
pub(crate) struct Scripted<'s> {
    pub(crate) can_undo: bool,
    /// Runs at each step of a request. If it returns a denial when the member is checked or taken
    /// from, the member denies.
    pub(crate) at: &'s (dyn Fn(Step, Tick) -> Option<Denied> + Sync),
}

/// A step of a request, as a member sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Check,
    Take,
    GiveBack,
    Count,
}

impl<'s> Scripted<'s> {
    pub(crate) fn new(at: &'s (dyn Fn(Step, Tick) -> Option<Denied> + Sync)) -> Self {
        Self { can_undo: true, at }
    }

    /// Returns a member that is taken from last.
    pub(crate) fn last(at: &'s (dyn Fn(Step, Tick) -> Option<Denied> + Sync)) -> Self {
        Self {
            can_undo: false,
            ..Self::new(at)
        }
    }

    /// Returns the member as one whose type is known only at run time.
    pub(crate) fn member<C>(&self) -> &(dyn Member<C> + Send + Sync + 's) {
        self
    }
}

impl<C> Member<C> for Scripted<'_> {
    fn place(&self) -> Place {
        Place::of(self)
    }

    fn can_undo(&self) -> bool {
        self.can_undo
    }

    fn check(&self, _: u64, now: Tick) -> Result<(), Denied> {
        (self.at)(Step::Check, now).map_or(Ok(()), Err)
    }

    fn take(&self, n: u64, now: Tick) -> Result<Held, Denied> {
        match (self.at)(Step::Take, now) {
            Some(denied) => Err(denied),
            None => Ok(Granted::new(n, now).into()),
        }
    }

    fn available_at(&self, _: Tick) -> u64 {
        1
    }

    fn give_back(&self, held: Held, now: Tick) -> u64 {
        let _ = (self.at)(Step::GiveBack, now);
        held.granted.n()
    }

    fn count(&self, _: bool, _: u64) {
        let _ = (self.at)(Step::Count, Tick::ZERO);
    }
}
