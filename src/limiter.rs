//! [`Limiter`]: an algorithm, a word and a clock.

use core::fmt;

use crate::algorithm::{Algorithm, ChangeQuota};
use crate::clock::{Clock, SystemClock, Tick};
use crate::quota::Quota;
use crate::snapshot::verbs::snapshot_verbs;
use crate::store::cell::{AtomicWord, UNSTARTED, WordCell};
use crate::store::view::View;
use crate::store::word::WordStore;
use crate::sync::const_unless_loom;
use crate::traits::forms::limiter_verbs;

/// A rate limiter. Share it by reference, from a `static` or in an `Arc`.
///
/// ```
/// use tollgate::{Denied, Limiter, Quota};
///
/// # fn main() -> Result<(), tollgate::error::QuotaError> {
/// let limiter = Limiter::token_bucket(Quota::per_second(100).burst(20))?;
/// match limiter.try_acquire() {
///     Ok(granted) => println!("go, {} left", granted.remaining()),
///     Err(Denied::Later { retry_after, .. }) => println!("come back in {retry_after:?}"),
///     Err(denied) => println!("{denied}"),
/// }
/// # Ok(())
/// # }
/// ```
///
/// # In a `static`
///
/// [`new`](Self::new) and the constructors from a quota are `const`, so a limit can be a global.
/// With [`const_unwrap!`](crate::const_unwrap), an invalid quota does not compile:
///
/// ```
/// use tollgate::{Limiter, Quota, TokenBucket, const_unwrap};
///
/// static LOGINS: Limiter<TokenBucket> = const_unwrap!(Limiter::token_bucket(Quota::per_minute(10)));
///
/// assert!(LOGINS.try_acquire().is_ok());
/// ```
///
/// A `const` constructor can't read a clock, so its limiter starts at its first use, or when
/// [`start`](Self::start) is called. This matters only for a quota with [`initial`](Quota::initial)
/// permits, whose bucket begins to fill then. A limiter made by [`with_clock`](Self::with_clock)
/// starts at once.
///
/// # Debug output
///
/// `Debug` shows the algorithm as text, the word and the clock. It does not read the clock. To see
/// how many permits are available, format the view of a tick, `limiter.at(limiter.now())`.
///
/// # Many threads
///
/// All methods take `&self`, and every decision is one atomic step. No method blocks, and a thread
/// that is preempted inside one blocks no other thread. A denial writes nothing, with one
/// exception: the first request to a limiter from a `const` constructor starts it. (The first
/// reading of the system clock in a process calibrates it. Other threads may wait for that: see
/// [`SystemClock`].)
#[repr(C)]
pub struct Limiter<A, C = SystemClock, P = WordCell> {
    // The word is first, next to the parameters that every decision reads.
    cell: P,
    algorithm: A,
    clock: C,
}

impl<A> Limiter<A> {
    const_unless_loom! {
        /// Creates a limiter on the system clock.
        #[must_use]
        pub fn new(algorithm: A) -> Self {
            Self::unstarted(algorithm, SystemClock)
        }
    }
}

impl<A, C> Limiter<A, C> {
    const_unless_loom! {
        /// Creates a limiter that starts at its first use, on your own clock. This is the `const`
        /// form of [`with_clock`](Self::with_clock), whose limiter starts at once.
        #[must_use]
        pub fn unstarted(algorithm: A, clock: C) -> Self {
            Self {
                algorithm,
                clock,
                cell: WordCell::new(UNSTARTED),
            }
        }
    }
}

impl<A, C, P> Limiter<A, C, P> {
    /// Creates a limiter whose word lives in your own cell, for example in a mapped file (see
    /// `examples/mapped_file.rs`).
    ///
    /// A word of 0 is a full bucket. [`UNSTARTED`] is a limiter with the quota's `initial` permits.
    /// All limiters that share a word must use the same algorithm, and their clocks must agree.
    ///
    /// ```
    /// use tollgate::store::WordCell;
    /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), tollgate::error::QuotaError> {
    /// let words = [WordCell::new(0), WordCell::new(0)];
    /// let bucket = TokenBucket::new(Quota::per_second(10))?;
    /// let second = Limiter::with_cell(bucket, ManualClock::new(), &words[1]);
    /// assert!(second.try_acquire_n(10).is_ok());
    /// assert_eq!(second.available(), 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn with_cell(algorithm: A, clock: C, cell: P) -> Self {
        Self {
            cell,
            algorithm,
            clock,
        }
    }

    /// Returns the algorithm.
    pub const fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// Returns the clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }
}

impl<A: Algorithm, C, P: AtomicWord> Limiter<A, C, P> {
    /// Returns a view whose methods use this tick and read no clock.
    ///
    /// The limiter treats every tick after its horizon as the horizon, where nothing is refilled
    /// (see [`Tick`]). For a token bucket, a GCRA and a leaky bucket, [`Tick::MAX`] and the 2 ns
    /// before it are always past the horizon.
    ///
    /// ```
    /// use tollgate::{Limiter, Quota, Tick};
    ///
    /// # fn main() -> Result<(), tollgate::error::QuotaError> {
    /// let limiter = Limiter::gcra(Quota::per_second(1))?;
    /// let then = limiter.at(Tick::from_nanos(7));
    /// assert!(then.try_acquire().is_ok());
    /// assert!(then.try_acquire().is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub const fn at(&self, now: Tick) -> View<WordStore<'_, A, P>> {
        WordStore::new(&self.algorithm, &self.cell).at(now)
    }
}

impl<A: Algorithm, C: Clock> Limiter<A, C> {
    /// Creates a limiter on your own clock. It starts now.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), tollgate::error::QuotaError> {
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::new(Quota::per_second(1).burst(5).initial(0))?;
    /// let limiter = Limiter::with_clock(bucket, clock.clone());
    /// clock.advance(Duration::from_secs(2));
    /// assert_eq!(limiter.available(), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_clock(algorithm: A, clock: C) -> Self {
        let limiter = Self::unstarted(algorithm, clock);
        limiter.start();
        limiter
    }
}

impl<A: Algorithm, C: Clock, P: AtomicWord> Limiter<A, C, P> {
    /// Starts a limiter that a `const` constructor made, unless it has already started.
    pub fn start(&self) {
        self.at(self.now()).start();
    }
}

limiter_verbs!([] [P: AtomicWord] Limiter<A, C, P>);
snapshot_verbs!(['a, P: AtomicWord] WordStore<'a, A, P>, [P: AtomicWord] Limiter<A, C, P>);

impl<A: ChangeQuota, C, P> Limiter<A, C, P> {
    /// Returns the quota that the algorithm was made from.
    pub fn quota(&self) -> Quota {
        self.algorithm.quota()
    }
}

impl<A: fmt::Debug, C: fmt::Debug, P: fmt::Debug> fmt::Debug for Limiter<A, C, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("algorithm", &self.algorithm)
            .field("cell", &self.cell)
            .field("clock", &self.clock)
            .finish()
    }
}
