//! What is done with one limit of a request.

use tollgate::compose::{Held, Member, Visitor};
use tollgate::outcome::Settled;
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
