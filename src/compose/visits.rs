//! What a request does with one member.

use super::denied::AllDenied;
use super::held::Held;
use super::member::Member;
use super::members::Visitor;
use crate::clock::Tick;

/// Looks whether a member would grant.
pub(super) struct Check {
    pub(super) n: u64,
    pub(super) now: Tick,
    pub(super) member: usize,
}

impl<C> Visitor<C> for Check {
    type Output = Result<(), AllDenied>;

    #[inline(always)]
    fn visit<M: Member<C> + ?Sized>(self, member: &M, name: Option<&'static str>) -> Self::Output {
        if let Err(denied) = member.check(self.n, self.now) {
            return Err(AllDenied::of(self.member, name, denied));
        }
        Ok(())
    }
}

/// The longest denial of several members.
// No `Option`: where the denial is not read, its parts are not computed, not even to tell whether
// there is one.
pub(super) struct Denial {
    pub(super) is_any: bool,
    longest: AllDenied,
}

impl Denial {
    #[inline(always)]
    pub(super) const fn none() -> Self {
        Self {
            is_any: false,
            // Not read.
            longest: AllDenied::Line,
        }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, looked: Option<Result<(), AllDenied>>) {
        if let Some(Err(denied)) = looked {
            self.longest = match self.is_any {
                true => self.longest.longer(denied),
                false => denied,
            };
            self.is_any = true;
        }
    }

    #[inline(always)]
    pub(super) const fn longest_of_all(self) -> Result<(), AllDenied> {
        match self.is_any {
            true => Err(self.longest),
            false => Ok(()),
        }
    }
}

/// Takes from a member, and keeps its grant.
pub(super) struct Take<'g> {
    pub(super) n: u64,
    pub(super) now: Tick,
    pub(super) member: usize,
    pub(super) grant: &'g mut Option<Held>,
}

impl<C> Visitor<C> for Take<'_> {
    type Output = Result<(), AllDenied>;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, name: Option<&'static str>) -> Self::Output {
        let taken = match member.take_fast(self.n, self.now, self.grant) {
            Some(taken) => taken,
            None => member
                .take(self.n, self.now)
                .map(|held| *self.grant = Some(held)),
        };
        taken.map_err(|denied| AllDenied::of(self.member, name, denied))
    }
}

/// Takes from a member in one attempt, and keeps its grant. `None` if the attempt does not tell.
pub(super) struct TakeFast<'g>(pub(super) Take<'g>);

impl<C> Visitor<C> for TakeFast<'_> {
    type Output = Option<Result<(), AllDenied>>;

    #[inline(always)]
    fn visit<M: Member<C> + ?Sized>(self, member: &M, name: Option<&'static str>) -> Self::Output {
        let take = self.0;
        match member.take_fast(take.n, take.now, take.grant)? {
            Ok(()) => Some(Ok(())),
            Err(denied) => Some(Err(AllDenied::of(take.member, name, denied))),
        }
    }
}

/// Takes from a member at a later tick.
pub(super) struct TakeAsOf {
    pub(super) n: u64,
    pub(super) due: Tick,
    pub(super) now: Tick,
    pub(super) member: usize,
}

impl<C> Visitor<C> for TakeAsOf {
    type Output = Result<Held, AllDenied>;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, name: Option<&'static str>) -> Self::Output {
        let taken = member.take_as_of(self.n, self.due, self.now);
        taken.map_err(|denied| AllDenied::of(self.member, name, denied))
    }
}

/// Why a grant is given back.
#[derive(Clone, Copy)]
pub(super) enum Why {
    /// The caller undoes it.
    Undone,
    /// Another member denied the request, so the caller never got it.
    LostRace,
    /// It was reserved at a later tick, and is cancelled.
    Cancelled,
}
