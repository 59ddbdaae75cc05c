//! A limiter of tollgate-versus that reads its clock, as a contestant.

use tollgate_versus::Ask;
use tollgate_versus::peers::{Limit, verify};

use super::timing::{Contestant, Kind};

/// A limiter for denied decisions is emptied first.
pub(crate) struct Asked<G> {
    limiter: G,
    kind: Kind,
}

impl<G: Ask> Asked<G> {
    #[allow(dead_code, reason = "peers use `checked`")]
    pub(crate) const fn new(limiter: G, kind: Kind) -> Self {
        Self { limiter, kind }
    }

    /// Returns a peer, after checking that an equal one decides correctly.
    ///
    /// # Errors
    ///
    /// Returns an error that names the first wrong decision.
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
