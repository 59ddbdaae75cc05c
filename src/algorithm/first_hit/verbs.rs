//! How a period opened by the first hit reads and changes its word.

use core::num::NonZeroU64;

use super::FirstHit;
use crate::algorithm::carry::CarriedCounts;
use crate::algorithm::counting::{Reservations, Seen, WindowCount};
use crate::clock::Tick;
use crate::outcome::Granted;

impl FirstHit {
    /// Returns how many whole parts have passed, and the same number rounded up.
    #[inline(always)]
    fn accrued(&self, now: Tick) -> (u64, u64) {
        let (accrued, rest) = self
            .period
            .divide(now.as_nanos().min(self.horizon), self.shift);
        (accrued, accrued + u64::from(rest > 0))
    }

    /// Returns the word brought forward to `now`: periods that are over have refilled their
    /// permits. If no permits are taken, a period begins now.
    #[inline(always)]
    fn settled(&self, word: u64, now: Tick) -> u64 {
        if self.runs(word, now) {
            word
        } else {
            self.turned(word, now)
        }
    }

    /// Returns whether the word's period is not over and permits are taken.
    #[inline(always)]
    fn runs(&self, word: u64, now: Tick) -> bool {
        // The first tick at or after the period's end. It can wrap only for a word that no
        // algorithm wrote. It is too early then, never too late.
        let (end, (whole, part)) = (word >> self.bits, self.quantum);
        let parts = u128::from(end) * u128::from(part);
        let tick = end
            .wrapping_mul(whole)
            .wrapping_add((parts >> 64) as u64)
            .wrapping_add(u64::from(parts as u64 > 0));
        now.as_nanos() < tick && word & self.most > 0
    }

    /// Brings forward a word whose period is over, or in which no permits are taken.
    #[cold]
    #[inline(never)]
    fn turned(&self, word: u64, now: Tick) -> u64 {
        let (accrued, start) = self.accrued(now);
        let (mut end, mut taken) = (word >> self.bits, word & self.most);
        if accrued >= end {
            let ends = 1 + ((accrued - end) >> self.shift);
            taken = taken.saturating_sub(self.back.get().saturating_mul(ends));
            end += ends << self.shift;
        }
        if taken == 0 {
            end = end.max(start + self.parts());
        }
        self.word(end, taken)
    }

    #[inline(always)]
    const fn seen(&self, word: u64) -> Seen {
        let (count, more) = (word & self.most, ());
        Seen { word, count, more }
    }

    /// Returns the tick at which permits are counted: now, or the beginning of the word's period if
    /// that is later.
    #[inline(always)]
    fn counts_from(&self, word: u64, now: Tick) -> Tick {
        let begin = (word >> self.bits).saturating_sub(self.parts());
        let tick = Tick::from_nanos(self.first_with(begin));
        if tick <= now || self.may_have_begun(begin, now) {
            now
        } else {
            tick
        }
    }

    /// Returns whether a period may have begun by `now`, although its recorded beginning is later.
    /// Beginnings are rounded up, so the period may have begun during the part before.
    ///
    /// In two cases the answer is `false` before the recorded beginning. If that is a whole tick,
    /// the previous period may have ended at exactly that tick, and a permit counted before it
    /// would belong to the previous period. If only some permits are refilled at the end of a
    /// period, the recorded beginning may be the end of a period, which is not rounded.
    #[cold]
    fn may_have_begun(&self, begin: u64, now: Tick) -> bool {
        let (period, now) = (self.period.period().get(), u128::from(now.as_nanos()));
        let part_before = u128::from(begin.saturating_sub(1)) * u128::from(period);
        let is_whole = begin.wrapping_mul(period) & (self.parts() - 1) == 0;
        let all_come_back = self.back.get() == u64::MAX;
        all_come_back && !is_whole && now << self.shift > part_before
    }

    /// Returns whether the word's period begins later than `now`.
    #[inline]
    fn is_ahead(&self, word: u64, now: Tick) -> bool {
        let now = now.min(Tick::from_nanos(self.horizon));
        self.counts_from(word, now) > now
    }

    /// Returns the first tick at which this many of the permits taken have been refilled.
    #[inline]
    fn returned(&self, seen: Seen, permits: u64) -> u64 {
        let more = permits.div_ceil(self.back.get()).saturating_sub(1);
        let end = more
            .saturating_mul(self.parts())
            .saturating_add(seen.word >> self.bits);
        self.first_with(end)
    }

    #[inline(always)]
    fn word(&self, end: u64, taken: u64) -> u64 {
        (end << self.bits) | taken
    }

    /// Returns the word in which the count continues until the same end. Returns `None` if `next`
    /// has another period.
    pub(in crate::algorithm) fn recount(
        &self,
        word: u64,
        now: Tick,
        next: &Self,
        counts: CarriedCounts,
    ) -> Option<u64> {
        let seen = self.see(word, now);
        if self.period.period() != next.period.period() || seen.count == 0 {
            return None;
        }
        let taken = match counts {
            // More may have been used than the word could count.
            CarriedCounts::Used if seen.count >= self.most(seen) => next.most,
            _ => counts.current(seen.count, self.limit.get(), next.limit.get()),
        };
        let taken = taken.min(next.most);
        // The parts of `next` may be larger. Round up, so that the period does not end earlier.
        let end = match next.shift.checked_sub(self.shift) {
            Some(finer) => u128::from(seen.word >> self.bits) << finer.min(64),
            None => {
                u128::from(seen.word >> self.bits).div_ceil(1 << (self.shift - next.shift).min(64))
            }
        };
        let ends = u64::MAX >> next.bits;
        let end = u64::try_from(end).ok().filter(|end| *end <= ends - 2)?;
        Some(if taken == 0 { 0 } else { next.word(end, taken) })
    }
}

impl WindowCount for FirstHit {
    type More = ();

    #[inline(always)]
    fn see(&self, word: u64, now: Tick) -> Seen {
        self.seen(self.settled(word, now))
    }

    #[inline(always)]
    fn see_fast(&self, word: u64, now: Tick) -> Option<Seen> {
        self.runs(word, now).then(|| self.seen(word))
    }

    #[inline(always)]
    fn limit(&self) -> NonZeroU64 {
        self.limit
    }

    /// Returns the largest count, or one less for a word with the last end: such a word must not
    /// become all ones. The algorithm never writes that end, but a word from elsewhere may hold it.
    #[inline(always)]
    fn most(&self, seen: Seen) -> u64 {
        self.most - u64::from(seen.word >> self.bits >= u64::MAX >> self.bits)
    }

    #[inline(always)]
    fn fits_at(&self, seen: Seen, _now: Tick, n: u64) -> Option<Tick> {
        let above = (seen.count + n).saturating_sub(self.limit.get());
        let due = self.returned(seen, above);
        (due <= self.horizon).then_some(Tick::from_nanos(due))
    }

    #[inline(always)]
    fn forgotten_at(&self, seen: Seen) -> Option<Tick> {
        let tick = Tick::from_nanos(self.returned(seen, seen.count));
        (seen.count > 0).then_some(tick)
    }

    #[inline(always)]
    fn counted_at(&self, word: u64, _seen: Seen, now: Tick) -> Tick {
        self.counts_from(word, now)
    }

    /// Returns the place that the grant had, less the permits that were refilled since.
    #[inline]
    fn place_of(&self, seen: Seen, granted: &Granted) -> Option<u64> {
        let (end, taken) = (granted.mark() >> self.bits, granted.mark() & self.most);
        let since = (seen.word >> self.bits).checked_sub(end)?;
        if since & (self.parts() - 1) > 0 {
            // All permits were refilled in the meantime, and a new period began.
            return None;
        }
        let came_back = self.back.get().saturating_mul(since >> self.shift);
        Some(taken.saturating_sub(came_back))
    }

    /// Raises the count to the permits that are refilled until then, without changing the end of
    /// the period. If fewer were taken, the bucket is full at a refill, and the rest of it is lost.
    fn until(&self, seen: Seen, n: u64, _due: Tick) -> Seen {
        let above = (seen.count + n).saturating_sub(self.limit.get());
        let back = self.back.get();
        let refilled = above.div_ceil(back).saturating_mul(back);
        let lost = refilled.saturating_sub(seen.count);
        let (word, count, more) = (seen.word.saturating_add(lost), seen.count + lost, ());
        Seen { word, count, more }
    }

    /// Returns whether refills pay debt permit by permit. If a refill is larger than the limit, it
    /// would also pay for permits that a full bucket does not get.
    fn reservations(&self) -> Reservations {
        match self.back <= self.limit {
            true => Reservations::AsDebt,
            false => Reservations::None,
        }
    }

    #[inline]
    fn is_idle(&self, word: u64, seen: Seen, now: Tick) -> bool {
        seen.count == 0 && !self.is_ahead(word, now)
    }

    #[inline]
    fn initial_word(&self, now: Tick) -> u64 {
        match self.deficit {
            0 => 0,
            deficit => self.word(self.settled(0, now) >> self.bits, deficit),
        }
    }

    #[inline]
    fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64 {
        let seen = self.see(word, from);
        if from == to {
            word
        } else if seen.count == 0 && !self.is_ahead(word, from) {
            0
        } else {
            let ((accrued, _), (_, start)) = (self.accrued(from), self.accrued(to));
            let end = start.saturating_add((seen.word >> self.bits) - accrued);
            let end = end.min((u64::MAX >> self.bits) - 1);
            self.word(end, seen.count)
        }
    }
}
