//! The operations: what each verb does to a limiter's state, written once.

use core::convert::Infallible;

use super::op::{Current, Op, OpResult, Step};
use crate::algorithm::{Algorithm, Debt, GiveBack, Reserve};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};
use crate::sync::inject_fault;

/// Takes `n` permits, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acquire {
    pub(crate) n: u64,
}

impl<A: Algorithm> Op<A> for Acquire {
    type Output = Granted;
    type Refusal = Denied;
    const GRANTS: bool = true;
    const TAKES: bool = true;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self> {
        let (next, granted) = algorithm.step(current.word, current.now, self.n)?;
        Ok((next, current.stamped(granted)))
    }

    #[inline(always)]
    fn run_fast(&mut self, algorithm: &A, current: Current) -> Option<Step<A, Self>> {
        let step = algorithm.step_fast(current.word, current.now, self.n)?;
        Some(step.map(|(next, granted)| (next, current.stamped(granted))))
    }

    /// Returns whether `n` is 0. This is known before the step runs, and for one permit at compile
    /// time.
    #[inline(always)]
    fn is_unchanged(&self, _word: u64, _next: u64) -> bool {
        self.n == 0
    }

    #[inline]
    fn unavailable(&self, why: fn(u64) -> Denied, _now: Tick) -> Option<OpResult<A, Self>> {
        Some(Err(why(self.n)))
    }
}

/// Decides as [`Acquire`] does, and takes nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    pub(crate) n: u64,
}

impl<A: Algorithm> Op<A> for Check {
    type Output = ();
    type Refusal = Denied;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self> {
        let _ = algorithm.step(current.word, current.now, self.n)?;
        Ok((current.word, ()))
    }

    #[inline(always)]
    fn run_fast(&mut self, algorithm: &A, current: Current) -> Option<Step<A, Self>> {
        let step = algorithm.step_fast(current.word, current.now, self.n)?;
        Some(step.map(|_| (current.word, ())))
    }

    #[inline(always)]
    fn is_unchanged(&self, _word: u64, _next: u64) -> bool {
        true
    }

    #[inline]
    fn unavailable(&self, why: fn(u64) -> Denied, _now: Tick) -> Option<OpResult<A, Self>> {
        Some(Err(why(self.n)))
    }
}

/// Takes `n` permits that will be available at `latest` or sooner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReserveUntil {
    pub(crate) n: u64,
    pub(crate) latest: Tick,
    /// The caller's tick. The store's tick may be later.
    pub(crate) now: Tick,
}

impl ReserveUntil {
    /// Returns the denial as of the caller's tick, which is older than the store's. From the
    /// store's tick, `latest` is too soon for this request ever to be granted. From the caller's
    /// tick, it may not be.
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
    const TAKES: bool = true;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self> {
        // No reservation waits for the end of a ban, because cancelling it would move that end.
        let latest = match current.is_banned {
            true => Tick::MAX,
            false => self.latest,
        };
        match algorithm.reserve(current.word, current.now, self.n, latest) {
            Ok((_, granted)) if current.is_banned && granted.due() > current.now => {
                let wait = granted.due().saturating_since(current.now);
                Err(Denied::later(self.n, wait))
            }
            Ok((next, granted)) => Ok((next, current.stamped(granted))),
            Err(Denied::Never { .. }) if current.now > self.now => {
                Err(self.too_late_now(algorithm, current))
            }
            Err(denied) => Err(denied),
        }
    }

    #[inline(always)]
    fn run_fast(&mut self, algorithm: &A, current: Current) -> Option<Step<A, Self>> {
        let (next, granted) = algorithm.reserve_fast(current.word, current.now, self.n)?;
        Some(Ok((next, current.stamped(granted))))
    }

    #[inline(always)]
    fn is_unchanged(&self, _word: u64, _next: u64) -> bool {
        self.n == 0
    }

    #[inline]
    fn unavailable(&self, why: fn(u64) -> Denied, _now: Tick) -> Option<OpResult<A, Self>> {
        Some(Err(why(self.n)))
    }
}

/// Takes up to `n` permits: as many as are available.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TakeUpTo {
    pub(crate) n: u64,
}

impl<A: Algorithm> Op<A> for TakeUpTo {
    type Output = Granted;
    type Refusal = Infallible;
    const GRANTS: bool = true;
    const TAKES: bool = true;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self> {
        let (next, granted) = algorithm.take_up_to(current.word, current.now, self.n);
        Ok((next, current.stamped(granted)))
    }

    #[inline]
    fn unavailable(&self, _why: fn(u64) -> Denied, now: Tick) -> Option<OpResult<A, Self>> {
        Some(Ok(Granted::new(0, now)))
    }
}

/// Takes up to `n` permits, but at least one, or refuses. `n` is not 0.
#[cfg(feature = "std")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct TakeSome {
    pub(crate) n: u64,
}

#[cfg(feature = "std")]
impl<A: Algorithm> Op<A> for TakeSome {
    type Output = Granted;
    type Refusal = Denied;
    const GRANTS: bool = true;
    const TAKES: bool = true;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self> {
        algorithm.step(current.word, current.now, 1)?;
        let (next, granted) = algorithm.take_up_to(current.word, current.now, self.n);
        Ok((next, current.stamped(granted)))
    }

    /// Tries to take all `n`, which usually succeeds.
    #[inline(always)]
    fn run_fast(&mut self, algorithm: &A, current: Current) -> Option<Step<A, Self>> {
        let all = algorithm.step_fast(current.word, current.now, self.n)?;
        let (next, granted) = all.ok()?;
        Some(Ok((next, current.stamped(granted))))
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
    const TAKES: bool = true;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self> {
        Ok(algorithm.charge(current.word, current.now, self.n))
    }

    #[inline]
    fn unavailable(&self, _why: fn(u64) -> Denied, now: Tick) -> Option<OpResult<A, Self>> {
        Some(Ok(Charged::new(0, now)))
    }
}

/// Gives a grant back, as far as possible.
#[derive(Debug)]
pub(crate) struct Undo {
    pub(crate) granted: Granted,
    /// Whether the grant was never used: see [`GiveBack::roll_back`].
    pub(crate) is_unused: bool,
}

impl<A: GiveBack> Op<A> for Undo {
    type Output = u64;
    type Refusal = Infallible;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self> {
        // If another version of the state made the grant, its mark, the word after the grant, means
        // nothing here.
        let takes_back = current.takes_back(&self.granted) || inject_fault!(UndoesOldMarks); // FAULT
        if !takes_back {
            return Ok((current.word, 0));
        }
        let Current { word, now, .. } = current;
        Ok(match self.is_unused {
            true => algorithm.roll_back(word, now, &self.granted),
            false => algorithm.undo(word, now, &self.granted),
        })
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
    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self> {
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
    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self> {
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
    fn run(&mut self, _algorithm: &A, _current: Current) -> Step<A, Self> {
        Ok((0, ()))
    }
}

/// Reads the state and writes nothing.
pub(crate) struct Look<F>(pub(crate) F);

impl<A, T, F: FnMut(&A, u64, Tick) -> T> Op<A> for Look<F> {
    type Output = T;
    type Refusal = Infallible;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self> {
        Ok((current.word, (self.0)(algorithm, current.word, current.now)))
    }

    #[inline(always)]
    fn is_unchanged(&self, _word: u64, _next: u64) -> bool {
        true
    }
}

/// Changes the word with a function that can't refuse.
#[cfg(feature = "std")]
pub(crate) struct Change<F>(pub(crate) F);

#[cfg(feature = "std")]
impl<A, T, F: FnMut(u64) -> (u64, T)> Op<A> for Change<F> {
    type Output = T;
    type Refusal = Infallible;

    #[inline(always)]
    fn run(&mut self, _algorithm: &A, current: Current) -> Step<A, Self> {
        Ok((self.0)(current.word))
    }
}
