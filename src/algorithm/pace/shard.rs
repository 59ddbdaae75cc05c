//! The equal shards that a pace is split into.
//!
//! A shard runs at the speed of the whole pace, with a bucket of as many units. But a shard's
//! permits are units, and one permit of the whole limit takes `parts * permit` of them. So the
//! rates and bursts of the shards are equal, and they add up to exactly those of the whole, for
//! every quota.

use core::num::NonZeroU64;

use super::{Accrual, Pace};
use crate::clock::Tick;

impl<M: Accrual + Copy> Pace<M> {
    /// Returns the pace of each of `parts` shards, whose permits are units, and the number of units
    /// in a permit of the whole limit. Returns `None` if the sum over all shards does not fit 64
    /// bits.
    pub(in crate::algorithm) fn per_shard(&self, parts: u64) -> Option<(Self, u64)> {
        self.capacity.checked_mul(parts)?;
        let permit = self.permit.get().checked_mul(parts)?;
        let part = Self {
            permit: NonZeroU64::MIN,
            burst: NonZeroU64::new(self.capacity)?,
            deficit: self.deficit * self.permit.get(),
            ..*self
        };
        (parts > 0).then_some((part, permit))
    }

    /// Returns the first tick at which the words together have `n` permits, adding up their units.
    pub(in crate::algorithm) fn due_together(
        &self,
        words: &[u64],
        now: Tick,
        n: u64,
    ) -> Option<Tick> {
        let n = n.saturating_mul(self.permit.get());
        let now_accrued = self.accrual.accrued(now);
        let mut accrued = now_accrued;
        loop {
            // The units available at `accrued`, how many words are filling, and how soon the first
            // word leaves debt.
            let (mut have, mut filling, mut in_debt_for) = (0_u64, 0_u64, u64::MAX);
            for word in words {
                let lack = word.saturating_sub(accrued);
                have = have.saturating_add(self.capacity.saturating_sub(lack));
                match lack.checked_sub(self.capacity) {
                    Some(debt) if debt > 0 => in_debt_for = in_debt_for.min(debt),
                    _ => filling += u64::from(lack > 0),
                }
            }
            let deficit = n.saturating_sub(have);
            if deficit == 0 {
                break;
            }
            // A word may become full before that. Then the other words must supply the rest, which
            // the next round computes.
            let until = match filling {
                0 => in_debt_for,
                filling => deficit.div_ceil(filling).min(in_debt_for),
            };
            match accrued.checked_add(until) {
                Some(then) => accrued = then,
                None => return None,
            }
        }
        let due = self.accrual.tick_of(accrued);
        if accrued == now_accrued {
            return Some(now);
        }
        (due <= self.accrual.horizon()).then(|| now.max(Tick::from_nanos(due)))
    }
}
