//! A limiter of tollgate-versus that reads its clock, as a contestant.

use tollgate_versus::Ask;
use tollgate_versus::peers::{Limit, verify};

use super::timing::{Contestant, Kind};

/// What is to be denied is emptied first.
pub(crate) struct Asked<G> {
    limiter: G,
    kind: Kind,
}

impl<G: Ask> Asked<G> {
    #[allow(dead_code, reason = "peers are checked first")]
    pub(crate) const fn new(limiter: G, kind: Kind) -> Self {
        Self { limiter, kind }
    }

    /// A peer. Another one of its make is asked first whether it decides as it should.
    ///
    /// # Errors
    ///
    /// Says which decision was wrong.
    pub(crate) fn checked(kind: Kind, peer: impl Fn(Limit) -> G) -> Result<Self, String> {
        verify(&peer(Limit::TEN))?;
        let limiter = peer(match kind {
            Kind::Allowed => Limit::PLENTY,
            Kind::Denied => Limit::NOTHING,
        });
        Ok(Self { limiter, kind })
    }
}

impl<G: Ask> Contestant for Asked<G> {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.limiter.is_allowed()
    }

    fn prepare(&self) {
        while self.kind == Kind::Denied && self.limiter.is_allowed() {}
    }
}
