//! What is done with one limit of a request.

use tollgate::compose::{Held, Member, Visitor};
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

/// Returns how many permits of a limit are available.
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
