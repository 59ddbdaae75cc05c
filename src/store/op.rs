//! Operations: pure, repeatable changes of a limiter's state, which every store can run.

use core::convert::Infallible;
use core::time::Duration;

use crate::clock::Tick;
use crate::outcome::{Denied, Granted};

/// The state that an operation runs on: a word, and what its store knows about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Current {
    pub(crate) word: u64,
    pub(crate) now: Tick,
    /// Which version of the state this is, if there are several. A grant carries it, and is given
    /// back only to the same one.
    pub(crate) source: Option<u32>,
    /// Whether the key is banned, so that nothing can be given back.
    pub(crate) is_banned: bool,
}

impl Current {
    /// Creates the state of this word at this tick.
    #[inline(always)]
    #[must_use]
    pub const fn new(word: u64, now: Tick) -> Self {
        Self {
            word,
            now,
            source: None,
            is_banned: false,
        }
    }

    /// Sets a number that identifies the algorithm, for a store whose algorithm changes. A grant
    /// made under another number is not undone.
    #[inline(always)]
    #[must_use]
    pub const fn with_source(self, source: u32) -> Self {
        Self {
            source: Some(source),
            ..self
        }
    }

    /// Returns the word.
    #[inline(always)]
    #[must_use]
    pub const fn word(&self) -> u64 {
        self.word
    }

    /// Returns the tick.
    #[inline(always)]
    #[must_use]
    pub const fn now(&self) -> Tick {
        self.now
    }

    #[inline(always)]
    pub(super) fn stamped(&self, granted: Granted) -> Granted {
        match self.source {
            Some(source) => granted.with_source(source),
            None => granted,
        }
    }

    /// Returns whether this state made the grant and takes permits back.
    #[inline]
    pub(super) fn takes_back(&self, granted: &Granted) -> bool {
        self.source.is_none_or(|source| granted.source() == source) && !self.is_banned
    }
}

/// Why an operation was refused.
pub trait Refusal {
    /// Returns the refusal as of a tick that is earlier by `by`.
    #[must_use]
    fn earlier(self, by: Duration) -> Self;

    /// Returns the refusal for a key that has no permits because it is banned. The default returns
    /// the same refusal.
    #[must_use]
    fn by_ban(self) -> Self
    where
        Self: Sized,
    {
        self
    }
}

impl Refusal for Denied {
    fn earlier(self, by: Duration) -> Self {
        match self {
            Self::Later {
                requested,
                retry_after,
            } => Self::later(requested, retry_after.saturating_add(by)),
            Self::Banned {
                requested,
                retry_after,
            } => Self::banned(requested, retry_after.map(|wait| wait.saturating_add(by))),
            denied => denied,
        }
    }

    fn by_ban(self) -> Self {
        match self {
            Self::Later {
                requested,
                retry_after,
            } => Self::banned(requested, Some(retry_after)),
            Self::Stuck { requested } => Self::banned(requested, None),
            denied => denied,
        }
    }
}

impl Refusal for Infallible {
    fn earlier(self, _by: Duration) -> Self {
        self
    }
}

/// The answer of an operation, or its refusal.
pub type OpResult<A, O> = Result<<O as Op<A>>::Output, <O as Op<A>>::Refusal>;

/// The result of an operation on a word: the next word and the answer, or a refusal.
pub type Step<A, O> = Result<(u64, <O as Op<A>>::Output), <O as Op<A>>::Refusal>;

/// The outcome of one attempt to change a state, with the operation's answer.
#[must_use]
pub(crate) enum Attempt<T> {
    /// The next word was written.
    Written(T),
    /// The operation leaves the word as it is, so nothing was written.
    Unchanged(T),
    /// Another thread changed the state first, and nothing was written.
    Lost,
}

impl<T> Attempt<T> {
    /// Ends an attempt that computed `next` and an answer from `word`. If `next` must be written,
    /// `exchange` replaces the state that the attempt read, and fails if that has changed.
    #[inline(always)]
    pub(crate) fn end<A, O: Op<A>, E>(
        op: &O,
        word: u64,
        (next, answer): (u64, T),
        exchange: impl FnOnce(u64) -> Result<(), E>,
    ) -> Self {
        if op.is_unchanged(word, next) {
            return Self::Unchanged(answer);
        }
        match exchange(next) {
            Ok(()) => Self::Written(answer),
            Err(_) => Self::Lost,
        }
    }

    /// Returns the answer, unless the attempt was lost.
    #[inline(always)]
    pub(crate) fn answer(self) -> Option<T> {
        match self {
            Self::Written(answer) | Self::Unchanged(answer) => Some(answer),
            Self::Lost => None,
        }
    }
}

/// An operation on the state of a limiter with the algorithm `A`. It is pure: a store may run it
/// several times for one call.
///
/// This is a trait and not a closure, so that an operation is always inlined. The compiler then
/// drops the parts of the answer that the caller does not read.
pub trait Op<A>: Sized {
    /// The answer.
    type Output;
    /// Why the operation was refused.
    type Refusal: Refusal;

    /// Whether this operation ends a key's ban when it changes the state, as a grant does.
    const GRANTS: bool = false;

    /// Whether the operation takes permits. A key in a table becomes protected when permits are
    /// taken from it a second time; unprotected keys are evicted before protected ones.
    const TAKES: bool = false;

    /// Whether the operation bans a key. It then runs under the plan (one of the table's
    /// algorithms) that the key already has.
    const BANS: bool = false;

    /// Computes the next word and the answer.
    ///
    /// # Errors
    ///
    /// The refusal. In that case the word stays as it is.
    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self>;

    /// Does the same as [`run`](Self::run) in a few instructions, if the state allows that. Returns
    /// `None` if the store must call `run`, out of line.
    #[inline(always)]
    fn run_fast(&mut self, algorithm: &A, current: Current) -> Option<Step<A, Self>> {
        Some(self.run(algorithm, current))
    }

    /// Returns whether `next` need not be written.
    #[inline(always)]
    fn is_unchanged(&self, word: u64, next: u64) -> bool {
        word == next
    }

    /// Returns the answer to use if a store can't run the operation. `why` makes a denial that
    /// names the reason. Returns `None` if the operation has no such answer.
    #[inline]
    fn unavailable(&self, why: fn(u64) -> Denied, now: Tick) -> Option<OpResult<A, Self>> {
        let _ = (why, now);
        None
    }
}
