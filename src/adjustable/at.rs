use core::fmt;
use core::time::Duration;

use super::Adjustable;
use super::turn::{self, Acquire, Change, part_of};
use crate::algorithm::Algorithm;
use crate::algorithm::Debt;
use crate::algorithm::Forecast;
use crate::algorithm::Gauge;
use crate::algorithm::GiveBack;
use crate::algorithm::Level;
use crate::algorithm::Settings;
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};
use crate::primitive::mistake;

/// A view of an [`Adjustable`] limiter at one tick: [`Adjustable::at`] makes one. Its verbs are those of the
/// limiter.
pub struct AdjustableAt<'a, A, C> {
    pub(super) gate: &'a Adjustable<A, C>,
    pub(super) now: Tick,
}

impl<A: Algorithm + Settings, C> AdjustableAt<'_, A, C> {
    /// The tick of this view.
    #[inline]
    pub const fn now(&self) -> Tick {
        self.now
    }

    /// [`Adjustable::try_acquire`] at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permit was not there.
    #[inline]
    pub fn try_acquire(&self) -> Result<Granted, Denied> {
        self.try_acquire_n(1)
    }

    /// [`Adjustable::try_acquire_n`] at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permits were not all there.
    #[inline(always)]
    pub fn try_acquire_n(&self, n: u64) -> Result<Granted, Denied> {
        let now = self.now;
        turn::update::<A, _>(&self.gate.ring, Acquire { now, n })
    }

    /// [`Adjustable::take_up_to`] at this tick.
    #[inline]
    pub fn take_up_to(&self, n: u64) -> Granted {
        let now = self.now;
        self.gate.change(move |algorithm: &A, pair| {
            let (next, granted) = algorithm.take_up_to(pair.word, now, n);
            (next, granted.of_part(part_of(pair.version)))
        })
    }

    /// [`Adjustable::available`] at this tick.
    #[inline]
    pub fn available(&self) -> u64 {
        self.look(|algorithm, word, now| algorithm.available(word, now))
    }

    /// Whether the limiter can no longer be told from a fresh one at this tick.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.look(|algorithm, word, now| algorithm.is_idle(word, now))
    }

    /// [`Adjustable::reset`].
    #[inline]
    pub fn reset(&self) {
        self.gate.reset();
    }

    /// Asks the word and the parameters of one moment.
    #[inline(always)]
    fn look<T>(&self, ask: impl Fn(&A, u64, Tick) -> T) -> T {
        let now = self.now;
        self.gate.change(move |algorithm: &A, pair| {
            let answer = ask(algorithm, pair.word, now);
            (pair.word, answer)
        })
    }
}

impl<A: Forecast + Settings, C> AdjustableAt<'_, A, C> {
    /// [`Adjustable::time_until`] at this tick.
    #[inline]
    pub fn time_until(&self, n: u64) -> Option<Duration> {
        let due = self.look(move |algorithm, word, now| algorithm.due(word, now, n))?;
        Some(due.saturating_since(self.now))
    }
}

impl<A: Gauge + Settings, C> AdjustableAt<'_, A, C> {
    /// [`Adjustable::level`] at this tick.
    #[inline]
    pub fn level(&self) -> Level {
        self.look(|algorithm, word, now| algorithm.level(word, now))
    }
}

impl<A: GiveBack + Settings, C> AdjustableAt<'_, A, C> {
    /// [`Adjustable::undo`] at this tick.
    #[inline]
    pub fn undo(&self, granted: Granted) -> u64 {
        let now = self.now;
        self.gate.change(move |algorithm: &A, pair| {
            // The mark of another version says nothing about this word.
            if granted.part() != part_of(pair.version) && !mistake!(UndoesOldMarks) {
                return (pair.word, 0);
            }
            algorithm.undo(pair.word, now, &granted)
        })
    }

    /// [`Adjustable::refund`] at this tick.
    #[inline]
    pub fn refund(&self, n: u64) -> u64 {
        let now = self.now;
        self.gate
            .change(move |algorithm: &A, pair| algorithm.refund(pair.word, now, n))
    }
}

impl<A: Debt + Settings, C> AdjustableAt<'_, A, C> {
    /// [`Adjustable::charge`] at this tick.
    #[inline]
    pub fn charge(&self, n: u64) -> Charged {
        let now = self.now;
        self.gate
            .change(move |algorithm: &A, pair| algorithm.charge(pair.word, now, n))
    }
}

impl<A: Settings, C> Adjustable<A, C> {
    /// Runs a step that can't refuse.
    #[inline(always)]
    pub(super) fn change<T>(&self, step: impl FnMut(&A, super::ring::Pair) -> (u64, T)) -> T {
        let Ok(answer) = turn::update::<A, _>(&self.ring, Change(step));
        answer
    }
}

impl<A, C> Clone for AdjustableAt<'_, A, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, C> Copy for AdjustableAt<'_, A, C> {}

impl<A: fmt::Debug, C: fmt::Debug> fmt::Debug for AdjustableAt<'_, A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdjustableAt")
            .field("gate", &self.gate)
            .field("now", &self.now)
            .finish()
    }
}
