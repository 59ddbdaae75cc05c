//! The memory of a word, and the loop that changes it.
//!
//! ```text
//!  word: u64 ──► operation (pure, may run again) ──► Ok((next word, answer)) | Err(denied)
//!      ▲                                                      │
//!      └─────────────── compare_exchange ◄────────────────────┘
//! ```

use core::fmt;

use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::store::op::{Attempt, Current, Op, OpResult};
use crate::store::place::Place;
use crate::sync::{AtomicU64, Backoff, Ordering, const_unless_loom};

/// The word of a cell that has not started. A cell that is made where no clock can be read holds
/// this, and the first operation replaces it with the algorithm's initial word.
pub const UNSTARTED: u64 = u64::MAX;

/// Memory that holds a word, with three atomic operations: load, compare-exchange and swap.
///
/// [`WordCell`] is the usual one. Implement this for words in other memory, such as a mapped file:
/// a [`WordStore`](crate::store::WordStore) then provides all methods of a limiter.
pub trait AtomicWord {
    /// Returns the current word.
    fn load(&self) -> u64;

    /// Replaces `word` with `next` in one atomic step, if the cell still holds `word`.
    ///
    /// # Errors
    ///
    /// The word that the cell holds instead. It may be `word` itself: the exchange then failed
    /// spuriously, and the caller tries again.
    fn compare_exchange(&self, word: u64, next: u64) -> Result<(), u64>;

    /// Replaces the word unconditionally, and returns the previous one.
    fn swap(&self, next: u64) -> u64;

    /// Returns where the word is. A cell that refers to a word elsewhere returns the place of that
    /// word, so that [compositions](crate::compose::All) recognize limiters that share it.
    #[inline]
    fn place(&self) -> Place {
        Place::of(self)
    }
}

/// One word in memory.
///
/// ```
/// use tollgate::store::{WordCell, AtomicWord};
///
/// let cell = WordCell::new(1);
/// assert_eq!(cell.compare_exchange(2, 3), Err(1));
/// while cell.compare_exchange(1, 3).is_err() {} // it may fail spuriously
/// assert_eq!(cell.swap(0), 3);
/// ```
#[repr(transparent)]
pub struct WordCell {
    word: AtomicU64,
}

impl WordCell {
    const_unless_loom! {
        /// Creates a cell that holds `word`.
        #[must_use]
        pub fn new(word: u64) -> Self {
            Self {
                word: AtomicU64::new(word),
            }
        }
    }
}

impl AtomicWord for WordCell {
    #[inline]
    fn load(&self) -> u64 {
        // ORDERING: Relaxed. The word publishes no other memory, so this pairs with nothing. A
        // stale word is a state from a moment ago, and an exchange that was computed from it fails.
        // Model: cell::never_grants_more_than_the_burst
        self.word.load(Ordering::Relaxed)
    }

    #[inline]
    #[cfg_attr(any(tollgate_loom, tollgate_shuttle), track_caller)]
    fn compare_exchange(&self, word: u64, next: u64) -> Result<(), u64> {
        // ORDERING: Relaxed on success and on failure. The word publishes no other memory, so this
        // pairs with nothing. A step depends only on the word itself, and the exchange proves that
        // the word has not changed.
        // Model: cell::never_grants_more_than_the_burst
        match self
            .word
            .compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed)
        {
            Ok(_) => Ok(()),
            Err(seen) => Err(seen),
        }
    }

    #[inline]
    fn swap(&self, next: u64) -> u64 {
        // ORDERING: Relaxed. The word publishes no other memory, so this pairs with nothing. An
        // exchange that was computed from the replaced word fails.
        // Model: cell::reset_is_not_lost
        self.word.swap(next, Ordering::Relaxed)
    }
}

impl<P: AtomicWord + ?Sized> AtomicWord for &P {
    #[inline]
    fn load(&self) -> u64 {
        (**self).load()
    }

    #[inline]
    fn compare_exchange(&self, word: u64, next: u64) -> Result<(), u64> {
        (**self).compare_exchange(word, next)
    }

    #[inline]
    fn swap(&self, next: u64) -> u64 {
        (**self).swap(next)
    }

    #[inline]
    fn place(&self) -> Place {
        (**self).place()
    }
}

impl fmt::Debug for WordCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.load() {
            UNSTARTED => f.write_str("WordCell(unstarted)"),
            word => f.debug_tuple("WordCell").field(&word).finish(),
        }
    }
}

/// Runs `op` on the word until the word that it returned has replaced the word that it was given.
/// An operation that refuses, or leaves the word as it is, writes nothing.
///
/// This is lock-free: an exchange fails only if another one succeeded, or spuriously on processors
/// with a weak exchange. So whenever a thread retries, another thread has made progress. A retry
/// waits for a bounded time: see [`Backoff`].
#[inline(always)]
pub(crate) fn apply<A: Algorithm, P: AtomicWord, O: Op<A>>(
    algorithm: &A,
    cell: &P,
    now: Tick,
    mut op: O,
) -> OpResult<A, O> {
    let word = cell.load();
    let step = match word {
        UNSTARTED => None,
        _ => op.run_fast(algorithm, Current::new(word, now)),
    };
    if let Some(step) = step {
        let exchange = |next| cell.compare_exchange(word, next);
        if let Some(output) = Attempt::end::<A, _, _>(&op, word, step?, exchange).answer() {
            return Ok(output);
        }
    }
    retry(algorithm, cell, word, now, op)
}

/// Makes the attempts after the first, runs long operations, and starts unstarted cells. It is out
/// of line, so that the attempt that nearly every decision takes has no loop around it. It is in
/// tail position, so that no register has to be saved. `word` is the word that the caller read.
#[cold]
#[inline(never)]
fn retry<A: Algorithm, P: AtomicWord, O: Op<A>>(
    algorithm: &A,
    cell: &P,
    word: u64,
    now: Tick,
    mut op: O,
) -> OpResult<A, O> {
    let mut backoff = Backoff::new();
    let mut word = backoff.wait_if_changed(word, || cell.load());
    loop {
        if word == UNSTARTED {
            word = start(algorithm, cell, now);
        }
        let step = op.run(algorithm, Current::new(word, now));
        let exchange = |next| cell.compare_exchange(word, next);
        if let Some(output) = Attempt::end::<A, _, _>(&op, word, step?, exchange).answer() {
            return Ok(output);
        }
        word = backoff.wait_if_changed(word, || cell.load());
    }
}

/// Gives an unstarted cell the algorithm's initial word, unless another thread does it first, and
/// returns the cell's word.
#[cold]
#[inline(never)]
pub(crate) fn start<A: Algorithm, P: AtomicWord>(algorithm: &A, cell: &P, now: Tick) -> u64 {
    let first = algorithm.initial_word(now).min(UNSTARTED - 1);
    loop {
        match cell.compare_exchange(UNSTARTED, first) {
            Ok(()) => return first,
            // A spurious failure: try again.
            Err(UNSTARTED) => {}
            Err(started) => return started,
        }
    }
}
