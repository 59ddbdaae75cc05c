//! Operations: pure, repeatable changes of a limiter's state, which every store runs.

use core::convert::Infallible;
use core::time::Duration;

use crate::clock::Tick;
use crate::outcome::{Denied, Granted};

/// The state that an operation runs on: a word, and what its store knows about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Current {
    pub(crate) word: u64,
    pub(crate) now: Tick,
    /// Identifies, in a grant, the version of the state that made it, where there are several.
    pub(crate) source: Option<u32>,
    /// The key is banned: nothing can be given back.
    pub(crate) is_banned: bool,
}

impl Current {
    /// This word at this tick.
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

    /// The same in a store whose algorithm changes: this number identifies the algorithm, so that a
    /// grant by another one is not undone.
    #[inline(always)]
    #[must_use]
    pub const fn with_source(self, source: u32) -> Self {
        Self {
            source: Some(source),
            ..self
        }
    }

    /// The word.
    #[inline(always)]
    #[must_use]
    pub const fn word(&self) -> u64 {
        self.word
    }

    /// The tick.
    #[inline(always)]
    #[must_use]
    pub const fn now(&self) -> Tick {
        self.now
    }

    #[inline(always)]
    pub(super) fn made(&self, granted: Granted) -> Granted {
        match self.source {
            Some(source) => granted.with_source(source),
            None => granted,
        }
    }

    /// Whether this state made the grant, and takes permits back.
    #[inline]
    pub(super) fn takes_back(&self, granted: &Granted) -> bool {
        self.source.is_none_or(|source| granted.source() == source) && !self.is_banned
    }
}

/// Why an operation was not done.
pub trait Refusal {
    /// The same, as of a tick that is earlier by this.
    #[must_use]
    fn earlier(self, by: Duration) -> Self;

    /// The same where the key is banned, and has no permits because of that. Provided: the same.
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

/// An operation on the state of a limiter with the algorithm `A`. It is pure: a store may run it
/// several times for one call.
///
/// A trait and not a closure, so that it is always inlined, and what the caller does not read of
/// the answer is never computed.
pub trait Op<A>: Sized {
    /// The answer.
    type Output;
    /// Why it was not done.
    type Refusal: Refusal;

    /// Whether a change that it makes is a grant, which ends a ban.
    const GRANTS: bool = false;

    /// Whether it takes permits. A key that is in a table, and has some taken again, is protected
    /// from then on.
    const TAKES: bool = false;

    /// Whether it bans a key. It then runs by the plan that the key already has.
    const BANS: bool = false;

    /// Computes the next word and the answer.
    ///
    /// # Errors
    ///
    /// The refusal: the word stays as it is.
    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self>;

    /// The same in a few instructions, if the state allows it; `None` to [`run`](Self::run) it out
    /// of line.
    #[inline(always)]
    fn run_fast(&mut self, algorithm: &A, current: Current) -> Option<Step<A, Self>> {
        Some(self.run(algorithm, current))
    }

    /// Whether there is nothing to write.
    #[inline(always)]
    fn is_unchanged(&self, word: u64, next: u64) -> bool {
        word == next
    }

    /// The answer of a store that can't run it, for this reason; `None` if it has no such answer.
    #[inline]
    fn unavailable(&self, why: fn(u64) -> Denied, now: Tick) -> Option<OpResult<A, Self>> {
        let _ = (why, now);
        None
    }
}
