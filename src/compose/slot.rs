//! Where a composition keeps the grants of its members.

use core::mem;

use super::held::Held;
use super::member::Member;
use crate::store::Prepared;

/// Storage for the grant of one member. Only the composition reads it; an implementation of
/// [`Members`](super::Members) passes it on.
///
/// ```
/// use tollgate::clock::SystemClock;
/// use tollgate::compose::{Members, Slot};
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), tollgate::error::ComposeError> {
/// let limit = Limiter::token_bucket(Quota::per_second(1))?;
/// let mut grants: [Slot; 2] = Members::<SystemClock>::no_grants(&[&limit, &limit]);
/// assert!(Members::<SystemClock>::slot(&[&limit, &limit], &mut grants, 1).is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Slot(Kept);

#[derive(Debug, Default)]
enum Kept {
    #[default]
    Nothing,
    /// The permits were taken, but the grant is made only when it is read.
    Prepared(Prepared),
    Held(Held),
}

impl From<Held> for Slot {
    #[inline(always)]
    fn from(held: Held) -> Self {
        Self(Kept::Held(held))
    }
}

impl From<Prepared> for Slot {
    #[inline(always)]
    fn from(prepared: Prepared) -> Self {
        Self(Kept::Prepared(prepared))
    }
}

impl Slot {
    /// Removes the grant, if there is one.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<Self> {
        match self.0 {
            Kept::Nothing => None,
            _ => Some(mem::take(self)),
        }
    }

    /// Returns how many permits were taken.
    #[inline]
    pub(super) const fn n(&self) -> Option<u64> {
        match &self.0 {
            Kept::Nothing => None,
            Kept::Prepared(prepared) => Some(prepared.n()),
            Kept::Held(held) => Some(held.granted.n()),
        }
    }

    /// Returns the grant if it is made, to change it.
    pub(super) const fn held_mut(&mut self) -> Option<&mut Held> {
        match &mut self.0 {
            Kept::Nothing | Kept::Prepared(_) => None,
            Kept::Held(held) => Some(held),
        }
    }

    /// Returns the grant of this member, if there is one.
    #[inline]
    pub(super) fn into_held<C, M: Member<C> + ?Sized>(self, member: &M) -> Option<Held> {
        match self.0 {
            Kept::Nothing => None,
            Kept::Prepared(prepared) => Some(member.grant_prepared(&prepared).into()),
            Kept::Held(held) => Some(held),
        }
    }

    /// Returns a copy of the grant of this member, if there is one. The caller must give back only
    /// one of the two.
    #[inline]
    pub(super) fn held<C, M: Member<C> + ?Sized>(&self, member: &M) -> Option<Held> {
        match &self.0 {
            Kept::Nothing => None,
            Kept::Prepared(prepared) => Some(member.grant_prepared(prepared).into()),
            Kept::Held(held) => Some(held.again()),
        }
    }
}
