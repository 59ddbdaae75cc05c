//! The layout of a slotted window's words. Pure functions.
//!
//! ```text
//!  63                               bits + 1   bits                   0
//! ┌─────────────────────────────────┬────────┬─────────────────────────┐
//! │ slot                            │ frozen │ permits in the window   │   the word
//! └─────────────────────────────────┴────────┴─────────────────────────┘
//! ┌─────────────────────────────────┬────────┬─────────────────────────┐
//! │ slot                            │ 0      │ permits in that slot    │   an entry of the ring
//! └─────────────────────────────────┴────────┴─────────────────────────┘
//! ```
//!
//! The window is the word's slot and the slots before it. A count above the limit is debt. Entries
//! compare as integers: first by slot, then by count.
//!
//! **Budget.** `2^bits > limit`, and the slot numbers reach 50 years: there are `2^(63 - bits)` of
//! them.

use core::num::NonZeroU64;
use core::time::Duration;

use crate::algorithm::{Grid, needed, period_of, shortest_period};
use crate::clock::Tick;
use crate::limiter_error::LimiterError;
use crate::quota::{MIN_HORIZON_NS, Quota, QuotaError};

/// The largest number of slots that a window can have.
pub(super) const MAX_SLOTS: usize = 1 << 16;

/// The parameters that every decision reads come first.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct SlotLayout {
    pub(super) limit: u64,
    /// The largest count.
    pub(super) most: u64,
    /// The width of a count, in bits.
    bits: u32,
    pub(super) grid: Grid,
    /// The number of slots in a window.
    pub(super) slots: u64,
}

impl SlotLayout {
    pub(super) fn new(quota: Quota, slots: usize) -> Result<Self, LimiterError> {
        let window = period_of(quota)?;
        quota.check_is_window()?;
        let Some(count) = NonZeroU64::new(slots as u64) else {
            return Err(LimiterError::ZeroSlots);
        };
        if slots > MAX_SLOTS {
            let max = MAX_SLOTS;
            return Err(LimiterError::TooManySlots { slots, max });
        }
        let period = quota.period();
        let Some(slot) = NonZeroU64::new(window.get() / count) else {
            return Err(LimiterError::SlotsUneven { slots, period });
        };
        if !window.get().is_multiple_of(count.get()) {
            return Err(LimiterError::SlotsUneven { slots, period });
        }
        let limit = quota.permits();
        // Enough numbers for the slots of 50 years and two windows.
        let slots_needed = needed(slot.get()) + 2 * count.get();
        let bits = 62 - slots_needed.ilog2();
        let most = (1 << bits) - 1;
        if limit > most {
            let width = u64::BITS - limit.leading_zeros();
            let told = u64::MAX.checked_shr(width + 1).unwrap_or(0);
            let told = told.saturating_sub(2 * count.get());
            let min_period = shortest_period(told).and_then(|slot| slot.checked_mul(slots as u32));
            let longest = Duration::from_nanos(MIN_HORIZON_NS);
            return Err(LimiterError::Quota(QuotaError::LimitTooLarge {
                n: limit,
                max: most,
                period,
                min_period: min_period.filter(|period| *period <= longest),
            }));
        }
        let told = (u64::MAX >> (bits + 1)) - 2 * count.get();
        Ok(Self {
            limit,
            most,
            bits,
            grid: Grid::on_the_clock(slot, told),
            slots: count.get(),
        })
    }

    /// Returns the slot of a word or an entry.
    #[inline(always)]
    pub(super) const fn slot(&self, word: u64) -> u64 {
        word >> (self.bits + 1)
    }

    /// Returns the permits of a word or an entry.
    #[inline(always)]
    pub(super) const fn count(&self, word: u64) -> u64 {
        word & self.most
    }

    #[inline(always)]
    pub(super) const fn is_frozen(&self, word: u64) -> bool {
        word & self.frozen(0) != 0
    }

    /// Returns the same word, frozen.
    #[inline(always)]
    pub(super) const fn frozen(&self, word: u64) -> u64 {
        word | (1 << self.bits)
    }

    /// Returns a word or an entry.
    #[inline(always)]
    pub(super) const fn word(&self, slot: u64, count: u64) -> u64 {
        (slot << (self.bits + 1)) | count
    }

    /// Returns the first slot of the window that ends with this one.
    #[inline(always)]
    pub(super) const fn oldest(&self, slot: u64) -> u64 {
        (slot + 1).saturating_sub(self.slots)
    }

    /// Returns the tick at which permits of this slot count: now, or the slot's beginning if that
    /// is later.
    #[inline(always)]
    pub(super) fn counted_at(&self, slot: u64, now: Tick) -> Tick {
        now.max(Tick::from_nanos(self.grid.start_of(slot)))
    }

    /// Returns the tick at which this slot leaves the window.
    #[inline(always)]
    pub(super) fn end(&self, slot: u64) -> Tick {
        Tick::from_nanos(self.grid.start_of(slot + self.slots))
    }

    /// Returns the same tick as [`end`](Self::end), or `None` if it can't be represented. Returns
    /// `Tick::ZERO` if there is no slot.
    #[inline(always)]
    pub(super) fn reachable_end(&self, slot: Option<u64>) -> Option<Tick> {
        match slot {
            None => Some(Tick::ZERO),
            Some(slot) => self
                .grid
                .reachable_start_of(slot + self.slots)
                .map(Tick::from_nanos),
        }
    }
}
