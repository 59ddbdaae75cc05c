//! Operations that take permits at a later tick, for limits that are reserved together.
//!
//! The word gets the effect of the same step at the tick at which all limits are due:
//!
//! ```text
//!    before             base(due)            after
//! ──────┼───── skipped ─────┼─── n permits ────┤
//! ```
//!
//! The permits that would be refilled by then, and those of an idle bucket, are skipped: no caller
//! gets them before the due tick. The skipped part does not show in the word, so a limit can't tell
//! whether such a reservation waits. Therefore only the last grant is given back.
//!
//! This holds for a [`TokenBucket`](crate::TokenBucket) and a [`Gcra`](crate::Gcra), whose word is
//! a tick: a step raises it for all callers, also for those with an older tick.

use core::convert::Infallible;

use super::op::{Current, Op, OpResult, Refusal, Step};
use crate::algorithm::{Algorithm, GiveBack, can_leave_the_line};
use crate::clock::Tick;
use crate::outcome::{Denied, Granted};

/// Takes `n` permits at the later tick `due`, or none. The grant is that of a step at this tick,
/// except that it keeps both [words](Granted::words).
#[derive(Debug, Clone, Copy)]
pub(super) struct TakeAsOf {
    pub(super) n: u64,
    pub(super) due: Tick,
}

impl<A: Algorithm> Op<A> for TakeAsOf {
    type Output = Granted;
    type Refusal = Denied;
    const TAKES: bool = true;

    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self> {
        let at = match current.is_banned {
            // No reservation waits for the end of a ban.
            true => current.now,
            false => self.due.max(current.now),
        };
        match algorithm.step(current.word, at, self.n) {
            Ok((next, granted)) => {
                let granted = granted.with_words(current.word, next);
                Ok((next, current.stamped(granted)))
            }
            Err(denied) => Err(denied.earlier(at.saturating_since(current.now))),
        }
    }

    /// Always runs out of line, because only that path knows whether a key is banned.
    fn run_fast(&mut self, _algorithm: &A, _current: Current) -> Option<Step<A, Self>> {
        None
    }

    fn is_unchanged(&self, _word: u64, _next: u64) -> bool {
        self.n == 0
    }

    fn unavailable(&self, why: fn(u64) -> Denied, _now: Tick) -> Option<OpResult<A, Self>> {
        Some(Err(why(self.n)))
    }
}

/// Gives a grant of [`TakeAsOf`] back, together with what it skipped, if it is the last one.
#[derive(Debug)]
pub(super) struct CancelAsOf {
    pub(super) granted: Granted,
}

impl<A: GiveBack> Op<A> for CancelAsOf {
    type Output = u64;
    type Refusal = Infallible;

    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self> {
        let Current { word, now, .. } = current;
        let (before, after) = self.granted.words();
        if !current.takes_back(&self.granted) || !can_leave_the_line(word == after) {
            return Ok((word, 0));
        }
        let granted = self.granted.again().with_mark_after();
        let (_, back) = algorithm.undo(word, now, &granted);
        // More permits than there are: this returns the word of a limiter that is full now. The
        // word is not lowered further, so that it keeps the tick.
        let (full, _) = algorithm.undo(word, now, &granted.with_n(u64::MAX));
        Ok((before.max(full), back))
    }
}
