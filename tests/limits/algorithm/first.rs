//! A period that begins with the first permit taken: the fixed window that the first hit opens, and
//! the greedy intervals. A period is divided into parts and begins at one. Counting in parts is
//! exact here: a part is `period / parts` nanoseconds, whole or not.

use crate::algorithm::grid;
use crate::support::reference::{Fraction, Reference, Span};

#[derive(Debug, Clone)]
pub(crate) struct FirstHit {
    limit: u64,
    most: u64,
    period: u128,
    /// The parts in a period.
    parts: u128,
    horizon: u64,
    /// The permits that come back at each end. `None` for all.
    back: Option<u64>,
    /// The end of the period of the last permit taken, in parts since tick 0, and the permits taken
    /// in it.
    end: u128,
    taken: u64,
    /// The number of times that a first permit began a period.
    begun: u64,
    /// The number of returns.
    mended: u64,
}

/// The period of a grant, and the permits taken including it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    end: u128,
    taken: u64,
    begun: u64,
    mended: u64,
}

impl FirstHit {
    pub(crate) fn new(limit: u64, period: u64, back: Option<u64>) -> Self {
        let (bits, shift) = grid::parts(period, limit).expect("it fits");
        let (period, parts) = (u128::from(period), 1_u128 << shift);
        // A period that begins there ends before the last two numbers.
        let last_begin = (1_u128 << (64 - bits)) - 3 - parts;
        let horizon = (last_begin * period).div_ceil(parts) - 1;
        Self {
            limit,
            most: (1 << bits) - 1,
            period,
            parts,
            horizon: u64::try_from(horizon).unwrap_or(u64::MAX).min(u64::MAX - 1),
            back,
            end: 0,
            taken: 0,
            begun: 0,
            mended: 0,
        }
    }

    pub(crate) fn largest(period: u64) -> u64 {
        grid::largest(|limit| grid::parts(period, limit).is_some())
    }

    pub(crate) fn largest_debt(&self) -> u64 {
        self.most - self.limit
    }

    /// Returns the length of a part in whole nanoseconds, rounded up.
    pub(crate) fn quantum(&self) -> u64 {
        self.tick(1)
    }

    /// Returns the first tick of a part.
    fn tick(&self, part: u128) -> u64 {
        u64::try_from((part * self.period).div_ceil(self.parts)).unwrap_or(u64::MAX)
    }

    /// Returns the part at which a period begins if its first permit is taken now.
    fn begin(&self, time: u128) -> u128 {
        (time * self.parts).div_ceil(self.period)
    }

    /// Returns the number of ends that have passed.
    fn ends(&self, time: u128) -> u128 {
        match (time * self.parts).checked_sub(self.end * self.period) {
            Some(since) => 1 + since / (self.parts * self.period),
            None => 0,
        }
    }

    fn left(&self, taken: u64, ends: u128) -> u64 {
        match self.back {
            _ if ends == 0 => taken,
            None => 0,
            Some(back) => {
                let back = ends.saturating_mul(back.into());
                u64::try_from(u128::from(taken).saturating_sub(back)).expect("less than before")
            }
        }
    }

    /// Returns the end of the period in which a permit taken now is counted, and the permits
    /// already counted in it.
    fn current(&self, time: u128) -> (u128, u64) {
        let ends = self.ends(time);
        match self.left(self.taken, ends) {
            0 => (self.end.max(self.begin(time) + self.parts), 0),
            taken => (self.end + ends * self.parts, taken),
        }
    }

    /// Returns the tick at which a caller counts: now, unless the period of the last permit began
    /// later.
    fn counted_at(&self, time: u128) -> u128 {
        let begin = self.end.saturating_sub(self.parts);
        // The caller that began the period came after the previous part's start: at the start
        // itself if that is a tick and the previous period may have ended there, or at any time in
        // that part. With a limited number of permits at each end, the period may also have begun
        // by itself when the previous one ended.
        let is_tick = (begin * self.period).is_multiple_of(self.parts);
        let is_later = self.begin(time) < begin;
        if is_tick || is_later || self.back.is_some() {
            time.max(self.tick(begin).into())
        } else {
            time
        }
    }
}

impl Reference for FirstHit {
    type Mark = Mark;

    fn limit(&self) -> u64 {
        self.limit
    }

    fn period(&self) -> u64 {
        self.period as u64
    }

    fn horizon(&self) -> Option<u64> {
        Some(self.horizon)
    }

    fn weight(&self, time: u128) -> Fraction {
        Fraction::whole(self.left(self.taken, self.ends(time)))
    }

    fn counted_at(&self, now: u64) -> u64 {
        u64::try_from(FirstHit::counted_at(self, now.into())).expect("a tick")
    }

    fn take(&mut self, now: u64, n: u64) {
        if n > 0 {
            let (end, taken) = self.current(self.clock(now));
            if taken == 0 {
                self.begun += 1;
            }
            (self.end, self.taken) = (end, taken + n);
        }
    }

    fn room(&self, now: u64) -> Span {
        Span::only(self.most - self.current(self.clock(now)).1)
    }

    fn mark(&self, _now: u64) -> Mark {
        Mark {
            end: self.end,
            taken: self.taken,
            begun: self.begun,
            mended: self.mended,
        }
    }

    /// At each end the oldest permits come back. Of the permits taken up to the grant, its own are
    /// the last.
    fn undo(&mut self, now: u64, n: u64, mark: Mark) -> Option<Span> {
        let (end, _) = self.current(self.clock(now));
        let since = end.checked_sub(mark.end);
        let ends = since.unwrap_or(0) / self.parts;
        let left = self.left(mark.taken, ends);
        if mark.begun != self.begun {
            // All of it came back before a new period began. After a return the new period may have
            // begun a whole number of periods later, and the limiter then treats it as the same
            // period.
            let is_same = since.is_some_and(|since| since.is_multiple_of(self.parts));
            let is_told = !is_same || left == 0 || mark.mended == self.mended;
            return is_told.then_some(Span::only(0));
        }
        Some(self.refund(now, n.min(left)))
    }

    fn refund(&mut self, now: u64, n: u64) -> Span {
        let (end, taken) = self.current(self.clock(now));
        let back = n.min(taken);
        if back > 0 {
            (self.end, self.taken) = (end, taken - back);
            self.mended += 1;
        }
        Span::only(back)
    }

    fn is_idle(&self, now: u64) -> [bool; 2] {
        let time = self.clock(now);
        [self.current(time).1 == 0 && FirstHit::counted_at(self, time) == time; 2]
    }

    fn reset(&mut self) {
        (self.end, self.taken) = (0, 0);
        self.begun += 1;
    }

    fn edge(&self, now: u64) -> u64 {
        self.tick(self.current(self.clock(now)).0)
    }
}
