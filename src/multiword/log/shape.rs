//! What the words of a log mean. Pure.
//!
//! ```text
//!  63                       2 width         width                     0
//! ┌─────────────────────────┬───────────────┬─────────────────────────┐
//! │ lap                     │ last claim    │ place                   │   the state
//! └─────────────────────────┴───────────────┴─────────────────────────┘
//! ┌───────────────────────────────────────────────────────────┬───────┐
//! │ tick                                                      │ parity│   an entry
//! └───────────────────────────────────────────────────────────┴───────┘
//! ```
//!
//! Permits are entered round the ring, one after the other. The state says how many have been
//! claimed: so many laps of the ring and so many places, and how many of them in the last claim. (0
//! claimed is a fresh log.) Its laps wrap: with the largest log after 2^42 permits, with smaller
//! ones later. A thread that is stopped for exactly so many between its look and its exchange would
//! not notice.
//!
//! An entry's parity is that of the lap in which it was entered, and 1 in the first: so an entry of
//! this lap can be told from one of the lap before. An entry of 0 has never been used. Ticks never
//! fall along the ring, and two entries of one place are at least a period apart: so no entry ever
//! comes again.

use crate::clock::Tick;

/// The most permits that a log keeps.
pub(super) const MAX_LOG: u64 = 1 << 20;

/// The last tick that is told from later ones.
const LAST: u64 = u64::MAX >> 1;

/// Nothing of it is computed anew for a decision, in which shifts by a variable would be a good
/// part.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct LogLayout {
    /// How many permits are kept.
    pub(super) limit: u64,
    /// The bits of the place: the lowest ones.
    places: u64,
    /// The lowest bit of the lap.
    lap: u64,
    /// How long a permit is kept, in nanoseconds: at most 50 years.
    pub(super) period: u64,
}

/// A place in the ring, and the parity of what is entered there.
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

    /// The permits of the last claim; none only of a fresh log.
    pub(super) const fn last(&self, state: u64) -> u64 {
        (state & (self.lap - 1)) >> self.places.count_ones()
    }

    #[inline(always)]
    const fn index(&self, state: u64) -> u64 {
        state & self.places
    }

    /// The state after `n` more; at most a lap.
    #[inline(always)]
    pub(super) const fn after(&self, state: u64, n: u64) -> u64 {
        let index = self.index(state) + n;
        let laps = state & !(self.lap - 1);
        let last = n * (self.places + 1);
        if index < self.limit {
            laps | last | index
        } else {
            // After the last lap that fits comes the first one again.
            laps.wrapping_add(self.lap) | last | (index - self.limit)
        }
    }

    /// How many permits were claimed from one state to a later one.
    pub(super) const fn between(&self, from: u64, to: u64) -> u64 {
        let laps = (to & !(self.lap - 1)).wrapping_sub(from & !(self.lap - 1)) / self.lap;
        let whole = laps.saturating_mul(self.limit);
        whole
            .saturating_add(self.index(to))
            .saturating_sub(self.index(from))
    }

    /// The parity of what is entered in the lap that the state is in.
    #[inline(always)]
    const fn parity(&self, state: u64) -> u64 {
        (state & self.lap == 0) as u64
    }

    /// The place of the `i`-th permit that is claimed next; of less than a lap.
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

    /// The place of the `i`-th last permit that was claimed; 1 is the last, and `i` is at most a
    /// lap.
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

    /// The place of the permit that is claimed next.
    #[inline(always)]
    pub(super) const fn next(&self, state: u64) -> RingPosition {
        RingPosition {
            index: self.index(state),
            parity: self.parity(state),
        }
    }

    /// The first tick at which an entry counts no more.
    #[inline(always)]
    pub(super) const fn expiry(&self, entry: u64) -> u64 {
        match entry {
            0 => 0,
            _ => tick_of(entry) + self.period,
        }
    }
}

impl RingPosition {
    /// Whether this is the entry of the lap that was meant, and not of the one before.
    #[inline(always)]
    pub(super) const fn is_filled(&self, entry: u64) -> bool {
        entry & 1 == self.parity && entry != 0
    }

    /// The entry of a permit at this tick.
    #[inline(always)]
    pub(super) const fn entry(&self, tick: u64) -> u64 {
        (tick << 1) | self.parity
    }
}

/// When an entry's permit was counted.
#[inline(always)]
pub(super) const fn tick_of(entry: u64) -> u64 {
    entry >> 1
}

/// The tick as far as it can be told; `None` at the end of time, where a log stands still.
#[inline(always)]
pub(super) fn told(now: Tick) -> u64 {
    now.as_nanos().min(LAST)
}

/// Whether the clock gets there, as a log tells it.
#[inline(always)]
pub(super) const fn is_told(tick: u64) -> bool {
    tick <= LAST
}
