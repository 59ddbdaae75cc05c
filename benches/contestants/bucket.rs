//! tollgate's token bucket with each time source.

use std::io;
use std::time::Duration;

use tollgate::clock::{Clock, CoarseClock, NoClock, Upkeep};
use tollgate::error::QuotaError;
use tollgate::{Limiter, Quota, Tick, TokenBucket};

use super::timing::{Contestant, Kind};

/// The clock of the coarse contestants.
pub(crate) static COARSE: CoarseClock = CoarseClock::new();

/// Starts the upkeep of [`COARSE`], as a service would.
pub(crate) fn keep_coarse() -> io::Result<Upkeep> {
    Upkeep::start(&COARSE, Duration::from_millis(1))
}

/// Returns a bucket that never runs dry in a measurement, or an empty one that gets a permit an
/// hour.
pub(crate) const fn bucket(kind: Kind) -> Result<TokenBucket, QuotaError> {
    TokenBucket::new(match kind {
        Kind::Allowed => Quota::per_second(1_000_000_000).burst(1 << 40),
        Kind::Denied => Quota::per_hour(1).initial(0),
    })
}

/// A limiter that reads its clock.
pub(crate) struct Measured<K>(Limiter<TokenBucket, K>);

impl<K: Clock> Measured<K> {
    pub(crate) fn new(kind: Kind, clock: K) -> Result<Self, QuotaError> {
        Ok(Self(Limiter::with_clock(bucket(kind)?, clock)))
    }
}

impl<K: Clock + Sync> Contestant for Measured<K> {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0.try_acquire().is_ok()
    }
}

/// A limiter that takes a tick: each turn is a nanosecond later.
pub(crate) struct ToldLimiter(Limiter<TokenBucket, NoClock>);

impl ToldLimiter {
    pub(crate) fn new(kind: Kind) -> Result<Self, QuotaError> {
        Ok(Self(Limiter::unstarted(bucket(kind)?, NoClock)))
    }
}

impl Contestant for ToldLimiter {
    #[inline(always)]
    fn decide(&self, turn: u64) -> bool {
        self.0.at(Tick::from_nanos(turn)).try_acquire().is_ok()
    }
}
