//! Stores: where a limiter's state lives, and which algorithm rules it.
//!
//! ```text
//!  Limiter, Adjustable, Key, MapKey ──at(now)──► View { store, now } ──verb──► store.apply(now, operation)
//! ```
//!
//! A verb is written once, on [`View`], as an operation that the store runs. This crate's stores are a
//! [`Word`] (of a [`Limiter`](crate::Limiter)), a word beside parameters that change
//! (`Adjustable`), a slot of a table (`Key`) and an entry of a map (`MapKey`).
//!
//! For a word in memory of your own implement [`Place`]: that is all that
//! [`Limiter::in_place`](crate::Limiter::in_place) needs. Implement [`Store`] where the algorithm
//! differs from word to word, or where more than a word must be exchanged.

use core::fmt;

use crate::algorithm::Algorithm;
use crate::cell::{self, Cell, Place, UNSTARTED};
use crate::clock::Tick;
pub use crate::op::{Current, Op, Refusal, Step};
use crate::view::View;

/// State that operations run on, with the algorithm in force. A [`View`] has the verbs.
///
/// ```
/// use std::cell::Cell;
/// use tollgate::store::{Current, Op, Store};
/// use tollgate::{Quota, Tick, TokenBucket, View};
///
/// /// The limit of one thread: nothing is atomic.
/// struct Local(TokenBucket, Cell<u64>);
///
/// impl Store for &Local {
///     type Algorithm = TokenBucket;
///
///     fn apply<O: Op<TokenBucket>>(&self, now: Tick, mut op: O) -> Result<O::Output, O::Refusal> {
///         let (next, output) = op.run(&self.0, Current::new(self.1.get(), now))?;
///         self.1.set(next);
///         Ok(output)
///     }
/// }
///
/// # fn main() -> Result<(), tollgate::ConfigError> {
/// let local = Local(TokenBucket::new(Quota::per_second(10))?, Cell::new(0));
/// let view = View::new(&local, Tick::from_nanos(5));
/// assert_eq!(view.take_up_to(8).n(), 8);
/// assert_eq!(view.refund(1), 1);
/// assert_eq!(view.available(), 3);
/// # Ok(())
/// # }
/// ```
pub trait Store {
    /// The algorithm.
    type Algorithm: Algorithm;

    /// Runs an operation at this tick until its answer holds: until the state that it was computed
    /// from has been replaced by the one that it computed.
    ///
    /// # Errors
    ///
    /// The operation's refusal. Then nothing is written.
    fn apply<O: Op<Self::Algorithm>>(&self, now: Tick, op: O) -> Result<O::Output, O::Refusal>;

    /// Makes one attempt, without a retry. `None` means that nothing was changed; use
    /// [`apply`](Self::apply).
    #[inline(always)]
    fn try_fast<O: Op<Self::Algorithm>>(&self, now: Tick, op: O) -> Option<O::Output> {
        let _ = (now, op);
        None
    }

    /// Reads the state: the word and its algorithm, of one moment.
    #[inline(always)]
    fn look<T>(&self, now: Tick, ask: impl FnMut(&Self::Algorithm, u64, Tick) -> T) -> T {
        let Ok(answer) = self.apply(now, crate::op::Look(ask));
        answer
    }

    /// Makes the state fresh.
    fn reset(&self, now: Tick) {
        let Ok(()) = self.apply(now, crate::op::Reset);
    }
}

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
