//! Statistics of decisions, for limiters that opt in.

mod counters;
mod leases;
mod limiter;
mod waits;

pub use counters::{Counters, LimiterStats};

use core::borrow::Borrow;
use core::fmt;

/// A limiter that counts what it grants and what it denies.
///
/// Each counter is split into one part for each core, in cache lines of its own, so that threads
/// rarely write to the same line. `stats` sums the parts. A limiter that is not wrapped pays
/// nothing.
///
/// ```
/// use tollgate::{Counted, Limiter, Quota};
///
/// # fn main() -> Result<(), tollgate::error::QuotaError> {
/// let limiter = Counted::new(Limiter::token_bucket(Quota::per_hour(5))?);
/// for _ in 0..3 {
///     let _ = limiter.try_acquire_n(2);
/// }
/// let counts = limiter.stats();
/// assert_eq!((counts.granted, counts.permits, counts.denied), (2, 4, 1));
/// # Ok(())
/// # }
/// ```
///
/// # What it wraps
///
/// | wrapped | counts |
/// |---|---|
/// | any [`TryAcquire`], or a key of a table | its methods, also those that reserve and wait |
/// | `Keyed` | all keys together: `key(..)` is a `Counted` key |
/// | [`Lease`] | permits taken from the lease: see [`with_same_counters`] |
/// | a member of a composition | what is taken from this member, and the requests that it denies |
///
/// - A [`Concurrency`](crate::Concurrency) on its own counts without a wrapper: see
///   [`Concurrency::counted`](crate::Concurrency::counted).
/// - To count what an `AsyncLimiter` does, count the limiter inside it:
///   `Counted::new(limiter).with_timer(timer)`.
/// - To count the requests of a composition, count its members: each request takes from all of
///   them, and the one that denies counts the denial. What a lost race took and rolled back counts
///   as granted and returned. A limit that appears twice is counted by its first member.
///
/// `S` is [`Counters`], or a reference to them in the key of a counted table.
///
/// [`TryAcquire`]: crate::TryAcquire
/// [`Lease`]: crate::leases::Lease
/// [`with_same_counters`]: Self::with_same_counters
#[derive(Clone, Copy)]
pub struct Counted<G, S = Counters> {
    pub(crate) limiter: G,
    pub(crate) counters: S,
}

impl<G> Counted<G> {
    /// Wraps a limiter and counts the requests made through the wrapper. Clones share the counters.
    #[must_use]
    pub fn new(limiter: G) -> Self {
        Self {
            limiter,
            counters: Counters::new(),
        }
    }
}

impl<G, S> Counted<G, S> {
    /// Returns the limiter. Requests made directly on it are not counted.
    pub const fn limiter(&self) -> &G {
        &self.limiter
    }
}

impl<G, S: Borrow<Counters>> Counted<G, S> {
    /// Wraps another limiter that adds to the same counters, such as a key that moves into a task,
    /// or a lease. A permit counts when it is taken from the lease, and not when the lease draws
    /// it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{Counted, Leases, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), tollgate::error::LimiterError> {
    /// let bucket = TokenBucket::new(Quota::per_hour(100))?;
    /// let limiter = Counted::new(Arc::new(Leases::new(bucket, 50)?));
    /// let mut lease = limiter.with_same_counters(limiter.limiter().lease_owned(10));
    /// let worker = std::thread::spawn(move || lease.try_acquire().is_ok());
    /// assert!(worker.join().unwrap());
    /// assert_eq!(limiter.stats().granted, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_same_counters<L>(&self, limiter: L) -> Counted<L> {
        Counted {
            limiter,
            counters: self.counters().clone(),
        }
    }

    /// Returns what was counted so far.
    #[must_use]
    pub fn stats(&self) -> LimiterStats {
        self.counters().stats()
    }

    #[inline(always)]
    pub(crate) fn counters(&self) -> &Counters {
        self.counters.borrow()
    }

    /// Counts permits that came back.
    #[inline(always)]
    pub(crate) fn returned(&self, n: u64) -> u64 {
        self.counters().returned(n);
        n
    }
}

impl<G: fmt::Debug, S: Borrow<Counters>> fmt::Debug for Counted<G, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted")
            .field("limiter", &self.limiter)
            .field("stats", &self.stats())
            .finish()
    }
}
