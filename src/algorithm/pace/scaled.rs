//! Carries a word over to another pace, by its level or by its share of the capacity.

use super::{Accrual, MAX_WORD, Pace, min};
use crate::clock::Tick;

impl<M: Accrual + PartialEq> Pace<M> {
    /// Returns the word with the same level, rounded up. The level may exceed the capacity of
    /// `next`.
    pub(crate) fn carry_level(&self, word: u64, now: Tick, next: &Self) -> u64 {
        let ahead = word.saturating_sub(self.accrued(now));
        if self == next {
            return word;
        }
        if ahead == 0 {
            return 0;
        }
        let units = u128::from(ahead) * u128::from(next.permit.get());
        let units = units.div_ceil(u128::from(self.permit.get()));
        min(
            u128::from(next.accrued(now)).saturating_add(units),
            MAX_WORD as u128,
        ) as u64
    }

    /// Returns the word with the same share of its capacity available, rounded down to units of
    /// `next`.
    pub(crate) fn carry_scaled(&self, word: u64, now: Tick, next: &Self) -> u64 {
        let ahead = word.saturating_sub(self.accrued(now));
        if self == next {
            return word;
        }
        if ahead >= self.capacity {
            // There is nothing to scale. Debt is carried over unscaled.
            return self.carry_over(word, now, next);
        }
        let have = u128::from(self.capacity - ahead) * u128::from(next.capacity)
            / u128::from(self.capacity);
        match u128::from(next.capacity) - have {
            0 => 0,
            lack => min(u128::from(next.accrued(now)) + lack, MAX_WORD as u128) as u64,
        }
    }
}
