//! How a decision came about, with the permits that it holds.

use std::ops::Deref;

use tollgate::Denied;
use tollgate::compose::{All, AllGranted, Held, Within};
use tollgate::error::ComposeError;

use super::asks::Asks;
use super::many::Many;
use crate::choose::Why;
use crate::limit::PolicyClock;
use crate::policy::Policy;

pub(crate) type Composed<R, C> = All<Asks<R, C>, C>;

#[expect(
    clippy::large_enum_variant,
    reason = "a box would allocate for each decision"
)]
pub(crate) enum State<R: Deref<Target = Policy<C>>, C: PolicyClock> {
    /// No limit applies.
    Free(R, Option<Why>),
    /// Denied without asking a limit, for one of the sets of facts.
    Refused(R, Why, u32),
    /// The limits have different clocks.
    Invalid(ComposeError),
    /// The only limit grants it, which is a rate, so a decision that is dropped has nothing to
    /// leave. Or this limit denies it.
    Asked(Asks<R, C>, Result<Held, (usize, Denied)>),
    /// All limits grant it.
    Granted(AllGranted<Within<Composed<R, C>>, Asks<R, C>, C>),
    /// More limits than a composition has members grant it.
    Many(Box<Many<R, C>>),
}

impl<R: Deref<Target = Policy<C>>, C: PolicyClock> State<R, C> {
    pub(crate) const fn is_allowed(&self) -> bool {
        matches!(
            self,
            Self::Free(..) | Self::Asked(_, Ok(_)) | Self::Granted(_) | Self::Many(_)
        )
    }

    /// Gives the permits back, as far as they can be, apart from those of a single rate. Returns
    /// how many came back.
    pub(crate) fn undo(&mut self) -> u64 {
        match self {
            Self::Granted(granted) => granted.undo_each(),
            Self::Many(many) => many.undo(),
            _ => 0,
        }
    }

    pub(crate) fn asks(&self) -> Option<&Asks<R, C>> {
        match self {
            Self::Free(..) | Self::Refused(..) | Self::Invalid(_) => None,
            Self::Asked(asks, _) => Some(asks),
            Self::Granted(granted) => Some(granted.composition().inner()),
            Self::Many(many) => Some(&many.asks),
        }
    }

    pub(crate) fn policy(&self) -> Option<&R> {
        match self {
            Self::Free(policy, _) | Self::Refused(policy, ..) => Some(policy),
            _ => self.asks().map(|asks| &asks.policy),
        }
    }
}
