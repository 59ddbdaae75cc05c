//! Windows that lie side by side on the clock.
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
//! The count is as wide as 50 years of windows leave room for. What it holds above the limit is
//! debt.
//!
//! A word of an older window is over, and its count is not read. Windows are numbered from the
//! clock's start and not modulo anything, so old counts can't come back to life. A word of a later
//! window was written by somebody with a later tick: the caller is counted in that one.
//!
//! **Budget.** `(limit + largest debt) * (windows in 50 years) < 2^64`: `bits` is the largest width
//! for which `2^(64 - bits)` windows last 50 years, and `limit` must be below `2^bits`. What lies
//! between is the largest debt.

use core::num::NonZeroU64;
use core::time::Duration;

use super::super::alignment::Alignment;
use super::super::grid::{Grid, Layout, period_of};
use super::super::settings::settings;
use super::super::{Algorithm, Debt, Forecast, Gauge, GiveBack, Level, Rebase};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::{ConfigError, Quota};

/// What every decision reads comes first, so that it shares a cache line with the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub(super) struct Aligned {
    limit: NonZeroU64,
    /// The largest count.
    most: u64,
    /// How wide the count is.
    bits: u32,
    grid: Grid,
}

impl Aligned {
    /// # Errors
    ///
    /// [`ConfigError`] if the limit is 0 or does not fit.
    pub(super) const fn new(quota: Quota) -> Result<Self, ConfigError> {
        let Layout { bits, windows } = match Layout::new(quota, 1) {
            Ok(layout) => layout,
            Err(error) => return Err(error),
        };
        let (Some(limit), Ok(period)) = (NonZeroU64::new(quota.permits()), period_of(quota)) else {
            return Err(ConfigError::ZeroPermits);
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

    /// Whether such windows can be made.
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

    /// The word as it stands now: the count of its window, if that is not over.
    #[inline(always)]
    fn settled(&self, word: u64, now: Tick) -> u64 {
        match self.grid.elapsed_in(self.window(word), now) {
            Some(_) => word,
            None => self.elsewhere(word, now),
        }
    }

    /// A word of another window than the clock's.
    #[cold]
    #[inline(never)]
    fn elsewhere(&self, word: u64, now: Tick) -> u64 {
        let (current, window) = (self.grid.place(now).index, self.window(word));
        if current > window {
            current << self.bits
        } else if window > self.grid.last_index() {
            // No window of ours is the last number, but a word may be anything: it is full, so that
            // it can't become all ones.
            word | self.most
        } else {
            word
        }
    }

    /// When permits count: now, or at the beginning of a window that is ahead.
    #[inline(always)]
    fn counted_at(&self, settled: u64, now: Tick) -> Tick {
        now.max(Tick::from_nanos(self.grid.start_of(self.window(settled))))
    }

    /// The first tick of the next window, if the clock gets there.
    #[inline(always)]
    fn end(&self, settled: u64) -> Option<Tick> {
        let start = self.grid.reachable_start_of(self.window(settled) + 1)?;
        Some(Tick::from_nanos(start))
    }

    #[inline]
    fn give_back(&self, word: u64, settled: u64, n: u64) -> (u64, u64) {
        match n.min(settled & self.most) {
            0 => (word, 0),
            n => (settled - n, n),
        }
    }

    /// The decision on a word that stands as `settled` now.
    #[inline(always)]
    fn decide(&self, word: u64, settled: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        if n > self.limit.get() {
            return Err(Denied::never(n, self.limit.get()));
        }
        let taken = (settled & self.most) + n;
        if taken > self.limit.get() {
            return Err(match self.end(settled) {
                Some(end) => Denied::later(n, end.saturating_since(now)),
                None => Denied::stuck(n),
            });
        }
        Ok(self.granted(word, settled, now, n, self.limit.get() - taken))
    }

    /// The next word and the grant of `n` permits, after which so many remain.
    #[inline(always)]
    fn granted(&self, word: u64, settled: u64, now: Tick, n: u64, room: u64) -> (u64, Granted) {
        let next = if n == 0 { word } else { settled + n };
        let granted = Granted::new(n, self.counted_at(settled, now))
            .with_room(room, NonZeroU64::MIN)
            .with_mark(next);
        if (settled & self.most) + n == 0 {
            return (next, granted);
        }
        let end = self.grid.start_of(self.window(settled) + 1);
        (next, granted.with_reset_at(Tick::from_nanos(end)))
    }
}

impl Algorithm for Aligned {
    #[inline(always)]
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        self.decide(word, self.settled(word, now), now, n)
    }

    #[inline(always)]
    fn short_step(&self, word: u64, now: Tick, n: u64) -> Option<Result<(u64, Granted), Denied>> {
        self.grid.elapsed_in(self.window(word), now)?;
        Some(self.decide(word, word, now, n))
    }

    #[inline]
    fn available(&self, word: u64, now: Tick) -> u64 {
        let taken = self.settled(word, now) & self.most;
        self.limit.get().saturating_sub(taken)
    }

    #[inline]
    fn is_idle(&self, word: u64, now: Tick) -> bool {
        let settled = self.settled(word, now);
        settled & self.most == 0 && self.window(settled) <= self.grid.place(now).index
    }

    #[inline]
    fn take_up_to(&self, word: u64, now: Tick, n: u64) -> (u64, Granted) {
        let settled = self.settled(word, now);
        let room = self.limit.get().saturating_sub(settled & self.most);
        let n = n.min(room);
        self.granted(word, settled, now, n, room - n)
    }
}

impl GiveBack for Aligned {
    #[inline]
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        let settled = self.settled(word, now);
        // Its window is over, for the clock or for the word.
        if self.window(granted.mark()) != self.window(settled) {
            return (word, 0);
        }
        self.give_back(word, settled, granted.n())
    }

    #[inline]
    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        self.give_back(word, self.settled(word, now), n)
    }
}

impl Debt for Aligned {
    #[inline]
    fn charge(&self, word: u64, now: Tick, n: u64) -> (u64, Charged) {
        let settled = self.settled(word, now);
        let n = n.min(self.most - (settled & self.most));
        let next = if n == 0 { word } else { settled + n };
        let debt = ((settled & self.most) + n).saturating_sub(self.limit.get());
        let clear_after = match self.end(settled) {
            _ if debt == 0 => Duration::ZERO,
            Some(end) => end.saturating_since(now),
            None => Duration::MAX,
        };
        let charged = Charged::new(n, self.counted_at(settled, now));
        (next, charged.with_debt(debt, clear_after))
    }
}

impl Forecast for Aligned {
    #[inline]
    fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick> {
        if n > self.limit.get() {
            return None;
        }
        let settled = self.settled(word, now);
        if (settled & self.most) + n <= self.limit.get() {
            return Some(now);
        }
        self.end(settled)
    }
}

impl Rebase for Aligned {
    /// What is counted now is counted in the window of the other clock, or as many windows ahead;
    /// in the next one, if that would end earlier than the old one. So it stays counted for less
    /// than a window longer.
    #[inline]
    fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64 {
        let settled = self.settled(word, from);
        let (index, taken) = (self.window(settled), settled & self.most);
        let ahead = index.saturating_sub(self.grid.place(from).index);
        let later = ahead.saturating_add(self.grid.ends_earlier(from, to).into());
        if from == to {
            word
        } else if taken == 0 && ahead == 0 {
            0
        } else {
            let index = self.grid.place(to).index.saturating_add(later);
            (index.min(self.grid.last_index()) << self.bits) | taken
        }
    }
}

impl Gauge for Aligned {
    #[inline]
    fn level(&self, word: u64, now: Tick) -> Level {
        Level::of_permits(self.settled(word, now) & self.most)
    }
}

settings!(Aligned, 8, if Aligned::fits; limit most bits grid);
