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

/// Calls a function with the limit.
pub(crate) struct With<F>(pub(crate) F);

impl<C, T, F: FnOnce(&dyn Member<C>) -> T> Visitor<C> for With<F> {
    type Output = T;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> T {
        (self.0)(&member)
    }
}
