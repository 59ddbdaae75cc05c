//! Limits with more than one word: a word for each core, and permits that each thread holds.

use tollgate::algorithm::Lend;
use tollgate::clock::{Clock, NoClock};
use tollgate::error::{LimiterError, QuotaError};
use tollgate::leases::Lease;
use tollgate::{Leases, Quota, Sharded, Tick, TokenBucket};

use super::bucket::bucket;
use super::timing::{Contestant, Handle, Handled, Kind};

/// Like [`bucket`], but the empty one can also be split and lent.
fn divisible(kind: Kind) -> Result<TokenBucket, QuotaError> {
    match kind {
        Kind::Allowed => bucket(kind),
        Kind::Denied => TokenBucket::new(Quota::per_day(1).burst(90_000).initial(0)),
    }
}

/// A shard for each core, with the system clock.
pub(crate) struct Shards(Sharded<TokenBucket>);

impl Shards {
    pub(crate) fn new(kind: Kind) -> Result<Self, LimiterError> {
        Ok(Self(Sharded::new(divisible(kind)?)?))
    }
}

impl Contestant for Shards {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0.try_acquire().is_ok()
    }
}

/// A shard for each core, which takes ticks: each turn is a nanosecond later.
pub(crate) struct ToldShards(Sharded<TokenBucket, NoClock>);

impl ToldShards {
    pub(crate) fn new(kind: Kind) -> Result<Self, LimiterError> {
        let bucket = divisible(kind)?;
        let shards = Sharded::new(bucket)?.shards();
        let shards = Sharded::starting_at(bucket, shards, NoClock, Tick::ZERO)?;
        Ok(Self(shards))
    }
}

impl Contestant for ToldShards {
    #[inline(always)]
    fn decide(&self, turn: u64) -> bool {
        self.0.at(Tick::from_nanos(turn)).try_acquire().is_ok()
    }
}

/// A limiter that lends half of its burst to the threads, in equal shares.
pub(crate) struct Lending<K>(Leases<TokenBucket, K>);

impl<K: Clock> Lending<K> {
    pub(crate) fn new(kind: Kind, clock: K) -> Result<Self, LimiterError> {
        let bucket = divisible(kind)?;
        let total = bucket.most_lent() / 2;
        Ok(Self(Leases::with_clock(bucket, total, clock)?))
    }
}

impl<K: Clock + Sync> Handled for Lending<K> {
    type Handle<'a>
        = Leased<'a, K>
    where
        K: 'a;

    fn handle(&self, threads: usize) -> Leased<'_, K> {
        Leased(self.0.lease(self.0.max_lent() / threads as u64))
    }
}

/// A thread's lease.
pub(crate) struct Leased<'a, K: Clock>(Lease<&'a Leases<TokenBucket, K>>);

impl<K: Clock> Handle for Leased<'_, K> {
    #[inline(always)]
    fn decide(&mut self, _turn: u64) -> bool {
        self.0.try_acquire().is_ok()
    }
}
