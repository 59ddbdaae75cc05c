//! Operations: what a verb does to a limiter's state. Each is written once, and every store runs
//! it.

use core::convert::Infallible;
use core::time::Duration;

use crate::algorithm::{Algorithm, Debt, GiveBack, Reserve};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};
use crate::sync::inject_fault;

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
    fn made(&self, granted: Granted) -> Granted {
        match self.source {
            Some(source) => granted.with_source(source),
            None => granted,
        }
    }

    /// Whether this state made the grant, and takes permits back.
    #[inline]
    fn takes_back(&self, granted: &Granted) -> bool {
        self.source.is_none_or(|source| granted.source() == source) && !self.is_banned
    }
}

/// Why an operation was not done.
pub trait Refusal {
    /// The same, as of a tick that is earlier by this.
    #[must_use]
    fn earlier(self, by: Duration) -> Self;
}

impl Refusal for Denied {
    fn earlier(self, by: Duration) -> Self {
        match self {
            Self::Later {
                requested,
                retry_after,
            } => Self::later(requested, retry_after.saturating_add(by)),
            denied => denied,
        }
    }
}

impl Refusal for Infallible {
    fn earlier(self, _by: Duration) -> Self {
        self
    }
}

/// What an operation makes of a word: the next word and the answer, or a refusal.
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
    fn unavailable(
        &self,
        why: fn(u64) -> Denied,
        now: Tick,
    ) -> Option<Result<Self::Output, Self::Refusal>> {
        let _ = (why, now);
        None
    }
}

/// Takes `n` permits, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acquire {
    pub(crate) n: u64,
}

impl<A: Algorithm> Op<A> for Acquire {
    type Output = Granted;
    type Refusal = Denied;
    const GRANTS: bool = true;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, current: Current) -> Result<(u64, Granted), Denied> {
        let (next, granted) = algorithm.step(current.word, current.now, self.n)?;
        Ok((next, current.made(granted)))
    }

    #[inline(always)]
    fn run_fast(
        &mut self,
        algorithm: &A,
        current: Current,
    ) -> Option<Result<(u64, Granted), Denied>> {
        let step = algorithm.short_step(current.word, current.now, self.n)?;
        Some(step.map(|(next, granted)| (next, current.made(granted))))
    }

    /// Known before it runs, and for one permit when it is compiled.
    #[inline(always)]
    fn is_unchanged(&self, _word: u64, _next: u64) -> bool {
        self.n == 0
    }

    #[inline]
    fn unavailable(&self, why: fn(u64) -> Denied, _now: Tick) -> Option<Result<Granted, Denied>> {
        Some(Err(why(self.n)))
    }
}

/// Takes `n` permits that will be there at `latest` or sooner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReserveUntil {
    pub(crate) n: u64,
    pub(crate) latest: Tick,
    /// The caller's tick. The store's may be later.
    pub(crate) now: Tick,
}

impl ReserveUntil {
    /// The denial of a request that could be granted if the store's tick were the caller's.
    #[cold]
    fn too_late_now<A: Reserve>(&self, algorithm: &A, current: Current) -> Denied {
        let Current { word, now, .. } = current;
        let behind = now.saturating_since(self.now);
        let latest = self.latest.saturating_add(behind);
        match algorithm.reserve(word, now, self.n, latest) {
            Ok((_, granted)) => Denied::later(self.n, granted.due().saturating_since(self.latest)),
            Err(Denied::Later { retry_after, .. }) => {
                Denied::later(self.n, retry_after.saturating_add(behind))
            }
            Err(denied) => denied,
        }
    }
}

impl<A: Reserve> Op<A> for ReserveUntil {
    type Output = Granted;
    type Refusal = Denied;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, current: Current) -> Result<(u64, Granted), Denied> {
        // No reservation waits for the end of a ban: each one that is given up would move it.
        let latest = match current.is_banned {
            true => Tick::MAX,
            false => self.latest,
        };
        match algorithm.reserve(current.word, current.now, self.n, latest) {
            Ok((_, granted)) if current.is_banned && granted.due() > current.now => {
                let wait = granted.due().saturating_since(current.now);
                Err(Denied::later(self.n, wait))
            }
            Ok((next, granted)) => Ok((next, current.made(granted))),
            Err(Denied::Never { .. }) if current.now > self.now => {
                Err(self.too_late_now(algorithm, current))
            }
            Err(denied) => Err(denied),
        }
    }

    #[inline(always)]
    fn run_fast(
        &mut self,
        algorithm: &A,
        current: Current,
    ) -> Option<Result<(u64, Granted), Denied>> {
        let (next, granted) = algorithm.reserve_now(current.word, current.now, self.n)?;
        Some(Ok((next, current.made(granted))))
    }

    #[inline(always)]
    fn is_unchanged(&self, _word: u64, _next: u64) -> bool {
        self.n == 0
    }

    #[inline]
    fn unavailable(&self, why: fn(u64) -> Denied, _now: Tick) -> Option<Result<Granted, Denied>> {
        Some(Err(why(self.n)))
    }
}

/// Takes as many of `n` permits as there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TakeUpTo {
    pub(crate) n: u64,
}

impl<A: Algorithm> Op<A> for TakeUpTo {
    type Output = Granted;
    type Refusal = Infallible;
    const GRANTS: bool = true;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, current: Current) -> Result<(u64, Granted), Infallible> {
        let (next, granted) = algorithm.take_up_to(current.word, current.now, self.n);
        Ok((next, current.made(granted)))
    }

    #[inline]
    fn unavailable(
        &self,
        _why: fn(u64) -> Denied,
        now: Tick,
    ) -> Option<Result<Granted, Infallible>> {
        Some(Ok(Granted::new(0, now)))
    }
}

/// Takes `n` permits unconditionally.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Charge {
    pub(crate) n: u64,
}

impl<A: Debt> Op<A> for Charge {
    type Output = Charged;
    type Refusal = Infallible;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, current: Current) -> Result<(u64, Charged), Infallible> {
        Ok(algorithm.charge(current.word, current.now, self.n))
    }

    #[inline]
    fn unavailable(
        &self,
        _why: fn(u64) -> Denied,
        now: Tick,
    ) -> Option<Result<Charged, Infallible>> {
        Some(Ok(Charged::new(0, now)))
    }
}

/// Gives a grant back, as far as possible.
#[derive(Debug)]
pub(crate) struct Undo {
    pub(crate) granted: Granted,
}

impl<A: GiveBack> Op<A> for Undo {
    type Output = u64;
    type Refusal = Infallible;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, current: Current) -> Result<(u64, u64), Infallible> {
        // The mark of a grant that another state made says nothing about this one.
        if !current.takes_back(&self.granted) && !inject_fault!(UndoesOldMarks) {
            return Ok((current.word, 0));
        }
        Ok(algorithm.undo(current.word, current.now, &self.granted))
    }
}

/// Gives `n` permits back, as far as possible.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refund {
    pub(crate) n: u64,
}

impl<A: GiveBack> Op<A> for Refund {
    type Output = u64;
    type Refusal = Infallible;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, current: Current) -> Result<(u64, u64), Infallible> {
        Ok(match current.is_banned {
            true => (current.word, 0),
            false => algorithm.refund(current.word, current.now, self.n),
        })
    }
}

/// Gives back as much of the last `n` permits of a reservation as possible.
#[derive(Debug)]
pub(crate) struct Cancel {
    pub(crate) granted: Granted,
    pub(crate) n: u64,
}

impl<A: Reserve> Op<A> for Cancel {
    type Output = (Granted, u64);
    type Refusal = Infallible;

    #[inline(always)]
    fn run(
        &mut self,
        algorithm: &A,
        current: Current,
    ) -> Result<(u64, (Granted, u64)), Infallible> {
        if !current.takes_back(&self.granted) {
            let kept = self.granted.n().saturating_sub(self.n);
            return Ok((current.word, (self.granted.again().with_n(kept), 0)));
        }
        let Current { word, now, .. } = current;
        let (next, kept, back) = algorithm.cancel(word, now, &self.granted, self.n);
        Ok((next, (kept, back)))
    }
}

/// Makes the state fresh, and ends a ban.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reset;

impl<A> Op<A> for Reset {
    type Output = ();
    type Refusal = Infallible;
    const GRANTS: bool = true;

    #[inline(always)]
    fn run(&mut self, _algorithm: &A, _current: Current) -> Result<(u64, ()), Infallible> {
        Ok((0, ()))
    }
}

/// Reads the state and writes nothing.
pub(crate) struct Look<F>(pub(crate) F);

impl<A, T, F: FnMut(&A, u64, Tick) -> T> Op<A> for Look<F> {
    type Output = T;
    type Refusal = Infallible;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, current: Current) -> Result<(u64, T), Infallible> {
        Ok((current.word, (self.0)(algorithm, current.word, current.now)))
    }

    #[inline(always)]
    fn is_unchanged(&self, _word: u64, _next: u64) -> bool {
        true
    }
}

/// Changes the word by a function that can't refuse.
#[cfg(feature = "std")]
pub(crate) struct Change<F>(pub(crate) F);

#[cfg(feature = "std")]
impl<A, T, F: FnMut(u64) -> (u64, T)> Op<A> for Change<F> {
    type Output = T;
    type Refusal = Infallible;

    #[inline(always)]
    fn run(&mut self, _algorithm: &A, current: Current) -> Result<(u64, T), Infallible> {
        Ok((self.0)(current.word))
    }
}
