//! A `Lease` in a `Counted`.

use core::borrow::Borrow;
use core::ops::Deref;

use super::{Counted, Counters};
use crate::leases::{Lease, Lender};
use crate::outcome::Denied;

impl<G: Deref<Target: Lender>, S: Borrow<Counters>> Counted<Lease<G>, S> {
    /// Takes one permit and counts.
    ///
    /// # Errors
    ///
    /// The same as for [`Lease::try_acquire`].
    #[inline]
    pub fn try_acquire(&mut self) -> Result<(), Denied> {
        self.try_acquire_n(1)
    }

    /// Takes `n` permits or none, and counts.
    ///
    /// # Errors
    ///
    /// The same as for [`Lease::try_acquire_n`].
    #[inline]
    pub fn try_acquire_n(&mut self, n: u64) -> Result<(), Denied> {
        let outcome = self.limiter.try_acquire_n(n);
        self.counters().answer(outcome.is_ok(), n);
        outcome
    }

    /// Gives back what the lease holds: see [`Lease::give_back`]. These permits are not counted as
    /// returned, since no request had taken them.
    pub fn give_back(&mut self) -> u64 {
        self.limiter.give_back()
    }
}
