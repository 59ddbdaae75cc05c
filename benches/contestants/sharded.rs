//! Limits past one cache line: a word for each core, and permits that each thread holds.

use tollgate::clock::{Clock, NoClock};
use tollgate::leases::Lease;
use tollgate::{ConfigError, Leases, Quota, Sharded, Tick, TokenBucket};

use super::bucket::bucket;
use super::timing::{Contestant, Handle, Handled, Kind};

/// As [`bucket`], and the one with nothing in it can be split and lent too.
fn divisible(kind: Kind) -> Result<TokenBucket, ConfigError> {
    match kind {
        Kind::Allowed => bucket(kind),
        Kind::Denied => TokenBucket::new(Quota::per_day(1).burst(90_000).initial(0)),
    }
}

/// As many shards as there are cores, on the system's clock.
pub(crate) struct Shards(Sharded<TokenBucket>);

impl Shards {
    pub(crate) fn new(kind: Kind) -> Result<Self, ConfigError> {
        Ok(Self(Sharded::new(divisible(kind)?)?))
    }
}

impl Contestant for Shards {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0.try_acquire().is_ok()
    }
}

/// As many, told the time: turn after turn, a nanosecond each.
pub(crate) struct ToldShards(Sharded<TokenBucket, NoClock>);

impl ToldShards {
    pub(crate) fn new(kind: Kind) -> Result<Self, ConfigError> {
        let bucket = divisible(kind)?;
        let shards = Sharded::new(bucket)?.shards();
        let shards = Sharded::starting_at(bucket, shards, NoClock, Tick::ZERO)?;
        Ok(Self(shards))
    }
}

impl Contestant for ToldShards {
    #[inline(always)]
    fn decide(&self, turn: u64) -> bool {
        self.0.try_acquire_at(Tick::from_nanos(turn)).is_ok()
    }
}

/// How many permits a thread draws at once.
const LEASE: u64 = 64;

/// Leases for as many threads as are ever measured. The bucket with nothing in it can hold more.
const ALL_LEASES: u64 = LEASE * 1024;

/// A limiter that lends to each thread.
pub(crate) struct Lending<K>(Leases<TokenBucket, K>);

impl<K: Clock> Lending<K> {
    pub(crate) fn new(kind: Kind, clock: K) -> Result<Self, ConfigError> {
        let leases = Leases::with_clock(divisible(kind)?, ALL_LEASES, clock)?;
        Ok(Self(leases))
    }
}

impl<K: Clock + Sync> Handled for Lending<K> {
    type Handle<'a>
        = Leased<'a, K>
    where
        K: 'a;

    fn handle(&self, _threads: usize) -> Leased<'_, K> {
        Leased(self.0.lease(LEASE))
    }
}

/// A thread's permits.
pub(crate) struct Leased<'a, K: Clock>(Lease<&'a Leases<TokenBucket, K>>);

impl<K: Clock> Handle for Leased<'_, K> {
    #[inline(always)]
    fn decide(&mut self, _turn: u64) -> bool {
        self.0.try_acquire().is_ok()
    }
}
