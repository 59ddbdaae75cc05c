//! What such a period does with a word.

use core::num::NonZeroU64;
use core::time::Duration;

use super::super::{Algorithm, Debt, Forecast, Gauge, GiveBack, Level, Rebase};
use super::FirstHit;
use crate::algorithm::carry::CarriedCounts;
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};

/// What a word says at a tick.
#[derive(Clone, Copy)]
struct Unpacked {
    /// The end of the period that counts, in parts.
    end: u64,
    /// The permits taken in it.
    taken: u64,
}

impl FirstHit {
    /// How many parts the clock has made, and the next whole part.
    #[inline(always)]
    fn made(&self, now: Tick) -> (u64, u64) {
        let (made, rest) = self
            .period
            .divide(now.as_nanos().min(self.horizon), self.shift);
        (made, made + u64::from(rest > 0))
    }

    /// The word as it stands now: the ends that have passed are taken into account, and a period
    /// begins now if nothing is taken.
    #[inline(always)]
    fn settled(&self, word: u64, now: Tick) -> u64 {
        if self.runs(word, now) {
            word
        } else {
            self.turned(word, now)
        }
    }

    /// Whether its period is not over and something is taken.
    #[inline(always)]
    fn runs(&self, word: u64, now: Tick) -> bool {
        // The first tick of the end, rounded up. It wraps only in a word that is not ours, and is
        // then too early, not too late.
        let (end, (whole, part)) = (word >> self.bits, self.quantum);
        let parts = u128::from(end) * u128::from(part);
        let tick = end
            .wrapping_mul(whole)
            .wrapping_add((parts >> 64) as u64)
            .wrapping_add(u64::from(parts as u64 > 0));
        now.as_nanos() < tick && word & self.most > 0
    }

    /// A word whose period is over, or in which nothing is taken.
    #[cold]
    #[inline(never)]
    fn turned(&self, word: u64, now: Tick) -> u64 {
        let (made, start) = self.made(now);
        let (mut end, mut taken) = (word >> self.bits, word & self.most);
        if made >= end {
            let ends = 1 + ((made - end) >> self.shift);
            taken = taken.saturating_sub(self.back.get().saturating_mul(ends));
            end += ends << self.shift;
        }
        if taken == 0 {
            end = end.max(start + self.parts());
        }
        self.word(end, taken)
    }

    #[inline(always)]
    fn view(&self, word: u64, now: Tick) -> Unpacked {
        self.viewed(self.settled(word, now))
    }

    #[inline(always)]
    fn viewed(&self, settled: u64) -> Unpacked {
        Unpacked {
            end: settled >> self.bits,
            taken: settled & self.most,
        }
    }

    /// When permits count: now, or at the beginning of the word's period, if that is ahead.
    #[inline(always)]
    fn counted_at(&self, word: u64, now: Tick) -> Tick {
        let begin = (word >> self.bits).saturating_sub(self.parts());
        let tick = Tick::from_nanos(self.first_with(begin));
        if tick <= now || self.may_have_begun(begin, now) {
            now
        } else {
            tick
        }
    }

    /// Whether a period with this beginning, which is ahead, may have begun now: in the part before
    /// it, since beginnings are rounded up. Not if the beginning is a whole tick: the last period
    /// may have ended at that very tick, and who counts earlier would count before its end. And not
    /// where some permits come back at a time: the beginning may be such an end, and is not rounded
    /// then.
    #[cold]
    fn may_have_begun(&self, begin: u64, now: Tick) -> bool {
        let (period, now) = (self.period.period().get(), u128::from(now.as_nanos()));
        let part_before = u128::from(begin.saturating_sub(1)) * u128::from(period);
        let is_whole = begin.wrapping_mul(period) & (self.parts() - 1) == 0;
        let all_come_back = self.back.get() == u64::MAX;
        all_come_back && !is_whole && now << self.shift > part_before
    }

    /// Whether the word's period begins later than the clock says.
    #[inline]
    fn is_ahead(&self, word: u64, now: Tick) -> bool {
        let now = now.min(Tick::from_nanos(self.horizon));
        self.counted_at(word, now) > now
    }

    /// The first tick at which so many of the permits taken have come back.
    #[inline]
    fn returned(&self, view: Unpacked, permits: u64) -> u64 {
        let more = permits.div_ceil(self.back.get()).saturating_sub(1);
        let end = more.saturating_mul(self.parts()).saturating_add(view.end);
        self.first_with(end)
    }

    #[inline(always)]
    fn word(&self, end: u64, taken: u64) -> u64 {
        (end << self.bits) | taken
    }

    /// The word in which what was taken goes on until the same end, if the next one has the same
    /// period.
    pub(in crate::algorithm) fn recount(
        &self,
        word: u64,
        now: Tick,
        next: &Self,
        counts: CarriedCounts,
    ) -> Option<u64> {
        let view = self.view(word, now);
        if self.period.period() != next.period.period() || view.taken == 0 {
            return None;
        }
        let taken = counts.current(view.taken, self.limit.get(), next.limit.get());
        let taken = taken.min(next.most);
        // Its parts may be larger ones: it does not end earlier.
        let end = match next.shift.checked_sub(self.shift) {
            Some(finer) => u128::from(view.end) << finer.min(64),
            None => u128::from(view.end).div_ceil(1 << (self.shift - next.shift).min(64)),
        };
        let ends = u64::MAX >> next.bits;
        let end = u64::try_from(end).ok().filter(|end| *end <= ends - 2)?;
        Some(if taken == 0 { 0 } else { next.word(end, taken) })
    }

    /// Puts back up to `n` of the permits taken: the next word, and how many.
    #[inline]
    fn give_back(&self, word: u64, view: Unpacked, n: u64) -> (u64, u64) {
        match n.min(view.taken) {
            0 => (word, 0),
            n => (self.word(view.end, view.taken - n), n),
        }
    }

    /// The decision on a word that is seen so.
    #[inline(always)]
    fn decide(
        &self,
        word: u64,
        view: Unpacked,
        now: Tick,
        n: u64,
    ) -> Result<(u64, Granted), Denied> {
        if n > self.limit.get() {
            return Err(Denied::never(n, self.limit.get()));
        }
        let taken = view.taken + n;
        if taken > self.limit.get() {
            let due = self.returned(view, taken - self.limit.get());
            return Err(if due > self.horizon {
                Denied::stuck(n)
            } else {
                Denied::later(n, Tick::from_nanos(due).saturating_since(now))
            });
        }
        Ok(self.granted(word, view, now, n, self.limit.get() - taken))
    }

    /// The next word and the grant of `n` permits, after which so many remain.
    #[inline(always)]
    fn granted(&self, word: u64, view: Unpacked, now: Tick, n: u64, room: u64) -> (u64, Granted) {
        let taken = view.taken + n;
        let next = if n == 0 {
            word
        } else {
            self.word(view.end, taken)
        };
        let mut granted = Granted::new(n, self.counted_at(word, now))
            .with_room(room, NonZeroU64::MIN)
            .with_mark(next);
        if taken > 0 {
            granted = granted.with_reset_at(Tick::from_nanos(self.returned(view, taken)));
        }
        (next, granted)
    }
}

impl Algorithm for FirstHit {
    #[inline(always)]
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        self.decide(word, self.view(word, now), now, n)
    }

    #[inline(always)]
    fn short_step(&self, word: u64, now: Tick, n: u64) -> Option<Result<(u64, Granted), Denied>> {
        self.runs(word, now)
            .then(|| self.decide(word, self.viewed(word), now, n))
    }

    #[inline]
    fn available(&self, word: u64, now: Tick) -> u64 {
        self.limit.get().saturating_sub(self.view(word, now).taken)
    }

    #[inline]
    fn is_idle(&self, word: u64, now: Tick) -> bool {
        let view = self.view(word, now);
        view.taken == 0 && !self.is_ahead(word, now)
    }

    #[inline]
    fn initial_word(&self, now: Tick) -> u64 {
        if self.missing == 0 {
            0
        } else {
            self.word(self.view(0, now).end, self.missing)
        }
    }

    #[inline]
    fn take_up_to(&self, word: u64, now: Tick, n: u64) -> (u64, Granted) {
        let view = self.view(word, now);
        let room = self.limit.get().saturating_sub(view.taken);
        let n = n.min(room);
        self.granted(word, view, now, n, room - n)
    }
}

impl GiveBack for FirstHit {
    /// At each end as many of the oldest permits come back; what is left of the grant when those
    /// are gone can be given back.
    #[inline]
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        let view = self.view(word, now);
        let (end, taken) = (granted.mark() >> self.bits, granted.mark() & self.most);
        let Some(since) = view.end.checked_sub(end) else {
            return (word, 0);
        };
        if since & (self.parts() - 1) > 0 {
            // Everything came back in the meantime, and a new period began.
            return (word, 0);
        }
        let came_back = self.back.get().saturating_mul(since >> self.shift);
        let left = taken.saturating_sub(came_back);
        self.give_back(word, view, granted.n().min(left))
    }

    #[inline]
    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        self.give_back(word, self.view(word, now), n)
    }
}

impl Debt for FirstHit {
    #[inline]
    fn charge(&self, word: u64, now: Tick, n: u64) -> (u64, Charged) {
        let view = self.view(word, now);
        // No algorithm of ours writes the last end, but a word may be anything: it must not
        // become all ones.
        let most = self.most - u64::from(view.end >= u64::MAX >> self.bits);
        let n = n.min(most.saturating_sub(view.taken));
        let taken = view.taken + n;
        let next = if n == 0 {
            word
        } else {
            self.word(view.end, taken)
        };
        let debt = taken.saturating_sub(self.limit.get());
        let clear_after = match self.returned(view, debt) {
            _ if debt == 0 => Duration::ZERO,
            tick if tick > self.horizon => Duration::MAX,
            tick => Tick::from_nanos(tick).saturating_since(now),
        };
        let charged = Charged::new(n, self.counted_at(word, now));
        (next, charged.with_debt(debt, clear_after))
    }
}

impl Forecast for FirstHit {
    #[inline]
    fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick> {
        if n > self.limit.get() {
            return None;
        }
        let view = self.view(word, now);
        let taken = view.taken + n;
        if taken <= self.limit.get() {
            return Some(now);
        }
        let due = self.returned(view, taken - self.limit.get());
        (due <= self.horizon).then_some(Tick::from_nanos(due))
    }
}

impl Rebase for FirstHit {
    #[inline]
    fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64 {
        let view = self.view(word, from);
        if from == to {
            word
        } else if view.taken == 0 && !self.is_ahead(word, from) {
            0
        } else {
            let ((made, _), (_, start)) = (self.made(from), self.made(to));
            let end = start.saturating_add(view.end - made);
            let end = end.min((u64::MAX >> self.bits) - 1);
            self.word(end, view.taken)
        }
    }
}

impl Gauge for FirstHit {
    #[inline]
    fn level(&self, word: u64, now: Tick) -> Level {
        Level::of_permits(self.view(word, now).taken)
    }
}
