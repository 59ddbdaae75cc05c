//! Where a word lives, and the only loop that changes it.
//!
//! ```text
//!  word: u64 ──► step (pure, may be run again) ──► Ok((next word, answer)) | Err(denied)
//!      ▲                                                      │
//!      └─────────────── compare_exchange ◄────────────────────┘
//! ```

use core::fmt;

use crate::primitive::{AtomicU64, Ordering, const_unless_loom};

/// The word of a place that has not started: it was made where no clock could be read, and gets
/// its algorithm's initial word from the first verb.
pub const UNSTARTED: u64 = u64::MAX;

/// A place where a word lives.
///
/// [`Cell`] is the usual one. Whoever keeps words elsewhere (a mapped file, a table of their own)
/// implements this and has all the verbs of [`At`](crate::At).
pub trait Place {
    /// The word now.
    fn load(&self) -> u64;

    /// Puts `next` where `word` stands, in one atomic step, if `word` still stands there.
    ///
    /// # Errors
    ///
    /// The word that was found, and left there. It may be `word` itself: the loop then tries
    /// again.
    fn exchange(&self, word: u64, next: u64) -> Result<(), u64>;

    /// Replaces the word whatever it is, and returns what it was.
    fn replace(&self, next: u64) -> u64;
}

/// One word in memory.
///
/// ```
/// use tollgate::cell::{Cell, Place};
///
/// let cell = Cell::new(1);
/// assert_eq!(cell.exchange(2, 3), Err(1));
/// while cell.exchange(1, 3).is_err() {} // it may fail without a reason
/// assert_eq!(cell.replace(0), 3);
/// ```
#[repr(transparent)]
pub struct Cell {
    word: AtomicU64,
}

impl Cell {
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

impl Place for Cell {
    #[inline]
    fn load(&self) -> u64 {
        // ORDERING: Relaxed. The word publishes no other memory; a stale value is a moment ago,
        // and the exchange finds it out.
        // Model: cell::never_grants_more_than_the_burst
        self.word.load(Ordering::Relaxed)
    }

    #[inline]
    fn exchange(&self, word: u64, next: u64) -> Result<(), u64> {
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
    fn replace(&self, next: u64) -> u64 {
        // ORDERING: Relaxed. The word publishes no other memory; an exchange that was computed
        // from the replaced word fails. Model: cell::reset_is_not_lost
        self.word.swap(next, Ordering::Relaxed)
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.load() {
            UNSTARTED => f.write_str("Cell(unstarted)"),
            word => f.debug_tuple("Cell").field(&word).finish(),
        }
    }
}

/// What a step says of a word: the next word and the answer, or why not.
pub(crate) type Turn<S> = Result<(u64, <S as Step>::Answer), <S as Step>::Refusal>;

/// What is to be done with a word. A trait and not a closure, so that the step is inlined by
/// force and what the caller does not read of its answer is never computed.
pub(crate) trait Step {
    type Answer;
    type Refusal;

    /// Pure: it may be run again.
    fn run(&mut self, word: u64) -> Turn<Self>;

    /// The same, if that is short; else it is run out of line.
    #[inline(always)]
    fn run_short(&mut self, word: u64) -> Option<Turn<Self>> {
        Some(self.run(word))
    }

    /// Whether it wants nothing written.
    #[inline(always)]
    fn leaves(&self, word: u64, next: u64) -> bool {
        word == next
    }
}

/// The loop: runs `step` on the word until what it answered holds, that is, until the word it
/// returned has replaced the very word it was given. A step that refuses, or returns the word it
/// was given, writes nothing.
///
/// It is lock-free: an exchange fails only if another one succeeded (or, where the processor's
/// exchange is a weak one, without a reason), so whenever a thread goes round somebody is done.
///
/// `starter` says what the first word of an unstarted place is.
#[inline(always)]
pub(crate) fn update<P: Place, S: Step>(
    place: &P,
    starter: impl Starter,
    mut step: S,
) -> Result<S::Answer, S::Refusal> {
    let mut word = place.load();
    let outcome = match word {
        UNSTARTED => None,
        _ => step.run_short(word),
    };
    if let Some(outcome) = outcome {
        let (next, answer) = outcome?;
        if step.leaves(word, next) {
            return Ok(answer);
        }
        match place.exchange(word, next) {
            Ok(()) => return Ok(answer),
            Err(seen) => word = seen,
        }
    }
    go_round(place, word, starter, step)
}

/// The first turn alone: the answer if the step is short, does not refuse, was not disturbed and
/// answers as the caller wants.
#[cfg(feature = "std")]
#[inline(always)]
pub(crate) fn try_once<P: Place, S: Step>(
    place: &P,
    mut step: S,
    is_wanted: impl FnOnce(&S::Answer) -> bool,
) -> Option<S::Answer> {
    let word = place.load();
    if word == UNSTARTED {
        return None;
    }
    let (next, answer) = step.run_short(word)?.ok()?;
    if !is_wanted(&answer) {
        return None;
    }
    if !step.leaves(word, next) {
        place.exchange(word, next).ok()?;
    }
    Some(answer)
}

/// The turns after the first one, long steps, and the first verb on an unstarted place. Out of
/// line, so that the turn that nearly every decision takes has no loop round it, and in tail
/// position, so that it needs no register saved.
#[cold]
#[inline(never)]
fn go_round<P: Place, S: Step>(
    place: &P,
    mut word: u64,
    starter: impl Starter,
    mut step: S,
) -> Result<S::Answer, S::Refusal> {
    loop {
        if word == UNSTARTED {
            word = start(place, starter);
        }
        let (next, answer) = step.run(word)?;
        if step.leaves(word, next) {
            return Ok(answer);
        }
        match place.exchange(word, next) {
            Ok(()) => return Ok(answer),
            Err(seen) => word = seen,
        }
    }
}

/// Knows the first word of an unstarted place.
pub(crate) trait Starter: Copy {
    fn first_word(self) -> u64;
}

/// Starts a place, unless somebody has, and returns its word.
#[cold]
#[inline(never)]
pub(crate) fn start<P: Place>(place: &P, starter: impl Starter) -> u64 {
    let first = starter.first_word().min(UNSTARTED - 1);
    loop {
        match place.exchange(UNSTARTED, first) {
            Ok(()) => return first,
            // Without a reason: once more.
            Err(UNSTARTED) => {}
            Err(started) => return started,
        }
    }
}
