use super::lease::Lease;
use core::fmt;

use crossbeam_utils::CachePadded;

use crate::algorithm::Lend;
use crate::clock::{Clock, SystemClock, Tick};
use crate::limiter::Limiter;
use crate::metrics::{Metric, MetricSource, Value};
use crate::outcome::{Denied, Granted};
use crate::quota::ConfigError;
use crate::rate_limiter::RateLimiter;
use crate::sync::{AtomicU64, Ordering};
use std::sync::Arc;

/// A [`Limiter`] that lends permits to threads: while a [`Lease`] holds permits, it grants them
/// without reading the clock and without touching shared memory.
///
/// It pays where most requests are granted, with a lease for each of a few threads. A denial reads
/// the clock and asks the limiter, so where most requests are denied a [`Limiter`] is as quick
/// (docs/PAST_ONE_WORD.md has a table of which limiter is quickest when).
///
/// A thread that holds no lease can call [`try_acquire`](Self::try_acquire) and
/// [`try_acquire_n`](Self::try_acquire_n) on it; all other verbs are on
/// [`limiter()`](Self::limiter). A limiter that never lends should be a [`Limiter`].
///
/// ```
/// use tollgate::{Leases, Quota};
///
/// # fn main() -> Result<(), tollgate::ConfigError> {
/// let limiter = Leases::token_bucket(Quota::per_hour(100_000), 1000)?;
/// let admitted = std::thread::scope(|scope| {
///     let threads: Vec<_> = (0..4)
///         .map(|_| {
///             let mut lease = limiter.lease(64);
///             scope.spawn(move || (0..30_000).filter(|_| lease.try_acquire().is_ok()).count())
///         })
///         .collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
/// });
/// assert!((99_000..101_000).contains(&admitted)); // and what a moment refills
/// # Ok(())
/// # }
/// ```
///
/// # What is promised
///
/// **The bound is that of the algorithm with its full burst**, exactly, counted at the ticks at
/// which permits are used: what leases hold could be used at any moment, so it is set aside. The
/// limiter itself works with a burst that is smaller by `total`, and leases never hold more than
/// `total`. (Of a window it is the limit that is smaller, in each window.) What a request takes
/// beyond the lease's size counts as any grant does.
///
/// A lease grants whenever that limiter would. If a caller decides at a tick that is ahead of the
/// clock, by [`at`](Limiter::at) of the [`limiter`](Self::limiter), and so begins the next window,
/// then leases draw from that window too. Their permits count in it, as [`Granted::at`] says of a
/// grant without a lease, and not at the tick at which they are used.
///
/// **What it costs.** A caller without a lease has a burst that is smaller by `total`, also when no
/// lease is alive. Only the lease can use the permits that it holds, until it is dropped, which
/// gives them back. A lease that is leaked keeps its part of `total`.
pub struct Leases<A, C = SystemClock> {
    pub(super) limiter: Limiter<A, C>,
    pub(super) lent: CachePadded<AtomicU64>,
    pub(super) total: u64,
}

impl<A: Lend> Leases<A> {
    /// A limiter on the system's clock that lends at most `total` permits at once.
    ///
    /// # Errors
    ///
    /// [`ConfigError::ZeroLeases`]; [`ConfigError::LeasesTooLarge`] if no permit would be left.
    ///
    /// ```
    /// use tollgate::{ConfigError, Leases, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), ConfigError> {
    /// let bucket = TokenBucket::new(Quota::per_second(100).burst(20))?;
    /// assert_eq!(
    ///     Leases::new(bucket, 20).unwrap_err(),
    ///     ConfigError::LeasesTooLarge { total: 20, max: 19 }
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(algorithm: A, total: u64) -> Result<Self, ConfigError> {
        Self::with_clock(algorithm, total, SystemClock)
    }
}

impl<A: Lend, C: Clock> Leases<A, C> {
    /// The same on a clock of your own.
    ///
    /// # Errors
    ///
    /// [`ConfigError::ZeroLeases`]; [`ConfigError::LeasesTooLarge`] if no permit would be left.
    pub fn with_clock(algorithm: A, total: u64, clock: C) -> Result<Self, ConfigError> {
        let max = algorithm.most_lent();
        if total == 0 {
            return Err(ConfigError::ZeroLeases);
        }
        if total > max {
            return Err(ConfigError::LeasesTooLarge { total, max });
        }
        Ok(Self {
            limiter: Limiter::with_clock(algorithm.lending(total)?, clock),
            lent: CachePadded::new(AtomicU64::new(0)),
            total,
        })
    }

    /// A lease of so many permits, or of as many as are left of the total: it may be of none, and
    /// then takes each permit from the limiter. See [`Lease::size`].
    ///
    /// It holds nothing yet.
    pub fn lease(&self, size: u64) -> Lease<&Self> {
        Lease::new(self, size)
    }

    /// The same, for threads and tasks that outlive this borrow.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{Leases, Quota};
    ///
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let limiter = Arc::new(Leases::token_bucket(Quota::per_second(100), 50)?);
    /// let mut lease = limiter.lease_owned(10);
    /// let worker = std::thread::spawn(move || lease.try_acquire().is_ok());
    /// assert!(worker.join().unwrap());
    /// # Ok(())
    /// # }
    /// ```
    pub fn lease_owned(self: &Arc<Self>, size: u64) -> Lease<Arc<Self>> {
        Lease::new(Arc::clone(self), size)
    }
}

impl<A, C> Leases<A, C> {
    /// The limiter that they draw from, for all who decide without a lease. Its burst is smaller by
    /// the total.
    pub const fn limiter(&self) -> &Limiter<A, C> {
        &self.limiter
    }

    /// The most that leases hold together: the `total` that it was made with.
    pub const fn max_lent(&self) -> u64 {
        self.total
    }

    /// The sizes of the leases that live, together.
    pub fn lent(&self) -> u64 {
        // ORDERING: Relaxed. To be looked at; nobody concludes anything from it.
        self.lent.load(Ordering::Relaxed)
    }

    /// Reserves a size, or what is left of one.
    pub(super) fn reserve(&self, size: u64) -> u64 {
        // ORDERING: Relaxed. The exchange finds out what has changed since.
        let mut lent = self.lent.load(Ordering::Relaxed);
        loop {
            let size = size.min(self.total.saturating_sub(lent));
            if size == 0 {
                return 0;
            }
            // ORDERING: Acquire. It pairs with the release in `release`: whoever gets a size that a
            // dropped lease had draws from a word in which that one's permits are back. Relaxed,
            // both could be held at once, which is more than the total. Models: leases::
            match self.lent.compare_exchange_weak(
                lent,
                lent + size,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return size,
                Err(seen) => lent = seen,
            }
        }
    }

    /// Gives a size back, after the permits.
    pub(super) fn release(&self, size: u64) {
        // ORDERING: Release. See `reserve`.
        self.lent.fetch_sub(size, Ordering::Release);
    }
}

impl<A: Lend, C: Clock> Leases<A, C> {
    /// Takes one permit from the limiter, without a lease.
    ///
    /// # Errors
    ///
    /// [`Denied`] if it was not there.
    #[inline]
    pub fn try_acquire(&self) -> Result<Granted, Denied> {
        self.limiter.try_acquire()
    }

    /// Takes `n` permits, or none, from the limiter, without a lease.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there.
    #[inline]
    pub fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied> {
        self.limiter.try_acquire_n(n)
    }

    /// What the limiter's clock says.
    #[inline]
    pub fn now(&self) -> Tick {
        self.limiter.now()
    }
}

impl<A: fmt::Debug, C: fmt::Debug> fmt::Debug for Leases<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases")
            .field("limiter", &self.limiter)
            .field("lent", &self.lent())
            .field("total", &self.total)
            .finish()
    }
}

/// Without a lease.
impl<A: Lend, C> RateLimiter for Leases<A, C> {
    type Clock = C;

    #[inline]
    fn clock(&self) -> &C {
        self.limiter().clock()
    }

    #[inline]
    fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        self.limiter().at(now).try_acquire_n(n)
    }

    #[inline]
    fn take_up_to_at(&self, n: u64, now: Tick) -> Granted {
        self.limiter().at(now).take_up_to(n)
    }

    #[inline]
    fn available_at(&self, now: Tick) -> u64 {
        self.limiter().at(now).available()
    }
}

impl<A, C> MetricSource for Leases<A, C> {
    fn value(&self, metric: Metric) -> Option<Value> {
        match metric {
            Metric::Lent => Some(self.lent().into()),
            Metric::MaxLent => Some(self.max_lent().into()),
            _ => None,
        }
    }
}
