//! The other crates' limiters. Each has a limit that never runs dry while it is measured, or one
//! that has nothing for an hour, as nearly as it can say so.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock, QuantaUpkeepClock};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use super::timing::{Contestant, Kind};

const HOUR: Duration = Duration::from_secs(3600);
const NANOSECOND: Duration = Duration::from_nanos(1);

/// governor. Its burst is a u32, so the bucket that never runs dry holds 2^32 - 1; at one permit
/// a nanosecond that is enough.
pub(crate) struct Governor<K: Clock>(
    RateLimiter<NotKeyed, InMemoryState, K, NoOpMiddleware<K::Instant>>,
);

impl Governor<DefaultClock> {
    pub(crate) fn system(kind: Kind) -> Self {
        Self::new(kind, DefaultClock::default())
    }
}

impl Governor<QuantaUpkeepClock> {
    /// Its counterpart of the coarse clock, refreshed as often.
    pub(crate) fn coarse(kind: Kind) -> Self {
        let clock = QuantaUpkeepClock::from_interval(Duration::from_millis(1))
            .expect("the only upkeep thread of this crate, or one that runs already");
        Self::new(kind, clock)
    }
}

impl<K: Clock> Governor<K> {
    fn new(kind: Kind, clock: K) -> Self {
        let (period, burst) = match kind {
            Kind::Allowed => (NANOSECOND, NonZeroU32::MAX),
            Kind::Denied => (HOUR, NonZeroU32::MIN),
        };
        let quota = Quota::with_period(period).expect("not zero");
        let limiter = RateLimiter::direct_with_clock(quota.allow_burst(burst), clock);
        if kind == Kind::Denied {
            // It can't start empty.
            assert!(limiter.check().is_ok(), "the one permit of a fresh bucket");
        }
        Self(limiter)
    }
}

impl<K: Clock + Sync> Contestant for Governor<K>
where
    K::Instant: Sync,
{
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0.check().is_ok()
    }
}

/// ratelimit, on the standard library's clock, the only one it comes with.
pub(crate) struct Ratelimit(ratelimit::Ratelimiter);

impl Ratelimit {
    pub(crate) fn new(kind: Kind) -> Self {
        let (rate, period, burst, initial) = match kind {
            Kind::Allowed => (1_000_000_000, Duration::from_secs(1), 1 << 40, 1 << 40),
            Kind::Denied => (1, HOUR, 1, 0),
        };
        let limiter = ratelimit::Ratelimiter::builder(rate)
            .period(period)
            .max_tokens(burst)
            .initial_available(initial)
            .build()
            .expect("a limit");
        Self(limiter)
    }
}

impl Contestant for Ratelimit {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0.try_wait().is_ok()
    }
}

/// leaky-bucket, by its verb that does not wait. It refills at intervals of its own and not with
/// the clock, so the bucket that never runs dry is one that is too large to be emptied.
pub(crate) struct LeakyBucket(leaky_bucket::RateLimiter);

impl LeakyBucket {
    pub(crate) fn new(kind: Kind) -> Self {
        let (max, initial) = match kind {
            Kind::Allowed => (1 << 40, 1 << 40),
            Kind::Denied => (1, 0),
        };
        let limiter = leaky_bucket::RateLimiter::builder()
            .max(max)
            .initial(initial)
            .refill(1)
            .interval(HOUR)
            .build();
        Self(limiter)
    }
}

impl Contestant for LeakyBucket {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0.try_acquire(1)
    }
}
