//! Carries a word over to another pace, by its level or by its share of the reach.

use super::{MAX_WORD, Meter, Pace, min};
use crate::clock::Tick;

impl<M: Meter + PartialEq> Pace<M> {
    /// Returns the word with the same level, rounded up. The level may exceed the reach of `next`.
    pub(crate) fn carry_level(&self, word: u64, now: Tick, next: &Self) -> u64 {
        let ahead = word.saturating_sub(self.made(now));
        if self == next {
            return word;
        }
        if ahead == 0 {
            return 0;
        }
        let units = u128::from(ahead) * u128::from(next.unit.get());
        let units = units.div_ceil(u128::from(self.unit.get()));
        min(
            u128::from(next.made(now)).saturating_add(units),
            MAX_WORD as u128,
        ) as u64
    }

    /// Returns the word with the same share of its reach available, rounded down to units of
    /// `next`.
    pub(crate) fn carry_scaled(&self, word: u64, now: Tick, next: &Self) -> u64 {
        let ahead = word.saturating_sub(self.made(now));
        if self == next {
            return word;
        }
        if ahead >= self.reach {
            // There is nothing to scale. Debt is carried over unscaled.
            return self.carry_over(word, now, next);
        }
        let have = u128::from(self.reach - ahead) * u128::from(next.reach) / u128::from(self.reach);
        match u128::from(next.reach) - have {
            0 => 0,
            lack => min(u128::from(next.made(now)) + lack, MAX_WORD as u128) as u64,
        }
    }
}
