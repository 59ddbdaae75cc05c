//! The store of one word.

use core::fmt;

use crate::algorithm::Algorithm;
use crate::cell::{self, Cell, Place, UNSTARTED};
use crate::clock::Tick;
use crate::op::Op;
use crate::store::Store;
use crate::view::View;

/// One word, and the algorithm that rules it: the store of a [`Limiter`](crate::Limiter), and of
/// words in memory of your own.
///
/// ```
/// use tollgate::cell::Cell;
/// use tollgate::{Quota, Tick, TokenBucket, Word};
///
/// # fn main() -> Result<(), tollgate::ConfigError> {
/// let bucket = TokenBucket::new(Quota::per_second(10))?;
/// let words = [Cell::new(0), Cell::new(0)]; // zeroed memory is a set of full buckets
/// let second = Word::new(&bucket, &words[1]).at(Tick::from_nanos(5));
/// assert!(second.try_acquire_n(10).is_ok());
/// assert_eq!(second.available(), 0);
/// # Ok(())
/// # }
/// ```
///
/// A place that holds [`UNSTARTED`] gets the algorithm's initial word from the first
/// verb.
pub struct Word<'a, A, P = Cell> {
    pub(crate) algorithm: &'a A,
    pub(crate) place: &'a P,
}

impl<'a, A, P> Word<'a, A, P> {
    /// The word at `place`, ruled by `algorithm`.
    #[inline]
    pub const fn new(algorithm: &'a A, place: &'a P) -> Self {
        Self { algorithm, place }
    }

    /// A view on which every verb runs at this tick.
    #[inline]
    pub const fn at(self, now: Tick) -> View<Self> {
        View::new(self, now)
    }
}

impl<A: Algorithm, P: Place> View<Word<'_, A, P>> {
    /// [`Limiter::start`](crate::Limiter::start) at this tick.
    pub fn start(&self) {
        cell::start(self.store.algorithm, self.store.place, self.now);
    }
}

impl<A: Algorithm, P: Place> Store for Word<'_, A, P> {
    type Algorithm = A;

    #[inline(always)]
    fn apply<O: Op<A>>(&self, now: Tick, op: O) -> Result<O::Output, O::Refusal> {
        cell::apply(self.algorithm, self.place, now, op)
    }

    #[inline(always)]
    fn try_fast<O: Op<A>>(&self, now: Tick, op: O) -> Option<O::Output> {
        cell::try_fast(self.algorithm, self.place, now, op, |_| true)
    }

    #[inline(always)]
    fn look<T>(&self, now: Tick, mut ask: impl FnMut(&A, u64, Tick) -> T) -> T {
        let word = match self.place.load() {
            UNSTARTED => cell::start(self.algorithm, self.place, now),
            word => word,
        };
        ask(self.algorithm, word, now)
    }

    #[inline]
    fn reset(&self, _now: Tick) {
        self.place.replace(0);
    }
}

impl<A, P> Clone for Word<'_, A, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, P> Copy for Word<'_, A, P> {}

impl<A: fmt::Debug, P: fmt::Debug> fmt::Debug for Word<'_, A, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Word")
            .field("algorithm", &self.algorithm)
            .field("place", &self.place)
            .finish()
    }
}
