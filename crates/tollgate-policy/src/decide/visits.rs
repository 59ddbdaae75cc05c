//! What is done with one limit of a request.

use tollgate::clock::Clock;
use tollgate::compose::{Held, Member, Visitor};
use tollgate::outcome::Settled;
use tollgate::store::Place;
use tollgate::{Denied, Tick};

/// Takes permits.
pub(crate) struct Take {
    pub(crate) n: u64,
    pub(crate) now: Tick,
}

impl<C> Visitor<C> for Take {
    type Output = Result<Held, Denied>;

    #[inline]
    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> Self::Output {
        member.take(self.n, self.now)
    }
}

/// Returns whether a limit has a clock.
pub(crate) struct HasClock;

impl<C> Visitor<C> for HasClock {
    type Output = bool;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> bool {
        member.clock().is_some()
    }
}

/// Returns how many permits a limit has.
pub(crate) struct Available(pub(crate) Tick);

impl<C> Visitor<C> for Available {
    type Output = u64;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> u64 {
        member.available_at(self.0)
    }
}

/// Returns what a limit would answer.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    pub(crate) n: u64,
    pub(crate) now: Tick,
}

impl<C> Visitor<C> for Look {
    type Output = Option<Denied>;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> Option<Denied> {
        member.check(self.n, self.now).err()
    }
}

/// Settles the cost of a grant.
pub(crate) struct Correct {
    pub(crate) held: Held,
    pub(crate) actual: u64,
    pub(crate) now: Tick,
}

impl<C> Visitor<C> for Correct {
    type Output = Settled;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> Settled {
        member.correct(self.held, self.actual, self.now)
    }
}

/// Gives a grant back.
pub(crate) struct GiveBack {
    pub(crate) held: Held,
    pub(crate) now: Tick,
}

impl<C> Visitor<C> for GiveBack {
    type Output = u64;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> u64 {
        member.give_back(self.held, self.now)
    }
}

/// Gives a grant back that lost a race.
pub(crate) struct RollBack {
    pub(crate) held: Held,
    pub(crate) now: Tick,
}

impl<C> Visitor<C> for RollBack {
    type Output = u64;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> u64 {
        member.roll_back(self.held, self.now)
    }
}

/// Leaves a concurrency.
pub(crate) struct Leave<'h>(pub(crate) &'h Held);

impl<C> Visitor<C> for Leave<'_> {
    type Output = bool;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> bool {
        member.leave(self.0)
    }
}

/// Lets a limit that counts its answers count a denial of a request for this many permits.
pub(crate) struct CountDenied(pub(crate) u64);

impl<C> Visitor<C> for CountDenied {
    type Output = ();

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) {
        member.count(false, self.0);
    }
}

/// Returns where the state of a limit is.
pub(crate) struct PlaceOf;

impl<C> Visitor<C> for PlaceOf {
    type Output = Place;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> Place {
        member.place()
    }
}

/// Returns which clock a limit has.
pub(crate) struct ClockId;

impl<C: Clock> Visitor<C> for ClockId {
    type Output = Option<usize>;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> Self::Output {
        member.clock().map(Clock::identity)
    }
}
