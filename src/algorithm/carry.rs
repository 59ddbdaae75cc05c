//! Going on with another quota, where the words of the two have little or nothing in common.

use super::{Algorithm, ChangeQuota, Debt};
use crate::clock::Tick;

/// The word with which `next` goes on at `now` where `this` left off: with as many whole permits,
/// but no more than it can hold, and with as much debt.
pub(super) fn by_permits<A, B>(this: &A, word: u64, now: Tick, next: &B) -> u64
where
    A: Algorithm + Debt,
    B: Algorithm + Debt,
{
    let (_, seen) = this.charge(word, now, 0);
    // A word that somebody with a later tick has written goes on at that tick.
    let now = seen.at();
    let (have, most) = (this.available(word, now), next.available(0, now));
    match most.saturating_sub(have).saturating_add(seen.debt()) {
        0 => 0,
        lack => next.charge(0, now, lack).0,
    }
}

/// The word with which `next` goes on with as large a part of its permits as `this` had of its own,
/// in whole ones.
pub(super) fn scaled<A: ChangeQuota>(this: &A, word: u64, now: Tick, next: &A) -> u64 {
    let (_, seen) = this.take_up_to(word, now, 0);
    // As above.
    let now = now.max(seen.at());
    let (have, most) = (this.available(word, now), this.available(0, now));
    if have == 0 || most == 0 {
        // There is nothing to be scaled, and a debt stays.
        return this.carry_over(word, now, next);
    }
    let there = next.available(0, now);
    let part = u128::from(have) * u128::from(there) / u128::from(most);
    // It fits: no more is there than there can be.
    next.take_up_to(0, now, there.saturating_sub(part as u64)).0
}

/// An algorithm that counts in periods, whose counts may go on in another one's.
pub(super) trait Recount: ChangeQuota + Debt + PartialEq {
    /// The word in which what was counted goes on until it would have been forgotten, if `next` has
    /// the same periods.
    fn recount(&self, word: u64, now: Tick, next: &Self, counts: CarriedCounts) -> Option<u64>;
}

/// [`ChangeQuota::carry_over`] by counts, or else by whole permits.
pub(super) fn over<A: Recount>(this: &A, word: u64, now: Tick, next: &A) -> u64 {
    if this == next {
        return word;
    }
    match this.recount(word, now, next, CarriedCounts::AsIs) {
        Some(counted) => no_more_than(this.available(word, now), counted, now, next),
        None => by_permits(this, word, now, next),
    }
}

/// [`ChangeQuota::carry_scaled`] by counts, or else by whole permits.
pub(super) fn in_part<A: Recount>(this: &A, word: u64, now: Tick, next: &A) -> u64 {
    let (have, most) = (this.available(word, now), this.available(0, now));
    if this == next || have == 0 || most == 0 {
        // There is nothing to be scaled, and a debt stays.
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

/// The word with no more permits than so many: what parts of permits are rounded to is taken.
fn no_more_than<A: Algorithm>(permits: u64, word: u64, now: Tick, next: &A) -> u64 {
    let there = next.available(word, now);
    next.take_up_to(word, now, there.saturating_sub(permits)).0
}

/// How counts go on where the periods stay: as many permits are there as before, or as large a part
/// of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CarriedCounts {
    /// What one limit has more than the other counts as taken, or as not taken.
    AsIs,
    /// Rounded up.
    Scaled,
}

impl CarriedCounts {
    /// The count of the period that counts, of so many of the old limit and the new one.
    pub(super) fn current(self, count: u64, limit: u64, next: u64) -> u64 {
        match self {
            Self::AsIs => (count.saturating_add(next.saturating_sub(limit)))
                .saturating_sub(limit.saturating_sub(next)),
            Self::Scaled => Self::scaled(count, limit, next),
        }
    }

    /// That of a period before it, which only weighs.
    pub(super) fn before(self, count: u64, limit: u64, next: u64) -> u64 {
        match self {
            Self::AsIs => count,
            Self::Scaled => Self::scaled(count, limit, next),
        }
    }

    fn scaled(count: u64, limit: u64, next: u64) -> u64 {
        let scaled = u128::from(count) * u128::from(next);
        u64::try_from(scaled.div_ceil(u128::from(limit.max(1)))).unwrap_or(u64::MAX)
    }
}
