//! The steps of a pace on its word.

use core::num::NonZeroU64;
use core::time::Duration;

use super::{Accrual, MAX_WORD, Pace, min};
use crate::algorithm::Level;
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};

impl<M: Accrual + PartialEq> Pace<M> {
    /// Returns how many units have accrued by `now`.
    #[inline(always)]
    pub(crate) fn accrued(&self, now: Tick) -> u64 {
        self.accrual.accrued(now)
    }

    /// Returns the largest distance of the word above the clock at which `n` permits are granted.
    /// `n` is at most a burst.
    #[inline]
    pub(super) fn headroom(&self, n: u64) -> u64 {
        self.capacity - n * self.permit.get()
    }

    #[inline(always)]
    pub(crate) fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        if n > self.burst.get() {
            return Err(Denied::never(n, self.burst.get()));
        }
        let accrued = self.accrued(now);
        let headroom = self.headroom(n);
        if word > accrued + headroom {
            return Err(self.denied(word - headroom, now, n));
        }
        let next = if n == 0 {
            word
        } else {
            word.max(accrued) + n * self.permit.get()
        };
        Ok((next, self.granted(next, accrued, now, n)))
    }

    /// Runs the step: every step is short.
    #[inline(always)]
    pub(crate) fn step_fast(
        &self,
        word: u64,
        now: Tick,
        n: u64,
    ) -> Option<Result<(u64, Granted), Denied>> {
        Some(self.step(word, now, n))
    }

    #[inline]
    pub(crate) fn take_up_to(&self, word: u64, now: Tick, n: u64) -> (u64, Granted) {
        let accrued = self.accrued(now);
        let n = n.min(self.free(word, accrued) / self.permit.get());
        let next = if n == 0 {
            word
        } else {
            word.max(accrued) + n * self.permit.get()
        };
        (next, self.granted(next, accrued, now, n))
    }

    /// Returns the units that are available.
    #[inline]
    fn free(&self, word: u64, accrued: u64) -> u64 {
        self.capacity.saturating_sub(word.saturating_sub(accrued))
    }

    #[inline(always)]
    pub(super) fn granted(&self, next: u64, accrued: u64, now: Tick, n: u64) -> Granted {
        let granted = Granted::new(n, now)
            .with_remaining(self.free(next, accrued), self.permit)
            .with_mark(next);
        self.accrual.with_idle_at(granted, next)
    }

    /// Returns the denial of a request that can be granted once this many units have accrued.
    #[inline(always)]
    fn denied(&self, units: u64, now: Tick, n: u64) -> Denied {
        let due = self.accrual.tick_of(units);
        if due > self.accrual.horizon() {
            Denied::stuck(n)
        } else {
            Denied::later(n, Tick::from_nanos(due).saturating_since(now))
        }
    }

    #[inline]
    pub(crate) fn available(&self, word: u64, now: Tick) -> u64 {
        self.free(word, self.accrued(now)) / self.permit.get()
    }

    #[inline]
    pub(crate) fn is_idle(&self, word: u64, now: Tick) -> bool {
        word <= self.accrued(now)
    }

    /// Returns the tick at which as many units have accrued as the word says.
    #[inline]
    pub(crate) fn idle_at(&self, word: u64, now: Tick) -> Tick {
        let idle_at = self.accrual.tick_of(word);
        match idle_at > self.accrual.horizon() {
            true => Tick::MAX,
            false => Tick::from_nanos(idle_at).max(now),
        }
    }

    #[inline]
    pub(crate) const fn larger_is_idle_later(&self) -> bool {
        M::ONE_BY_ONE
    }

    #[inline]
    pub(crate) fn initial_word(&self, now: Tick) -> u64 {
        if self.deficit == 0 {
            0
        } else {
            self.accrued(now) + self.deficit * self.permit.get()
        }
    }

    #[inline]
    pub(crate) fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick> {
        if n > self.burst.get() {
            return None;
        }
        let due = self.accrual.tick_of(word.saturating_sub(self.headroom(n)));
        (due <= self.accrual.horizon()).then(|| now.max(Tick::from_nanos(due)))
    }

    /// Lowers the word by `units`, but not below that of a bucket that is full at `accrued`.
    /// Returns the next word, and how many permits were returned, rounded up.
    #[inline]
    pub(super) fn give_back(&self, word: u64, accrued: u64, units: u64) -> (u64, u64) {
        let units = units.min(word.saturating_sub(accrued));
        (word - units, units.div_ceil(self.permit.get()))
    }

    /// Gives back the part of the grant that time has not refilled. The grant occupies the word
    /// from `mark - n * permit` to `mark`, and the part below the clock is refilled already.
    #[inline]
    pub(crate) fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        let accrued = self.accrued(now);
        let units = granted.n().saturating_mul(self.permit.get());
        let ahead = granted.mark().saturating_sub(accrued);
        self.give_back(word, accrued, units.min(ahead))
    }

    #[inline]
    pub(crate) fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        let units = n.saturating_mul(self.permit.get());
        self.give_back(word, self.accrued(now), units)
    }

    #[inline]
    pub(crate) fn charge(&self, word: u64, now: Tick, n: u64) -> (u64, Charged) {
        let accrued = self.accrued(now);
        let (next, n) = if n == 0 {
            (word, 0)
        } else {
            let base = word.max(accrued).min(MAX_WORD);
            let n = n.min((MAX_WORD - base) / self.permit.get());
            // If no permit fits, nothing changes.
            (
                if n == 0 {
                    word
                } else {
                    base + n * self.permit.get()
                },
                n,
            )
        };
        let clear = next.saturating_sub(self.headroom(0));
        let debt = clear.saturating_sub(accrued).div_ceil(self.permit.get());
        let clear_after = match self.accrual.tick_of(clear) {
            // Without debt, the clock has already passed this tick.
            tick if tick > self.accrual.horizon() => Duration::MAX,
            tick => Tick::from_nanos(tick).saturating_since(now),
        };
        (next, Charged::new(n, now).with_debt(debt, clear_after))
    }

    #[inline]
    pub(crate) fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        let (accrued, then) = (self.accrued(now), next.accrued(now));
        if self == next {
            return word;
        }
        let of_permits =
            |capacity: u64, permit: NonZeroU64| u128::from(capacity) * u128::from(permit.get());
        if word <= accrued
            && of_permits(next.capacity, self.permit) <= of_permits(self.capacity, next.permit)
        {
            return 0;
        }
        // Convert available permits to the new unit, rounded down, and debt likewise, rounded up.
        let have = self.free(word, accrued);
        let owe = word
            .saturating_sub(accrued)
            .saturating_sub(self.headroom(0));
        let convert = |units: u64| u128::from(units) * u128::from(next.permit.get());
        let have = convert(have) / u128::from(self.permit.get());
        let owe = convert(owe).div_ceil(u128::from(self.permit.get()));
        let lack = u128::from(next.capacity).saturating_sub(have) + owe;
        let word = u128::from(then).saturating_add(lack);
        if lack == 0 {
            0
        } else {
            min(word, MAX_WORD as u128) as u64
        }
    }

    #[inline]
    pub(crate) fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64 {
        if from == to {
            return word;
        }
        let ahead = word.saturating_sub(self.accrued(from));
        if ahead == 0 {
            return 0;
        }
        // Each clock may be a fraction of a unit past `accrued`. So permits are due less than one
        // unit sooner or later than before.
        self.accrued(to).saturating_add(ahead).min(MAX_WORD)
    }

    #[inline]
    pub(crate) fn level(&self, word: u64, now: Tick) -> Level {
        let units = word.saturating_sub(self.accrued(now));
        Level::of_units(units.into(), self.permit)
    }
}
