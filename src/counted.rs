//! Statistics, for those who want them.

use core::fmt;

use crossbeam_utils::CachePadded;

use crate::clock::{Clock, Tick};
use crate::outcome::{Charged, Denied, Granted};
use crate::rate_limiter::{DebtLimiter, GiveBackLimiter, RateLimiter};
use crate::sync::{AtomicU64, Ordering};
use crate::thread_index::ThreadIndex;

/// A limiter that counts what it admitted and what it denied.
///
/// The counts are kept in cache lines of their own, one for each core, where a thread adds to its
/// own; they are summed when [`stats`](Self::stats) is called. A limiter that is not wrapped pays
/// nothing.
///
/// ```
/// use tollgate::{Counted, Limiter, Quota};
///
/// # fn main() -> Result<(), tollgate::ConfigError> {
/// let limiter = Counted::new(Limiter::token_bucket(Quota::per_hour(5))?);
/// for _ in 0..3 {
///     let _ = limiter.try_acquire_n(2);
/// }
/// let counts = limiter.stats();
/// assert_eq!((counts.granted, counts.permits, counts.denied), (2, 4, 1));
/// # Ok(())
/// # }
/// ```
pub struct Counted<G> {
    limiter: G,
    counters: Box<[CachePadded<Counters>]>,
    thread_index: ThreadIndex,
}

#[derive(Default)]
struct Counters {
    granted: AtomicU64,
    /// Permits, less one for each grant: so nearly every decision adds to one counter only.
    beyond: AtomicU64,
    denied: AtomicU64,
    returned: AtomicU64,
    charged: AtomicU64,
}

/// What a [`Counted`] limiter has counted.
///
/// Requests for no permits are not counted. Each number is right by itself: while others decide
/// they need not belong to the same moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LimiterStats {
    /// Requests that were granted.
    pub granted: u64,
    /// The permits that these got.
    pub permits: u64,
    /// Requests that were denied.
    pub denied: u64,
    /// Permits that came back.
    pub returned: u64,
    /// Permits that were charged.
    pub charged: u64,
}

impl<G> Counted<G> {
    /// Counts what this limiter decides, if it is asked through this.
    #[must_use]
    pub fn new(limiter: G) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let counters: Box<[_]> = (0..cores).map(|_| CachePadded::default()).collect();
        Self {
            limiter,
            thread_index: ThreadIndex::new(counters.len()),
            counters,
        }
    }

    /// The limiter. Requests made directly on it are not counted.
    pub const fn limiter(&self) -> &G {
        &self.limiter
    }

    /// The limiter, without its counts.
    pub fn into_limiter(self) -> G {
        self.limiter
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> LimiterStats {
        // ORDERING: Relaxed. Counts publish nothing. Each is summed once and never goes back for a
        // thread that looks twice.
        let sum = |counter: fn(&Counters) -> &AtomicU64| {
            let counters = self.counters.iter();
            let each = counters.map(|counters| counter(counters).load(Ordering::Relaxed));
            each.fold(0, u64::wrapping_add)
        };
        let granted = sum(|counters| &counters.granted);
        LimiterStats {
            granted,
            permits: granted.wrapping_add(sum(|counters| &counters.beyond)),
            denied: sum(|counters| &counters.denied),
            returned: sum(|counters| &counters.returned),
            charged: sum(|counters| &counters.charged),
        }
    }

    #[inline(always)]
    fn add(&self, counter: fn(&Counters) -> &AtomicU64, n: u64) {
        if let Some(counters) = self.counters.get(self.thread_index.of_this_thread()) {
            // ORDERING: Relaxed. See `stats`.
            counter(counters).fetch_add(n, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn count_granted(&self, n: u64) {
        if n > 0 {
            self.add(|counters| &counters.granted, 1);
        }
        if n > 1 {
            self.add(|counters| &counters.beyond, n - 1);
        }
    }

    #[inline(always)]
    fn count(&self, outcome: Result<Granted, Denied>) -> Result<Granted, Denied> {
        match &outcome {
            Ok(granted) => self.count_granted(granted.n()),
            Err(denied) if denied.requested() == 0 => {}
            Err(_) => self.add(|counters| &counters.denied, 1),
        }
        outcome
    }
}

impl<G: RateLimiter> Counted<G> {
    /// Takes `n` permits, or none, at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there.
    #[inline]
    pub fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.count(self.limiter.try_acquire_n_at(n, now))
    }

    /// Takes one permit at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if it was not there.
    #[inline]
    pub fn try_acquire_at(&self, now: Tick) -> Result<Granted, Denied> {
        self.try_acquire_n_at(1, now)
    }
}

impl<G: RateLimiter<Clock: Clock>> Counted<G> {
    /// Takes `n` permits, or none.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there.
    #[inline]
    pub fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied> {
        self.count(self.limiter.try_acquire_n(n))
    }

    /// Takes one permit.
    ///
    /// # Errors
    ///
    /// [`Denied`] if it was not there.
    #[inline]
    pub fn try_acquire(&self) -> Result<Granted, Denied> {
        self.try_acquire_n(1)
    }

    /// Takes as many of `n` permits as there are, which may be none. To get less than was asked for
    /// is no denial.
    #[inline]
    #[must_use = "it says how many were there"]
    pub fn take_up_to(&self, n: u64) -> Granted {
        self.take_up_to_at(n, self.limiter.clock().now())
    }

    /// How many permits there are. Takes and counts none.
    #[inline]
    pub fn available(&self) -> u64 {
        self.limiter.available_at(self.limiter.clock().now())
    }
}

impl<G: GiveBackLimiter<Clock: Clock>> Counted<G> {
    /// Gives back this grant, as far as it can be; how many permits came back.
    #[inline]
    pub fn undo(&self, granted: Granted) -> u64 {
        self.undo_at(granted, self.limiter.clock().now())
    }

    /// Gives back `n` permits, as far as they can be; how many came back.
    #[inline]
    pub fn refund(&self, n: u64) -> u64 {
        self.refund_at(n, self.limiter.clock().now())
    }
}

impl<G: DebtLimiter<Clock: Clock>> Counted<G> {
    /// Takes `n` permits, whether they are there or not.
    #[inline]
    pub fn charge(&self, n: u64) -> Charged {
        self.charge_at(n, self.limiter.clock().now())
    }
}

impl<G: RateLimiter> RateLimiter for Counted<G> {
    type Clock = G::Clock;

    #[inline]
    fn clock(&self) -> &G::Clock {
        self.limiter.clock()
    }

    #[inline]
    fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.try_acquire_n_at(n, now)
    }

    #[inline]
    fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied>
    where
        G::Clock: Clock,
    {
        self.try_acquire_n(n)
    }

    #[inline]
    fn take_up_to_at(&self, n: u64, now: Tick) -> Granted {
        let granted = self.limiter.take_up_to_at(n, now);
        self.count_granted(granted.n());
        granted
    }

    #[inline]
    fn available_at(&self, now: Tick) -> u64 {
        self.limiter.available_at(now)
    }
}

impl<G: GiveBackLimiter> GiveBackLimiter for Counted<G> {
    #[inline]
    fn undo_at(&self, granted: Granted, now: Tick) -> u64 {
        let n = self.limiter.undo_at(granted, now);
        self.add(|counters| &counters.returned, n);
        n
    }

    #[inline]
    fn refund_at(&self, n: u64, now: Tick) -> u64 {
        let n = self.limiter.refund_at(n, now);
        self.add(|counters| &counters.returned, n);
        n
    }
}

impl<G: DebtLimiter> DebtLimiter for Counted<G> {
    #[inline]
    fn charge_at(&self, n: u64, now: Tick) -> Charged {
        let charged = self.limiter.charge_at(n, now);
        self.add(|counters| &counters.charged, charged.n());
        charged
    }
}

impl<G: fmt::Debug> fmt::Debug for Counted<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted")
            .field("limiter", &self.limiter)
            .field("stats", &self.stats())
            .finish()
    }
}
