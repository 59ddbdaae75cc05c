//! The store of one word.

use core::fmt;

use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::store::Store;
use crate::store::cell::{self, AtomicWord, UNSTARTED, WordCell};
use crate::store::op::{Attempt, Current, Op, OpResult};
use crate::store::place::Place;
use crate::store::view::View;

/// One word and the algorithm that governs it. This is the store of a [`Limiter`](crate::Limiter),
/// and of words in memory of your own.
///
/// ```
/// use tollgate::store::{WordCell, WordStore};
/// use tollgate::{Quota, Tick, TokenBucket};
///
/// # fn main() -> Result<(), tollgate::error::QuotaError> {
/// let bucket = TokenBucket::new(Quota::per_second(10))?;
/// let words = [WordCell::new(0), WordCell::new(0)]; // zeroed memory holds full buckets
/// let second = WordStore::new(&bucket, &words[1]).at(Tick::from_nanos(5));
/// assert!(second.try_acquire_n(10).is_ok());
/// assert_eq!(second.available(), 0);
/// # Ok(())
/// # }
/// ```
///
/// If the cell holds [`UNSTARTED`], the first operation gives it the algorithm's initial word.
pub struct WordStore<'a, A, P = WordCell> {
    pub(crate) algorithm: &'a A,
    pub(crate) cell: &'a P,
}

impl<'a, A, P> WordStore<'a, A, P> {
    /// Creates a store of the word in `cell`, governed by `algorithm`.
    #[inline]
    pub const fn new(algorithm: &'a A, cell: &'a P) -> Self {
        Self { algorithm, cell }
    }

    /// Returns a view of the word at this tick.
    #[inline]
    pub const fn at(self, now: Tick) -> View<Self> {
        View::new(self, now)
    }
}

impl<A: Algorithm, P: AtomicWord> View<WordStore<'_, A, P>> {
    /// Starts the limiter if it has not started, as [`Limiter::start`](crate::Limiter::start) does.
    pub fn start(&self) {
        cell::start(self.store.algorithm, self.store.cell, self.now);
    }
}

impl<A: Algorithm, P: AtomicWord> Store for WordStore<'_, A, P> {
    type Algorithm = A;

    #[inline(always)]
    fn apply<O: Op<A>>(&self, now: Tick, op: O) -> OpResult<A, O> {
        cell::apply(self.algorithm, self.cell, now, op)
    }

    #[inline(always)]
    fn try_fast<O: Op<A>>(&self, now: Tick, mut op: O) -> Option<OpResult<A, O>> {
        let word = self.cell.load();
        if word == UNSTARTED {
            return None;
        }
        let step = match op.run_fast(self.algorithm, Current::new(word, now))? {
            Ok(step) => step,
            Err(refusal) => return Some(Err(refusal)),
        };
        let exchange = |next| self.cell.compare_exchange(word, next);
        Some(Ok(
            Attempt::end::<A, _, _>(&op, word, step, exchange).answer()?
        ))
    }

    #[inline(always)]
    fn look<T>(&self, now: Tick, mut ask: impl FnMut(&A, u64, Tick) -> T) -> T {
        let word = match self.cell.load() {
            UNSTARTED => cell::start(self.algorithm, self.cell, now),
            word => word,
        };
        ask(self.algorithm, word, now)
    }

    #[inline]
    fn place(&self) -> Option<Place> {
        Some(self.cell.place())
    }

    #[inline]
    fn reset(&self, _now: Tick) {
        self.cell.swap(0);
    }
}

impl<A, P> Clone for WordStore<'_, A, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, P> Copy for WordStore<'_, A, P> {}

impl<A: fmt::Debug, P: fmt::Debug> fmt::Debug for WordStore<'_, A, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WordStore")
            .field("algorithm", &self.algorithm)
            .field("cell", &self.cell)
            .finish()
    }
}
