//! One limit for all.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{DefaultClock, QuantaUpkeepClock};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tollgate::clock::{Clock, SystemClock};
use tollgate::sync::{AtomicU64, Ordering};

use super::Limit;
use crate::Ask;

/// governor. Its burst is a u32, so the bucket that never runs dry holds 2^32 - 1; at one permit
/// a nanosecond that is enough.
///
/// It can't give a permit back, and its interval is a whole number of nanoseconds.
#[derive(Debug)]
pub struct Governor<K: governor::clock::Clock>(
    RateLimiter<NotKeyed, InMemoryState, K, NoOpMiddleware<K::Instant>>,
);

impl Governor<DefaultClock> {
    /// On quanta's clock, as it comes.
    #[must_use]
    pub fn system(limit: Limit) -> Self {
        Self::new(limit, DefaultClock::default())
    }
}

impl Governor<QuantaUpkeepClock> {
    /// On its counterpart of the coarse clock, refreshed as often.
    ///
    /// # Panics
    ///
    /// If no thread can be started.
    #[must_use]
    pub fn coarse(limit: Limit) -> Self {
        let clock = QuantaUpkeepClock::from_interval(Duration::from_millis(1))
            .expect("the only upkeep thread of this crate, or one that runs already");
        Self::new(limit, clock)
    }
}

impl<K: governor::clock::Clock> Governor<K> {
    fn new(limit: Limit, clock: K) -> Self {
        Self(RateLimiter::direct_with_clock(governor_quota(limit), clock))
    }
}

/// As nearly as governor can say it.
pub(super) fn governor_quota(limit: Limit) -> Quota {
    let burst = u32::try_from(limit.burst).unwrap_or(u32::MAX);
    let quota = Quota::with_period(limit.period).expect("not zero");
    quota.allow_burst(NonZeroU32::new(burst).expect("not zero"))
}

impl<K: governor::clock::Clock + Sync> Ask for Governor<K>
where
    K::Instant: Sync,
{
    #[inline(always)]
    fn is_allowed(&self) -> bool {
        self.0.check().is_ok()
    }
}

/// ratelimit, on the standard library's clock, the only one it comes with.
///
/// It can't give a permit back, and a refill drops what is below a millionth of a permit.
#[derive(Debug)]
pub struct Ratelimit(ratelimit::Ratelimiter);

impl Ratelimit {
    /// Full at first.
    ///
    /// # Panics
    ///
    /// If the limit has a burst or a period of zero.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        // It takes a number of permits a period. A shorter period becomes more permits a second.
        let second = Duration::from_secs(1);
        let in_a_second = second.as_nanos() / limit.period.as_nanos();
        let limiter = ratelimit::Ratelimiter::builder(in_a_second.max(1) as u64)
            .period(limit.period.max(second))
            .max_tokens(limit.burst)
            .initial_available(limit.burst)
            .build()
            .expect("a limit");
        Self(limiter)
    }
}

impl Ask for Ratelimit {
    #[inline(always)]
    fn is_allowed(&self) -> bool {
        self.0.try_wait().is_ok()
    }
}

/// leaky-bucket, by its verb that does not wait.
///
/// It says yes or no and not how long to wait. It refills at intervals of its own and not with the
/// clock, so the bucket that never runs dry is one that is too large to be emptied.
pub struct LeakyBucket(leaky_bucket::RateLimiter);

impl LeakyBucket {
    /// Full at first, and refilled no more often than once an hour.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        let burst = usize::try_from(limit.burst).unwrap_or(usize::MAX);
        let limiter = leaky_bucket::RateLimiter::builder()
            .max(burst)
            .initial(burst)
            .refill(1)
            .interval(limit.period.max(Limit::NOTHING.period))
            .build();
        Self(limiter)
    }
}

impl fmt::Debug for LeakyBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LeakyBucket").field(&self.0).finish()
    }
}

impl Ask for LeakyBucket {
    #[inline(always)]
    fn is_allowed(&self) -> bool {
        self.0.try_acquire(1)
    }
}

/// A count of requests that starts again in each window, as people write it first.
///
/// It allows twice its limit around the boundary of two windows. A thread that is preempted between
/// the two exchanges can also reset a count that others have begun.
#[derive(Debug)]
pub struct CounterWindow<C = SystemClock> {
    limit: u64,
    window_ns: u64,
    /// The number of the window that is counted.
    window: AtomicU64,
    count: AtomicU64,
    clock: C,
}

impl CounterWindow {
    /// As many permits a window as the limit's burst, in the time in which they are made.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self::with_clock(limit, SystemClock)
    }
}

impl<C: Clock> CounterWindow<C> {
    /// The same on another clock.
    #[must_use]
    pub fn with_clock(limit: Limit, clock: C) -> Self {
        let window = limit.period.as_nanos() * u128::from(limit.burst);
        Self {
            limit: limit.burst,
            window_ns: u64::try_from(window).unwrap_or(u64::MAX).max(1),
            window: AtomicU64::new(0),
            count: AtomicU64::new(0),
            clock,
        }
    }
}

// ORDERING: Relaxed. The words publish no other memory; that they are not exchanged together is
// the design's own fault.
impl<C: Clock + Sync> Ask for CounterWindow<C> {
    #[inline(always)]
    fn is_allowed(&self) -> bool {
        let window = self.clock.now().as_nanos() / self.window_ns;
        if self.window.load(Ordering::Relaxed) != window
            && self.window.swap(window, Ordering::Relaxed) != window
        {
            self.count.swap(0, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed) < self.limit
    }
}
