//! Stores: where a limiter's state lives, and which algorithm governs it.
//!
//! ```text
//!  limiter ──at(now)──► View { store, now } ──verb──► store.apply(now, operation)
//! ```
//!
//! A *verb* is a method of a limiter, such as `try_acquire`. Each verb is written once, on
//! [`View`], as an operation that the store runs. The stores of this crate are a [`WordStore`] (for
//! a [`Limiter`](crate::Limiter)), a word next to parameters that change (`Adjustable`) and a slot
//! of a table (`Key`).
//!
//! For a word in memory of your own, implement [`AtomicWord`], which is all that
//! [`Limiter::with_cell`](crate::Limiter::with_cell) needs: `examples/mapped_file.rs` shares a word
//! between processes, and `examples/own_map.rs` keeps the words of keys in a concurrent map.
//! Implement [`Store`] if the algorithm differs from word to word, or if more than one word must be
//! exchanged.

mod as_of;
pub(crate) mod cell;
pub(crate) mod op;
pub(crate) mod operations;
pub(crate) mod place;
pub(crate) mod view;
pub(crate) mod word;

use crate::algorithm::Algorithm;
use crate::clock::Tick;
pub use cell::{AtomicWord, UNSTARTED, WordCell};
pub use op::{Current, Op, OpResult, Refusal, Step};
pub use place::Place;
pub use view::View;
pub use word::WordStore;

/// The size of a limiter's snapshot, in bytes.
pub const SNAPSHOT_BYTES: usize = 344;

/// State that operations run on, together with its current algorithm. A [`View`] provides the
/// verbs.
///
/// ```
/// use std::cell::Cell;
/// use tollgate::store::{Current, Op, OpResult, Store, View};
/// use tollgate::{Quota, Tick, TokenBucket};
///
/// /// A limit for one thread, without atomics.
/// struct Local(TokenBucket, Cell<u64>);
///
/// impl Store for &Local {
///     type Algorithm = TokenBucket;
///
///     fn apply<O: Op<TokenBucket>>(&self, now: Tick, mut op: O) -> OpResult<TokenBucket, O> {
///         let (next, output) = op.run(&self.0, Current::new(self.1.get(), now))?;
///         self.1.set(next);
///         Ok(output)
///     }
/// }
///
/// # fn main() -> Result<(), tollgate::error::QuotaError> {
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

    /// Runs an operation at this tick, and again for as long as another thread changes the state
    /// meanwhile. When this returns, the state that the operation computed has replaced the state
    /// that it was given.
    ///
    /// # Errors
    ///
    /// The operation's refusal. Nothing is written then.
    fn apply<O: Op<Self::Algorithm>>(&self, now: Tick, op: O) -> OpResult<Self::Algorithm, O>;

    /// Makes one attempt, without a retry. `None` means that nothing was changed, and that the
    /// operation was not refused either; use [`apply`](Self::apply).
    #[inline(always)]
    fn try_fast<O: Op<Self::Algorithm>>(
        &self,
        now: Tick,
        op: O,
    ) -> Option<OpResult<Self::Algorithm, O>> {
        let _ = (now, op);
        None
    }

    /// Reads the state: a word and its algorithm, both from the same moment.
    #[inline(always)]
    fn look<T>(&self, now: Tick, ask: impl FnMut(&Self::Algorithm, u64, Tick) -> T) -> T {
        let Ok(answer) = self.apply(now, operations::Look(ask));
        answer
    }

    /// Returns where the state is, or `None` if it is in the limiter itself.
    #[inline]
    fn place(&self) -> Option<Place> {
        None
    }

    /// Makes the state fresh.
    fn reset(&self, now: Tick) {
        let Ok(()) = self.apply(now, operations::Reset);
    }
}
