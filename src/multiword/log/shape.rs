//! The layout of a log's words. Pure functions.
//!
//! ```text
//!  63                       2 width         width                     0
//! ┌─────────────────────────┬───────────────┬─────────────────────────┐
//! │ lap                     │ last claim    │ index                   │   the state
//! └─────────────────────────┴───────────────┴─────────────────────────┘
//! ┌───────────────────────────────────────────────────────────┬───────┐
//! │ tick                                                      │ parity│   an entry
//! └───────────────────────────────────────────────────────────┴───────┘
//! ```
//!
//! Permits are entered round the ring, one after the other. The state has three fields. The lap
//! (how often the ring has gone round) and the index count the permits that have been claimed. The
//! third field is how many of them the last claim took, which is 0 only in a new log.
//!
//! The laps wrap: after 2^42 permits with the largest log, later with smaller ones. A thread that
//! stops between its load and its exchange, for exactly that many permits, would not notice.
//!
//! An entry's parity says in which lap it was entered. The first lap has parity 1, so an entry of
//! this lap differs from one of the lap before, and an entry of 0 has never been used. Ticks never
//! decrease along the ring, and two entries at the same index are at least a period apart, so no
//! entry ever occurs twice.

use crate::clock::Tick;

/// The largest number of permits that a log keeps.
pub(super) const MAX_LOG: u64 = 1 << 20;

/// The last tick that an entry can represent. Later ones count as this one.
const LAST: u64 = u64::MAX >> 1;

/// The layout, precomputed: shifts by a variable would be a large part of a decision's cost.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct LogLayout {
    /// The number of permits that are kept.
    pub(super) limit: u64,
    /// The mask of the index: the lowest bits.
    places: u64,
    /// The lowest bit of the lap.
    lap: u64,
    /// The time that a permit is kept, in nanoseconds: at most 50 years.
    pub(super) period: u64,
}

/// An index in the ring, and the parity of what is entered there.
#[derive(Debug, Clone, Copy)]
pub(super) struct RingPosition {
    pub(super) index: u64,
    parity: u64,
}

impl LogLayout {
    pub(super) const fn new(limit: u64, period: u64) -> Self {
        let width = u64::BITS - limit.leading_zeros();
        Self {
            limit,
            places: (1 << width) - 1,
            lap: 1 << (2 * width),
            period,
        }
    }

    /// Returns the number of permits of the last claim. It is 0 only in a new log.
    pub(super) const fn last(&self, state: u64) -> u64 {
        (state & (self.lap - 1)) >> self.places.count_ones()
    }

    #[inline(always)]
    const fn index(&self, state: u64) -> u64 {
        state & self.places
    }

    /// Returns the state after `n` more permits, which are at most a lap.
    #[inline(always)]
    pub(super) const fn after(&self, state: u64, n: u64) -> u64 {
        let index = self.index(state) + n;
        let laps = state & !(self.lap - 1);
        let last = n * (self.places + 1);
        if index < self.limit {
            laps | last | index
        } else {
            // Laps wrap.
            laps.wrapping_add(self.lap) | last | (index - self.limit)
        }
    }

    /// Returns how many permits were claimed between one state and a later one.
    pub(super) const fn between(&self, from: u64, to: u64) -> u64 {
        let laps = (to & !(self.lap - 1)).wrapping_sub(from & !(self.lap - 1)) / self.lap;
        let whole = laps.saturating_mul(self.limit);
        whole
            .saturating_add(self.index(to))
            .saturating_sub(self.index(from))
    }

    /// Returns the parity of entries in this state's lap.
    #[inline(always)]
    const fn parity(&self, state: u64) -> u64 {
        (state & self.lap == 0) as u64
    }

    /// Returns the position of the `i`-th permit to be claimed next, counted from 0. `i` is less
    /// than a lap.
    #[inline(always)]
    pub(super) const fn ahead(&self, state: u64, i: u64) -> RingPosition {
        let (index, parity) = (self.index(state) + i, self.parity(state));
        if index < self.limit {
            RingPosition { index, parity }
        } else {
            RingPosition {
                index: index - self.limit,
                parity: parity ^ 1,
            }
        }
    }

    /// Returns the position of the `i`-th newest permit that was claimed. The newest has `i = 1`,
    /// and `i` is at most a lap.
    #[inline(always)]
    pub(super) const fn behind(&self, state: u64, i: u64) -> RingPosition {
        let (index, parity) = (self.index(state), self.parity(state));
        if i <= index {
            RingPosition {
                index: index - i,
                parity,
            }
        } else {
            RingPosition {
                index: index + self.limit - i,
                parity: parity ^ 1,
            }
        }
    }

    /// Returns the position of the permit to be claimed next.
    #[inline(always)]
    pub(super) const fn next(&self, state: u64) -> RingPosition {
        RingPosition {
            index: self.index(state),
            parity: self.parity(state),
        }
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

impl RingPosition {
    /// Returns whether this entry is of the position's own lap, and not of the one before.
    #[inline(always)]
    pub(super) const fn is_filled(&self, entry: u64) -> bool {
        entry & 1 == self.parity && entry != 0
    }

    /// Returns the entry for a permit at this tick.
    #[inline(always)]
    pub(super) const fn entry(&self, tick: u64) -> u64 {
        (tick << 1) | self.parity
    }
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
