//! Where a word lives, and the loop that changes it.
//!
//! ```text
//!  word: u64 ──► operation (pure, may run again) ──► Ok((next word, answer)) | Err(denied)
//!      ▲                                                      │
//!      └─────────────── compare_exchange ◄────────────────────┘
//! ```

use core::fmt;

use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::store::op::{Current, Op, OpResult};
use crate::sync::{AtomicU64, Backoff, Ordering, const_unless_loom};

/// The word of a cell that has not started: it was made where no clock could be read, and gets
/// its algorithm's initial word from the first verb.
pub const UNSTARTED: u64 = u64::MAX;

/// Where a word lives: load, compare and exchange, swap.
///
/// [`WordCell`] is the usual one. For words in other memory, such as a mapped file, implement this:
/// a [`WordStore`](crate::store::WordStore) then has all verbs.
pub trait AtomicWord {
    /// The word now.
    fn load(&self) -> u64;

    /// Puts `next` where `word` stands, in one atomic step, if `word` still stands there.
    ///
    /// # Errors
    ///
    /// The word that was found, and left there. It may be `word` itself: the loop then tries
    /// again.
    fn compare_exchange(&self, word: u64, next: u64) -> Result<(), u64>;

    /// Replaces the word whatever it is, and returns what it was.
    fn swap(&self, next: u64) -> u64;
}

/// One word in memory.
///
/// ```
/// use tollgate::store::{WordCell, AtomicWord};
///
/// let cell = WordCell::new(1);
/// assert_eq!(cell.compare_exchange(2, 3), Err(1));
/// while cell.compare_exchange(1, 3).is_err() {} // it may fail without a reason
/// assert_eq!(cell.swap(0), 3);
/// ```
#[repr(transparent)]
pub struct WordCell {
    word: AtomicU64,
}

impl WordCell {
    const_unless_loom! {
        /// A cell that holds `word`.
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
        // ORDERING: Relaxed. The word publishes no other memory; a stale value is a moment ago,
        // and the exchange finds it out.
        // Model: cell::never_grants_more_than_the_burst
        self.word.load(Ordering::Relaxed)
    }

    #[inline]
    fn compare_exchange(&self, word: u64, next: u64) -> Result<(), u64> {
        // ORDERING: Relaxed both ways. The word publishes no other memory, and all that a step
        // knows is the word itself: the exchange proves that it was still there.
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
        // ORDERING: Relaxed. The word publishes no other memory; an exchange that was computed
        // from the replaced word fails. Model: cell::reset_is_not_lost
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
}

impl fmt::Debug for WordCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.load() {
            UNSTARTED => f.write_str("WordCell(unstarted)"),
            word => f.debug_tuple("WordCell").field(&word).finish(),
        }
    }
}

/// The retry loop: runs `op` on the word until its answer holds, that is, until the word that it
/// returned has replaced the very word that it was given. An operation that refuses, or leaves the
/// word as it is, writes nothing.
///
/// It is lock-free: an exchange fails only if another one succeeded (or, where the processor's
/// exchange is a weak one, without a reason), so whenever a thread goes round, another one is done.
/// It then waits for a bounded time: see [`Backoff`].
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
        let (next, output) = step?;
        if op.is_unchanged(word, next) {
            return Ok(output);
        }
        if cell.compare_exchange(word, next).is_ok() {
            return Ok(output);
        }
    }
    retry(algorithm, cell, word, now, op)
}

/// The first attempt alone: the answer if the operation is short, does not refuse, was not
/// disturbed, and leads to a word and an answer that the caller wants.
#[inline(always)]
pub(crate) fn try_fast<A, P: AtomicWord, O: Op<A>>(
    algorithm: &A,
    cell: &P,
    now: Tick,
    mut op: O,
    is_wanted: impl FnOnce(u64, &O::Output) -> bool,
) -> Option<O::Output> {
    let word = cell.load();
    if word == UNSTARTED {
        return None;
    }
    let (next, output) = op.run_fast(algorithm, Current::new(word, now))?.ok()?;
    if !is_wanted(next, &output) {
        return None;
    }
    if !op.is_unchanged(word, next) {
        cell.compare_exchange(word, next).ok()?;
    }
    Some(output)
}

/// The attempts after the first one, long operations, and the first verb on an unstarted cell. Out
/// of line, so that the attempt that nearly every decision takes has no loop round it, and in tail
/// position, so that it needs no register saved. `word` is the one that the caller read.
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
        let (next, output) = op.run(algorithm, Current::new(word, now))?;
        if op.is_unchanged(word, next) {
            return Ok(output);
        }
        if cell.compare_exchange(word, next).is_ok() {
            return Ok(output);
        }
        word = backoff.wait_if_changed(word, || cell.load());
    }
}

/// Gives an unstarted cell the algorithm's initial word, unless another thread has, and returns
/// the word.
#[cold]
#[inline(never)]
pub(crate) fn start<A: Algorithm, P: AtomicWord>(algorithm: &A, cell: &P, now: Tick) -> u64 {
    let first = algorithm.initial_word(now).min(UNSTARTED - 1);
    loop {
        match cell.compare_exchange(UNSTARTED, first) {
            Ok(()) => return first,
            // Without a reason: once more.
            Err(UNSTARTED) => {}
            Err(started) => return started,
        }
    }
}
