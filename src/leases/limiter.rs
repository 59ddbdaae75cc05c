use super::lease::Lease;
use core::fmt;

use crossbeam_utils::CachePadded;

use crate::algorithm::Lend;
use crate::clock::{Clock, SystemClock, Tick};
use crate::limiter::Limiter;
use crate::limiter_error::LimiterError;
use crate::metrics::{Metric, Metrics, Value};
use crate::outcome::{Denied, Granted};
use crate::store::{View, WordStore};
use crate::sync::{AtomicU64, Ordering};
use crate::traits::forms::{clock_forms, traits_by_views};
use crate::traits::verbs::take_verbs;
use std::sync::Arc;

/// A [`Limiter`] that lends permits to threads: while a [`Lease`] holds permits, it grants them
/// without reading the clock and without touching shared memory.
///
/// Use it if most requests are granted and each of a few threads has a lease. A denial reads the
/// clock and asks the limiter, so if most requests are denied, a plain [`Limiter`] is just as fast.
/// (docs/MANY_CORES.md has a table of which limiter is fastest when.)
///
/// Give each lease its share of the total. A busy thread then draws enough for 16 to 33
/// microseconds at once, and a slow one 64 permits: see [`Lease`].
///
/// A thread without a lease can call [`try_acquire`](Self::try_acquire) and the other methods that
/// take; those that give back are on [`limiter()`](Self::limiter). If you never lend, use a
/// [`Limiter`].
///
/// ```
/// use tollgate::{Leases, Quota};
///
/// # fn main() -> Result<(), tollgate::error::LimiterError> {
/// let limiter = Leases::token_bucket(Quota::per_hour(100_000), 1000)?;
/// let admitted = std::thread::scope(|scope| {
///     let threads: Vec<_> = (0..4)
///         .map(|_| {
///             let mut lease = limiter.lease(250);
///             scope.spawn(move || (0..30_000).filter(|_| lease.try_acquire().is_ok()).count())
///         })
///         .collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
/// });
/// // What a moment refills, and what a thread may have kept to the end.
/// assert!((98_000..101_000).contains(&admitted));
/// # Ok(())
/// # }
/// ```
///
/// # Guarantees
///
/// **The bound is that of the algorithm with its full burst**, exactly, at the ticks at which
/// permits are used. A lease can use its permits at any moment, so they are set aside: the limiter
/// works with a burst that is smaller by `total`, and leases never hold more than `total` together.
/// (For a window, the limit of each window is smaller by `total`.) Permits that a request takes
/// beyond the lease's size count like any other grant.
///
/// A lease grants whenever that limiter would. With windows there is one caveat. A caller can begin
/// the next window early, by [`at`](Limiter::at) on the [`limiter`](Self::limiter) with a tick
/// ahead of the clock. Leases then draw from that window too, and their permits count in it, and
/// not at the tick at which they are used. ([`Granted::at`] says the same of a grant without a
/// lease.)
///
/// **Costs.** The burst for a caller without a lease is smaller by `total`, even while no lease is
/// alive. Only the lease can use the permits that it holds, until it gives them back or is dropped.
/// A leaked lease keeps its part of `total`.
pub struct Leases<A, C = SystemClock> {
    pub(super) limiter: Limiter<A, C>,
    pub(super) lent: CachePadded<AtomicU64>,
    pub(super) total: u64,
}

impl<A: Lend> Leases<A> {
    /// Creates a limiter on the system clock that lends at most `total` permits at once.
    ///
    /// # Errors
    ///
    /// [`LimiterError::ZeroLeases`] if `total` is 0, and [`LimiterError::LeasesTooLarge`] if the
    /// algorithm can't lend that many and keep at least one.
    ///
    /// ```
    /// use tollgate::error::LimiterError;
    /// use tollgate::{Leases, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), LimiterError> {
    /// let bucket = TokenBucket::new(Quota::per_second(100).burst(20))?;
    /// assert_eq!(
    ///     Leases::new(bucket, 20).unwrap_err(),
    ///     LimiterError::LeasesTooLarge { total: 20, max: 19 }
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(algorithm: A, total: u64) -> Result<Self, LimiterError> {
        Self::with_clock(algorithm, total, SystemClock)
    }
}

impl<A: Lend, C: Clock> Leases<A, C> {
    /// Creates a limiter on a clock of your own that lends at most `total` permits at once.
    ///
    /// # Errors
    ///
    /// [`LimiterError::ZeroLeases`] if `total` is 0, and [`LimiterError::LeasesTooLarge`] if the
    /// algorithm can't lend that many and keep at least one.
    pub fn with_clock(algorithm: A, total: u64, clock: C) -> Result<Self, LimiterError> {
        let max = algorithm.most_lent();
        if total == 0 {
            return Err(LimiterError::ZeroLeases);
        }
        if total > max {
            return Err(LimiterError::LeasesTooLarge { total, max });
        }
        Ok(Self {
            limiter: Limiter::with_clock(algorithm.lending(total)?, clock),
            lent: CachePadded::new(AtomicU64::new(0)),
            total,
        })
    }

    /// Creates a lease that can hold up to `size` permits: fewer if less is left of the total. A
    /// lease of size 0 takes each permit from the limiter. See [`Lease::size`].
    ///
    /// The size is set aside from the total until the lease is dropped, whatever the lease holds.
    /// The new lease holds no permits yet. If `size` is more than 64, it draws 64 permits at first,
    /// and more if its thread needs more: see [`Lease`].
    pub fn lease(&self, size: u64) -> Lease<&Self> {
        Lease::new(self, size)
    }

    /// Creates a lease for threads and tasks that outlive this borrow: it keeps the limiter alive.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{Leases, Quota};
    ///
    /// # fn main() -> Result<(), tollgate::error::LimiterError> {
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
    /// Returns the limiter that leases draw from, for callers that decide without a lease. Its
    /// burst is smaller by the total.
    pub const fn limiter(&self) -> &Limiter<A, C> {
        &self.limiter
    }

    /// Returns the most permits that leases can hold together: the `total` that the limiter was
    /// created with.
    pub const fn max_lent(&self) -> u64 {
        self.total
    }

    /// Returns the sum of the sizes of all live leases.
    pub fn lent(&self) -> u64 {
        // ORDERING: Relaxed. It publishes nothing: the value is for display, and no decision
        // depends on it.
        self.lent.load(Ordering::Relaxed)
    }
}

impl<A: Lend, C: Clock> Leases<A, C> {
    /// Takes one permit from the limiter, without a lease.
    ///
    /// # Errors
    ///
    /// [`Denied`] if no permit is available.
    #[inline]
    pub fn try_acquire(&self) -> Result<Granted, Denied> {
        self.try_acquire_n(1)
    }

    /// Reads the limiter's clock.
    #[inline]
    pub fn now(&self) -> Tick {
        self.limiter.now()
    }
}

/// Decisions without a lease.
impl<A: Lend, C> Leases<A, C> {
    const fn clock(&self) -> &C {
        self.limiter().clock()
    }

    const fn at(&self, now: Tick) -> View<WordStore<'_, A>> {
        self.limiter().at(now)
    }
}

take_verbs!([clock_forms] {[+ Lend] [] Leases<A, C>});
take_verbs!([traits_by_views] {[+ Lend] [] Leases<A, C>});

impl<A: fmt::Debug, C: fmt::Debug> fmt::Debug for Leases<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases")
            .field("limiter", &self.limiter)
            .field("lent", &self.lent())
            .field("total", &self.total)
            .finish()
    }
}

impl<A, C> Metrics for Leases<A, C> {
    fn value(&self, metric: Metric) -> Option<Value> {
        match metric {
            Metric::Lent => Some(self.lent().into()),
            Metric::MaxLent => Some(self.max_lent().into()),
            _ => None,
        }
    }
}
