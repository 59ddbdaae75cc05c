//! Limiters with one limit.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::{DefaultClock, QuantaUpkeepClock};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tollgate::clock::{Clock, SystemClock};

use super::Limit;
use crate::Ask;

/// governor's direct limiter. Its burst is a u32, so the bucket that never runs dry holds 2^32 - 1
/// permits. At one permit a nanosecond that is enough.
///
/// It can't return a permit, and its interval is a whole number of nanoseconds.
#[derive(Debug)]
pub struct Governor<K: governor::clock::Clock>(
    RateLimiter<NotKeyed, InMemoryState, K, NoOpMiddleware<K::Instant>>,
);

impl Governor<DefaultClock> {
    /// Returns a limiter with its default clock, which is quanta's.
    #[must_use]
    pub fn system(limit: Limit) -> Self {
        Self::new(limit, DefaultClock::default())
    }
}

impl Governor<QuantaUpkeepClock> {
    /// Returns a limiter with its equivalent of the coarse clock, refreshed as often.
    ///
    /// # Panics
    ///
    /// Panics if no thread can be started.
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

/// Returns governor's closest quota.
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

/// ratelimit's limiter, with the standard library's clock, the only one that it has.
///
/// It can't return a permit, and a refill drops fractions below a millionth of a permit.
#[derive(Debug)]
pub struct Ratelimit(ratelimit::Ratelimiter);

impl Ratelimit {
    /// Returns a full limiter.
    ///
    /// # Panics
    ///
    /// Panics if the limit has a burst or a period of zero.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        // It takes a number of permits and a period. A shorter period becomes more permits a
        // second.
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

/// leaky-bucket's limiter, through its non-blocking method.
///
/// It returns yes or no, but not how long to wait. It refills at intervals and not continuously, so
/// the bucket that never runs dry is too large to be emptied.
pub struct LeakyBucket(leaky_bucket::RateLimiter);

impl LeakyBucket {
    /// Returns a full limiter that refills at most once an hour.
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

/// A count of requests that restarts in each window, a common first attempt.
///
/// It allows twice its limit around the boundary of two windows. A thread that is preempted between
/// its two exchanges can also reset a count that other threads have begun.
#[derive(Debug)]
pub struct CounterWindow<C = SystemClock> {
    limit: u64,
    window_ns: u64,
    /// The number of the current window.
    window: AtomicU64,
    count: AtomicU64,
    clock: C,
}

impl CounterWindow {
    /// Returns a counter that allows the limit's burst in each window. A window lasts as long as
    /// the burst takes to refill.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self::with_clock(limit, SystemClock)
    }
}

impl<C: Clock> CounterWindow<C> {
    /// Returns the same counter with another clock.
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

// ORDERING: Relaxed. The words publish no other memory. Exchanging them separately is a flaw of
// this design.
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
