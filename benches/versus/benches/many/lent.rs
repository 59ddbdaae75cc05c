//! Leases of more than 64 permits. A draw waits until the limiter's cache line arrives from the
//! other core, so on several threads the cost depends on how rarely they draw.

use tollgate::clock::Clock;
use tollgate::error::LimiterError;
use tollgate::leases::Lease;
use tollgate::{Leases, TokenBucket};

use super::contestants::bucket::bucket;
use super::contestants::timing::{Handle, Handled, Kind};

const SIZE: u64 = 1024;

/// A limiter that lends permits to each thread and never runs dry.
pub(crate) struct Lending<C>(Leases<TokenBucket, C>);

impl<C: Clock> Lending<C> {
    pub(crate) fn new(clock: C) -> Result<Self, LimiterError> {
        let leases = Leases::with_clock(bucket(Kind::Allowed)?, 64 * SIZE, clock)?;
        Ok(Self(leases))
    }
}

impl<C: Clock + Sync> Handled for Lending<C> {
    type Handle<'a>
        = Own<'a, C>
    where
        C: 'a;

    fn handle(&self, _threads: usize) -> Own<'_, C> {
        Own(self.0.lease(SIZE))
    }
}

/// A thread's lease.
pub(crate) struct Own<'a, C: Clock>(Lease<&'a Leases<TokenBucket, C>>);

impl<C: Clock> Handle for Own<'_, C> {
    #[inline(always)]
    fn decide(&mut self, _turn: u64) -> bool {
        self.0.try_acquire().is_ok()
    }
}
