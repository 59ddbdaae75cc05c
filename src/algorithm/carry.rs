//! Carries a word over to another quota by its permits or counts, where the words have different
//! units.

use super::{Algorithm, ChangeQuota, Debt, Gauge};
use crate::clock::Tick;

/// Returns the word with which `next` continues at `now`. It keeps the whole permits of `this`, up
/// to what `next` can hold, and the debt.
pub(super) fn by_permits<A: Debt>(this: &A, word: u64, now: Tick, next: &A) -> u64 {
    let (_, seen) = this.charge(word, now, 0);
    // If the word was written at a later tick, continue at that tick.
    let now = seen.at();
    let (have, most) = (this.available(word, now), next.available(0, now));
    match most.saturating_sub(have).saturating_add(seen.debt()) {
        0 => 0,
        lack => next.charge(0, now, lack).0,
    }
}

/// Returns the word with which `next` continues. The available share of its permits is the same as
/// in `this`, rounded down to whole permits.
pub(super) fn scaled<A: ChangeQuota>(this: &A, word: u64, now: Tick, next: &A) -> u64 {
    let (_, seen) = this.take_up_to(word, now, 0);
    // If the word was written at a later tick, continue at that tick.
    let now = now.max(seen.at());
    let (have, most) = (this.available(word, now), this.available(0, now));
    if have == 0 || most == 0 {
        // There is nothing to scale, and debt is carried over unscaled.
        return this.carry_over(word, now, next);
    }
    let there = next.available(0, now);
    let part = u128::from(have) * u128::from(there) / u128::from(most);
    // `part` is at most `there`, so it fits.
    next.take_up_to(0, now, there.saturating_sub(part as u64)).0
}

/// Returns the word with which `next` continues at `now`. It counts as many permits as `this`,
/// rounded up.
pub(super) fn by_level<A: Debt + Gauge>(this: &A, word: u64, now: Tick, next: &A) -> u64 {
    let (_, seen) = this.charge(word, now, 0);
    // If the word was written at a later tick, continue at that tick.
    next.charge(0, seen.at(), this.level(word, now).ceil()).0
}

/// An algorithm that counts in periods, and whose counts can continue under another quota.
pub(super) trait Recount: ChangeQuota + Debt + PartialEq {
    /// Returns the word in which the counts continue until the end of their period. Returns `None`
    /// if `next` has other periods.
    fn recount(&self, word: u64, now: Tick, next: &Self, counts: CarriedCounts) -> Option<u64>;
}

/// Implements the methods of [`ChangeQuota`] that carry over, for an algorithm that can
/// [`Recount`].
macro_rules! carries_counts {
    () => {
        fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
            crate::algorithm::carry::over(self, word, now, next)
        }

        fn carry_scaled(&self, word: u64, now: Tick, next: &Self) -> u64 {
            crate::algorithm::carry::in_part(self, word, now, next)
        }

        fn carry_used(&self, word: u64, now: Tick, next: &Self) -> u64 {
            crate::algorithm::carry::used(self, word, now, next)
        }
    };
}
pub(super) use carries_counts;

/// Implements [`ChangeQuota::carry_over`] by counts if possible, and otherwise by whole permits.
pub(super) fn over<A: Recount>(this: &A, word: u64, now: Tick, next: &A) -> u64 {
    if this == next {
        return word;
    }
    match this.recount(word, now, next, CarriedCounts::AsIs) {
        Some(counted) => no_more_than(this.available(word, now), counted, now, next),
        None => by_permits(this, word, now, next),
    }
}

/// Implements [`ChangeQuota::carry_scaled`] by counts if possible, and otherwise by whole permits.
pub(super) fn in_part<A: Recount>(this: &A, word: u64, now: Tick, next: &A) -> u64 {
    let (have, most) = (this.available(word, now), this.available(0, now));
    if this == next || have == 0 || most == 0 {
        // There is nothing to scale, and debt is carried over unscaled.
        return over(this, word, now, next);
    }
    match this.recount(word, now, next, CarriedCounts::Scaled) {
        Some(counted) => {
            let part = u128::from(have) * u128::from(next.available(0, now)) / u128::from(most);
            let part = u64::try_from(part).unwrap_or(u64::MAX);
            no_more_than(part, counted, now, next)
        }
        None => scaled(this, word, now, next),
    }
}

/// Implements [`ChangeQuota::carry_used`] by counts if possible, and otherwise by whole permits.
pub(super) fn used<A: Recount + Gauge>(this: &A, word: u64, now: Tick, next: &A) -> u64 {
    if this == next {
        return word;
    }
    let counted = this.recount(word, now, next, CarriedCounts::Used);
    counted.unwrap_or_else(|| by_level(this, word, now, next))
}

/// Takes permits from the word until at most `permits` are left. This removes what rounding added.
fn no_more_than<A: Algorithm>(permits: u64, word: u64, now: Tick, next: &A) -> u64 {
    let there = next.available(word, now);
    next.take_up_to(word, now, there.saturating_sub(permits)).0
}

/// How counts are converted when the periods stay the same: to keep the number of available
/// permits, their share of the limit, or the number of used permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CarriedCounts {
    /// Keeps the number of available permits: the difference between the limits is added to the
    /// count or subtracted from it.
    AsIs,
    /// Keeps the share: the count is scaled with the limit and rounded up.
    Scaled,
    /// Keeps the count.
    Used,
}

impl CarriedCounts {
    /// Converts the count of the current period from the old limit to the new one.
    pub(super) fn current(self, count: u64, limit: u64, next: u64) -> u64 {
        match self {
            Self::AsIs => (count.saturating_add(next.saturating_sub(limit)))
                .saturating_sub(limit.saturating_sub(next)),
            Self::Scaled => Self::scaled(count, limit, next),
            Self::Used => count,
        }
    }

    /// Converts the count of the previous period, which the algorithm only weights.
    pub(super) fn before(self, count: u64, limit: u64, next: u64) -> u64 {
        match self {
            Self::AsIs | Self::Used => count,
            Self::Scaled => Self::scaled(count, limit, next),
        }
    }

    fn scaled(count: u64, limit: u64, next: u64) -> u64 {
        let scaled = u128::from(count) * u128::from(next);
        u64::try_from(scaled.div_ceil(u128::from(limit.max(1)))).unwrap_or(u64::MAX)
    }
}
