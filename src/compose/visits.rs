//! What a request does with one member.

use super::denied::AllDenied;
use super::held::Held;
use super::member::Member;
use super::members::Visitor;
use super::slot::Slot;
use crate::clock::Tick;
use crate::store::Prepared;

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
        let checked = member.check(self.n, self.now);
        match checked {
            Ok(done) => Ok(done),
            Err(denied) => Err(AllDenied::of(self.member, name, denied)),
        }
    }
}

/// Takes from a member.
pub(super) struct Take {
    pub(super) n: u64,
    pub(super) now: Tick,
    pub(super) member: usize,
}

impl<C> Visitor<C> for Take {
    type Output = Result<Held, AllDenied>;

    #[inline(always)]
    fn visit<M: Member<C> + ?Sized>(self, member: &M, name: Option<&'static str>) -> Self::Output {
        let taken = member.take(self.n, self.now);
        match taken {
            Ok(done) => Ok(done),
            Err(denied) => Err(AllDenied::of(self.member, name, denied)),
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

/// Looks whether a member would grant, and keeps what it computed.
pub(super) struct Prepare {
    pub(super) n: u64,
    pub(super) now: Tick,
    pub(super) member: usize,
}

impl<C> Visitor<C> for Prepare {
    type Output = Result<Prepared, AllDenied>;

    #[inline(always)]
    fn visit<M: Member<C> + ?Sized>(self, member: &M, name: Option<&'static str>) -> Self::Output {
        let prepared = member.prepare(self.n, self.now);
        match prepared {
            // A member of the user's may have prepared another request, which is not what is kept.
            Ok(done) if done.n() != self.n => Ok(Prepared::checked(self.n, self.now)),
            Ok(done) => Ok(done),
            Err(denied) => Err(AllDenied::of(self.member, name, denied)),
        }
    }
}

/// Takes from a member what it prepared.
pub(super) struct TakePrepared<'p>(pub(super) &'p Prepared);

impl<C> Visitor<C> for TakePrepared<'_> {
    type Output = bool;

    #[inline(always)]
    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> bool {
        member.take_prepared(self.0)
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

/// Gives a grant back.
pub(super) struct GiveBack {
    pub(super) slot: Slot,
    pub(super) now: Tick,
    pub(super) why: Why,
}

impl<C> Visitor<C> for GiveBack {
    type Output = u64;

    #[inline]
    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> u64 {
        match (self.slot.into_held(member), self.why) {
            (None, _) => 0,
            (Some(held), Why::Undone) => member.give_back(held, self.now),
            (Some(held), Why::LostRace) => member.roll_back(held, self.now),
            (Some(held), Why::Cancelled) => member.cancel_as_of(held, self.now),
        }
    }
}

/// Counts a grant that the caller gets.
pub(super) struct CountGranted<'g>(pub(super) &'g Slot);

impl<C> Visitor<C> for CountGranted<'_> {
    type Output = ();

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) {
        if let Some(held) = self.0.held(member) {
            member.count_granted(&held);
        }
    }
}

/// Counts a denial of a request for this many permits.
pub(super) struct CountDenied(pub(super) u64);

impl<C> Visitor<C> for CountDenied {
    type Output = ();

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) {
        member.count_denied(self.0);
    }
}
