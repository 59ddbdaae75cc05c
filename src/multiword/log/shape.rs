//! The layout of a log's words. Pure functions.
//!
//! ```text
//!  63                            width                          0
//! ┌─────────────────────────────┬───────────────────────────────┐
//! │ lap                         │ index                         │   a position
//! └─────────────────────────────┴───────────────────────────────┘
//! ┌───┬─────────────────────────────────────────────────┬───────┐
//! │ 0 │ tick                                            │ parity│   an entry: a permit
//! ├───┼─────────────────────────┬───────────────────────┼───────┤
//! │ 1 │ lap                     │ n                     │ parity│   an entry: a claim
//! └───┴─────────────────────────┴───────────────────────┴───────┘
//! ```
//!
//! Permits are entered round the ring, one after the other, so a position counts permits: the lap
//! says how often the ring has gone round. A claim of several permits stands in the entry of its
//! first permit until all of them have been entered.
//!
//! An entry's parity says in which lap it was entered, so an entry of this lap differs from one of
//! the lap before. The first lap has parity 1, which an entry of 0, never used, has not.
//!
//! No entry ever occurs twice at the same index: two permits there are at least a period apart, and
//! two claims are of different laps, which wrap after 2^62 permits or more.

use crate::clock::Tick;

/// The largest number of permits that a log keeps.
pub(super) const MAX_LOG: u64 = 1 << 20;

/// The last tick that an entry can represent, 146 years after the first. Later ones count as this
/// one.
const LAST: u64 = u64::MAX >> 2;

/// The bit of an entry that is a claim.
const CLAIM: u64 = 1 << 63;

/// How many permits are claimed between two moves of the head: the number of entries in a cache
/// line.
const STRIDE: u64 = 8;

/// The layout, precomputed: shifts by a variable would be a large part of a decision's cost.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct LogLayout {
    /// The number of permits that are kept.
    pub(super) limit: u64,
    /// The mask of the index: the lowest bits.
    places: u64,
    /// The time that a permit is kept, in nanoseconds: at most 50 years.
    pub(super) period: u64,
    /// [`STRIDE`], or the limit if that is less.
    pub(super) stride: u64,
}

impl LogLayout {
    pub(super) fn new(limit: u64, period: u64) -> Self {
        let width = u64::BITS - limit.leading_zeros();
        Self {
            limit,
            places: (1 << width) - 1,
            period,
            stride: limit.min(STRIDE),
        }
    }

    #[inline(always)]
    pub(super) const fn index(&self, position: u64) -> u64 {
        position & self.places
    }

    /// Returns the lowest bit of the lap.
    #[inline(always)]
    const fn lap(&self) -> u64 {
        self.places + 1
    }

    /// Returns the position `n` permits later. `n` is at most a lap.
    #[inline(always)]
    pub(super) const fn after(&self, position: u64, n: u64) -> u64 {
        // Laps wrap.
        let after = position.wrapping_add(n);
        match self.index(position) + n < self.limit {
            true => after,
            false => after.wrapping_add(self.lap() - self.limit),
        }
    }

    /// Returns the position one permit earlier.
    #[inline(always)]
    pub(super) const fn before(&self, position: u64) -> u64 {
        let before = position.wrapping_sub(1);
        match self.index(position) {
            0 => before.wrapping_sub(self.lap() - self.limit),
            _ => before,
        }
    }

    /// Returns how many permits were claimed between one position and a later one.
    pub(super) const fn between(&self, from: u64, to: u64) -> u64 {
        let laps = (to & !self.places).wrapping_sub(from & !self.places) / self.lap();
        let whole = laps.saturating_mul(self.limit);
        whole
            .saturating_add(self.index(to))
            .saturating_sub(self.index(from))
    }

    /// Returns the parity of entries in this position's lap.
    #[inline(always)]
    const fn parity(&self, position: u64) -> u64 {
        (position & self.lap() == 0) as u64
    }

    /// Returns whether this entry is of the position's own lap, and not of the one before.
    #[inline(always)]
    pub(super) const fn is_filled(&self, position: u64, entry: u64) -> bool {
        entry & 1 == self.parity(position)
    }

    /// Returns the entry for a permit at this tick.
    #[inline(always)]
    pub(super) const fn permit(&self, position: u64, tick: u64) -> u64 {
        (tick << 1) | self.parity(position)
    }

    /// Returns the entry for a claim of `n` permits.
    pub(super) const fn claim(&self, position: u64, n: u64) -> u64 {
        // The highest bit of the lap does not fit.
        CLAIM | ((position & !self.places) << 1) | (n << 1) | self.parity(position)
    }

    /// Returns the number of permits of a claim.
    pub(super) const fn claimed(&self, entry: u64) -> u64 {
        (entry >> 1) & self.places
    }

    /// Returns the first tick at which an entry no longer counts.
    #[inline(always)]
    pub(super) const fn expiry(&self, entry: u64) -> u64 {
        match entry {
            0 => 0,
            _ => tick_of(entry) + self.period,
        }
    }
}

/// Returns an entry's parity, and whether it is a claim.
#[inline(always)]
pub(super) const fn kind_of(entry: u64) -> u64 {
    entry & (CLAIM | 1)
}

/// Returns whether an entry is a claim, and not a permit.
#[inline(always)]
pub(super) const fn is_claim(entry: u64) -> bool {
    entry & CLAIM != 0
}

/// Returns the tick at which an entry's permit counts.
#[inline(always)]
pub(super) const fn tick_of(entry: u64) -> u64 {
    entry >> 1
}

/// Returns the tick, or the last representable one if it is later.
#[inline(always)]
pub(super) fn told(now: Tick) -> u64 {
    now.as_nanos().min(LAST)
}

/// Returns whether the log can represent this tick.
#[inline(always)]
pub(super) const fn is_told(tick: u64) -> bool {
    tick <= LAST
}

#[cfg(test)]
mod tests {
    use super::{LogLayout, MAX_LOG, is_claim};

    #[test]
    fn positions_go_round_the_ring_and_claims_differ_in_each_lap() {
        for limit in [2, 3, 8, 1000, MAX_LOG] {
            let shape = LogLayout::new(limit, 1);
            let laps = [0, 1, 2, 3].map(|lap| lap * (shape.places + 1));
            for (lap, next) in laps.into_iter().zip([1, 2, 3]) {
                let last = lap + limit - 1;
                assert_eq!(shape.after(last, 1), next * (shape.places + 1));
                assert_eq!(shape.before(shape.after(last, 1)), last);
                assert_eq!(shape.between(lap, shape.after(lap, limit)), limit);
                for position in [lap, last] {
                    assert_eq!(
                        shape.before(shape.after(position, limit)),
                        shape.after(position, limit - 1)
                    );
                    for n in [2, limit] {
                        let claim = shape.claim(position, n);
                        assert!(is_claim(claim) && shape.is_filled(position, claim));
                        assert_eq!(shape.claimed(claim), n);
                        let later = shape.after(position, limit);
                        assert!(!shape.is_filled(later, claim));
                        assert_ne!(shape.claim(shape.after(later, limit), n), claim);
                    }
                    let permit = shape.permit(position, super::LAST);
                    assert!(!is_claim(permit) && shape.is_filled(position, permit));
                    assert_eq!(super::tick_of(permit), super::LAST);
                }
            }
        }
    }
}
