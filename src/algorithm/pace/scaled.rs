//! Going on at another pace with as large a part of it.

use super::{MAX_WORD, Meter, Pace, min};
use crate::clock::Tick;

impl<M: Meter + PartialEq> Pace<M> {
    /// As much as is in the bucket, rounded up, also where it is more than the next one's reach.
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
            u128::from(next.base(now)).saturating_add(units),
            MAX_WORD as u128,
        ) as u64
    }

    /// The part of the reach that is there, exactly, in units of the next one, rounded down.
    pub(crate) fn carry_scaled(&self, word: u64, now: Tick, next: &Self) -> u64 {
        let ahead = word.saturating_sub(self.made(now));
        if self == next {
            return word;
        }
        if ahead >= self.reach {
            // There is nothing to be scaled, and a debt stays.
            return self.carry_over(word, now, next);
        }
        let have = u128::from(self.reach - ahead) * u128::from(next.reach) / u128::from(self.reach);
        match u128::from(next.reach) - have {
            0 => 0,
            lack => min(u128::from(next.base(now)) + lack, MAX_WORD as u128) as u64,
        }
    }
}
