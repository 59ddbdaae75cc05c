//! The direct limiter: an algorithm, a word, a clock.

use core::fmt;

use crate::algorithm::{Algorithm, ChangeQuota};
use crate::clock::{Clock, SystemClock, Tick};
use crate::quota::Quota;
use crate::rate_limiter::forms::limiter_verbs;
use crate::snapshot::verbs::snapshot_verbs;
use crate::store::cell::{AtomicWord, UNSTARTED, WordCell};
use crate::store::view::View;
use crate::store::word::WordStore;
use crate::sync::const_unless_loom;

/// A rate limiter: share it by reference, from a `static` or in an `Arc`, and ask it.
///
/// ```
/// use tollgate::{Denied, Limiter, Quota};
///
/// # fn main() -> Result<(), tollgate::ConfigError> {
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
/// The constructors without a clock reading are `const`, so a limit can be a global. With
/// [`const_unwrap!`](crate::const_unwrap) a quota that can't be had does not compile:
///
/// ```
/// use tollgate::{Limiter, Quota, TokenBucket, const_unwrap};
///
/// static LOGINS: Limiter<TokenBucket> = const_unwrap!(Limiter::token_bucket(Quota::per_minute(10)));
///
/// assert!(LOGINS.try_acquire().is_ok());
/// ```
///
/// A `const` constructor can't read a clock. That matters only to a quota with
/// [`initial`](Quota::initial) permits: such a limiter starts, and begins to fill, with the first
/// verb that is called on it, or with [`start`](Self::start). One made by
/// [`with_clock`](Self::with_clock) starts at once.
///
/// # Shown
///
/// `Debug` shows the algorithm as text, the word and the clock. It reads no clock: to see what is
/// available, show the view of a tick, `limiter.at(limiter.now())`.
///
/// # Many threads
///
/// Every verb takes `&self` and is one atomic step; none blocks, and a thread that is stopped in
/// the middle of one stops nobody else. A verb that is refused writes nothing, but that the very
/// first verb on a limiter from a `const` constructor starts it. (The very first reading of the
/// system clock in a process calibrates it, and may make others wait: see [`SystemClock`].)
#[repr(C)]
pub struct Limiter<A, C = SystemClock, P = WordCell> {
    // The word first, and next to it the parameters that every decision reads.
    cell: P,
    algorithm: A,
    clock: C,
}

impl<A> Limiter<A> {
    const_unless_loom! {
        /// A limiter on the system's clock.
        #[must_use]
        pub fn new(algorithm: A) -> Self {
            Self::unstarted(algorithm, SystemClock)
        }
    }
}

impl<A, C> Limiter<A, C> {
    const_unless_loom! {
        /// A limiter on a clock of your own that starts with its first use: the `const` form of
        /// [`with_clock`](Self::with_clock).
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
    /// A limiter whose word lives in a cell of your own, such as one in a mapped file: see
    /// `examples/mapped_file.rs`. A word of 0 is full; [`UNSTARTED`] begins with the quota's
    /// `initial` permits. All that share a word must use the same algorithm, and clocks that agree.
    ///
    /// ```
    /// use tollgate::store::WordCell;
    /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), tollgate::ConfigError> {
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

    /// The algorithm that decides.
    pub const fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// The clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }
}

impl<A: Algorithm, C, P: AtomicWord> Limiter<A, C, P> {
    /// A view on which every verb runs at this tick, without reading a clock.
    ///
    /// A tick past the limiter's horizon, as [`Tick::MAX`] is and those 1 or 2 ns before it are for
    /// any bucket, counts as the horizon: nothing is refilled there (see [`Tick`]).
    ///
    /// ```
    /// use tollgate::{Limiter, Quota, Tick};
    ///
    /// # fn main() -> Result<(), tollgate::ConfigError> {
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
    /// A limiter on a clock of your own. It starts now.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), tollgate::ConfigError> {
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
    /// Starts a limiter that was made by a `const` constructor, if nothing has yet.
    pub fn start(&self) {
        self.at(self.now()).start();
    }
}

limiter_verbs!([] [P: AtomicWord] Limiter<A, C, P>);
snapshot_verbs!(['a, P: AtomicWord] WordStore<'a, A, P>, [P: AtomicWord] Limiter<A, C, P>);
#[cfg(feature = "std")]
crate::wait::waits!([] [P: AtomicWord] borrowed Limiter<A, C, P>);

impl<A: ChangeQuota, C, P> Limiter<A, C, P> {
    /// The quota that the algorithm was made from.
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
