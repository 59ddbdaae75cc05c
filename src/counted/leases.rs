//! `Leases` in a `Counted`, and their leases.

use core::borrow::Borrow;
use core::ops::Deref;

use super::{Counted, Counters, LimiterStats};
use crate::algorithm::Lend;
use crate::clock::Clock;
use crate::leases::{Lease, Leases, Lender};
use crate::outcome::Denied;

impl<A: Lend, C: Clock, S: Borrow<Counters>> Counted<Leases<A, C>, S> {
    /// Creates a lease that counts: see [`Leases::lease`]. A permit counts when it is taken from
    /// the lease, and not when the lease draws it.
    ///
    /// Counting costs more than the lease's decision itself.
    ///
    /// ```
    /// use tollgate::{Counted, Leases, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), tollgate::error::LimiterError> {
    /// let bucket = TokenBucket::new(Quota::per_hour(100))?;
    /// let limiter = Counted::new(Leases::new(bucket, 50)?);
    /// std::thread::scope(|scope| {
    ///     for _ in 0..2 {
    ///         let mut lease = limiter.lease(20);
    ///         scope.spawn(move || lease.try_acquire_n(3).is_ok() && lease.try_acquire().is_ok());
    ///     }
    /// });
    /// assert_eq!((limiter.stats().granted, limiter.stats().permits), (4, 8));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "a lease that is dropped gives back what it holds"]
    pub fn lease(&self, size: u64) -> Counted<Lease<&Leases<A, C>>, &Counters> {
        self.part(self.limiter.lease(size))
    }
}

impl<G: Deref<Target: Lender>, S: Borrow<Counters>> Counted<Lease<G>, S> {
    /// Returns what was counted so far.
    #[must_use]
    pub fn stats(&self) -> LimiterStats {
        self.counts()
    }

    /// Takes one permit and counts: see [`Lease::try_acquire`].
    ///
    /// # Errors
    ///
    /// The same as for [`Lease::try_acquire`].
    #[inline]
    pub fn try_acquire(&mut self) -> Result<(), Denied> {
        self.try_acquire_n(1)
    }

    /// Takes `n` permits or none, and counts: see [`Lease::try_acquire_n`].
    ///
    /// # Errors
    ///
    /// The same as for [`Lease::try_acquire_n`].
    #[inline]
    pub fn try_acquire_n(&mut self, n: u64) -> Result<(), Denied> {
        let outcome = self.limiter.try_acquire_n(n);
        match &outcome {
            Ok(()) => self.counters().granted(n),
            Err(_) => self.counters().denied(),
        }
        outcome
    }

    /// Gives back what the lease holds: see [`Lease::give_back`]. These permits are not counted as
    /// returned, since no request had taken them.
    pub fn give_back(&mut self) -> u64 {
        self.limiter.give_back()
    }
}
