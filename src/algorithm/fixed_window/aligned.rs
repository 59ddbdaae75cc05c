//! Fixed windows that follow each other on the clock.
//!
//! # The word
//!
//! ```text
//!  63                                   bits                           0
//! ┌──────────────────────────────────────┬─────────────────────────────┐
//! │ window (64 - bits bits)              │ permits taken (bits)        │
//! └──────────────────────────────────────┴─────────────────────────────┘
//! ```
//!
//! The window numbers take enough bits for 50 years, and the count takes all others. A count above
//! the limit is debt.
//!
//! If the word is in an older window, that window is over and its count is not read. Windows are
//! numbered from the clock's start and never wrap, so an old count can't become current again. If
//! the word is in a later window, a caller with a later tick wrote it, and this caller's permits
//! count in that window.
//!
//! **Budget.** `(limit + largest debt) * (windows in 50 years) < 2^64`. `bits` is the largest width
//! that leaves enough window numbers for 50 years, and `limit` must be below `2^bits`. The counts
//! above `limit` are for debt.

use core::num::NonZeroU64;

use super::super::alignment::Alignment;
use super::super::counting::{Seen, WindowCount};
use super::super::grid::{Grid, Layout, period_of};
use super::super::settings::settings;
use crate::clock::Tick;
use crate::outcome::Granted;
use crate::quota::{Quota, QuotaError};

/// Windows aligned to the clock. The fields that every decision reads come first, so that they
/// share a cache line with the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub(super) struct Aligned {
    limit: NonZeroU64,
    /// The largest count.
    most: u64,
    /// The width of the count.
    bits: u32,
    grid: Grid,
}

impl Aligned {
    /// Creates windows that begin at the clock's tick 0.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the limit is 0 or does not fit.
    pub(super) const fn new(quota: Quota) -> Result<Self, QuotaError> {
        let Layout { bits, windows } = match Layout::new(quota, 1) {
            Ok(layout) => layout,
            Err(error) => return Err(error),
        };
        let (Some(limit), Ok(period)) = (NonZeroU64::new(quota.permits()), period_of(quota)) else {
            return Err(QuotaError::ZeroPermits);
        };
        Ok(Self {
            limit,
            most: (1 << bits) - 1,
            bits,
            grid: Grid::new(period, windows, Alignment::CLOCK),
        })
    }

    pub(super) const fn aligned(self, alignment: Alignment) -> Self {
        Self {
            grid: self.grid.aligned(alignment),
            ..self
        }
    }

    pub(super) const fn largest_debt(&self) -> u64 {
        self.most - self.limit.get()
    }

    /// Returns whether a constructor could have made these windows.
    fn fits(&self) -> bool {
        (1..64).contains(&self.bits)
            && self.grid.fits_beside(self.bits)
            && self.most == (1 << self.bits) - 1
            && self.limit.get() <= self.most
    }

    #[inline(always)]
    const fn window(&self, word: u64) -> u64 {
        word >> self.bits
    }

    /// Brings forward a word that is not in the current window.
    #[cold]
    #[inline(never)]
    fn elsewhere(&self, word: u64, now: Tick) -> u64 {
        let (current, window) = (self.grid.place(now).index, self.window(word));
        if current > window {
            current << self.bits
        } else if window > self.grid.last_index() {
            // The algorithm never writes the last number, but a word from elsewhere may hold it.
            // Treat such a word as full, so that it can't become all ones.
            word | self.most
        } else {
            word
        }
    }

    #[inline(always)]
    const fn seen(&self, word: u64) -> Seen {
        let (count, more) = (word & self.most, ());
        Seen { word, count, more }
    }
}

impl WindowCount for Aligned {
    type More = ();

    #[inline(always)]
    fn see(&self, word: u64, now: Tick) -> Seen {
        match self.see_fast(word, now) {
            Some(seen) => seen,
            None => self.seen(self.elsewhere(word, now)),
        }
    }

    #[inline(always)]
    fn see_fast(&self, word: u64, now: Tick) -> Option<Seen> {
        self.grid.elapsed_in(self.window(word), now)?;
        Some(self.seen(word))
    }

    #[inline(always)]
    fn limit(&self) -> NonZeroU64 {
        self.limit
    }

    #[inline(always)]
    fn most(&self, _seen: Seen) -> u64 {
        self.most
    }

    /// Returns the first tick of the next window.
    #[inline(always)]
    fn fits_at(&self, seen: Seen, _now: Tick, _n: u64) -> Option<Tick> {
        let start = self.grid.reachable_start_of(self.window(seen.word) + 1)?;
        Some(Tick::from_nanos(start))
    }

    #[inline(always)]
    fn forgotten_at(&self, seen: Seen) -> Option<Tick> {
        let end = self.grid.start_of(self.window(seen.word) + 1);
        (seen.count > 0).then_some(Tick::from_nanos(end))
    }

    #[inline(always)]
    fn counted_at(&self, _word: u64, seen: Seen, now: Tick) -> Tick {
        now.max(Tick::from_nanos(self.grid.start_of(self.window(seen.word))))
    }

    /// Returns `None` if the grant's window is over, by the clock or because the word is in a later
    /// window.
    #[inline]
    fn place_of(&self, seen: Seen, granted: &Granted) -> Option<u64> {
        let is_same = self.window(granted.mark()) == self.window(seen.word);
        is_same.then_some(granted.mark() & self.most)
    }

    #[inline]
    fn is_idle(&self, _word: u64, seen: Seen, now: Tick) -> bool {
        seen.count == 0 && self.window(seen.word) <= self.grid.place(now).index
    }

    /// Moves the count to the other clock's current window, or to one that is as many windows ahead
    /// of it as before. If that window would end earlier than the old one, the count moves one
    /// window further. So permits stay counted for less than one window longer.
    #[inline]
    fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64 {
        let seen = self.see(word, from);
        let index = self.window(seen.word);
        let ahead = index.saturating_sub(self.grid.place(from).index);
        let later = ahead.saturating_add(self.grid.ends_earlier(from, to).into());
        if from == to {
            word
        } else if seen.count == 0 && ahead == 0 {
            0
        } else {
            let index = self.grid.place(to).index.saturating_add(later);
            (index.min(self.grid.last_index()) << self.bits) | seen.count
        }
    }
}

settings!(Aligned, 8, if Aligned::fits; limit most bits grid);
