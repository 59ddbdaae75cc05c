//! A period that begins when a permit is taken while no permit is counted.
//! `FixedWindow::opened_by_first_hit` and `Intervals::greedy` use it.
//!
//! # The word
//!
//! ```text
//!  63                                   bits                           0
//! ┌──────────────────────────────────────┬─────────────────────────────┐
//! │ end of the period, in parts of one   │ permits taken               │
//! │ (64 - bits bits)                     │ (bits for twice the limit)  │
//! └──────────────────────────────────────┴─────────────────────────────┘
//! ```
//!
//! A period is divided into `2^shift` parts, as many as the word can count. The length of a part is
//! the quantum. By `now`, exactly `floor(now * 2^shift / period)` parts have passed. A period
//! begins at the next whole part. So it ends at least one period after the permit that began it,
//! and at most one quantum later than that. Each further period follows the one before it without a
//! gap, and no error accumulates. A period that ends at 0 is always over, so the word 0 is fresh.
//!
//! At the end of each period a fixed number of permits is refilled, or all of them, including debt.
//! Permits taken above the limit are debt, which can be as large as the limit.
//!
//! **Budget.** `2^bits * parts in 50 years < 2^64`, where `2^bits > 2 * limit`. A period has at
//! least 64 parts, unless a part would then be shorter than a nanosecond.

mod verbs;

use core::num::NonZeroU64;
use core::time::Duration;

use super::division::Divisor;
use super::grid::{needed, shortest_period};
use super::settings::settings;
use crate::quota::MIN_HORIZON_NS;

/// A period with fewer than `2^MIN_SHIFT` parts is too coarse.
const MIN_SHIFT: u32 = 6;

/// A period that is opened by the first permit. The fields that every decision reads come first, so
/// that they share a cache line with the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub(super) struct FirstHit {
    /// The most permits that can be taken at once.
    limit: NonZeroU64,
    /// The largest count.
    most: u64,
    /// The length of a part: whole nanoseconds, and the fraction in units of 2^-64 ns.
    quantum: (u64, u64),
    /// The width of the count.
    bits: u32,
    /// A period has `2^shift` parts.
    shift: u32,
    period: Divisor,
    /// How many permits are refilled at the end of each period. [`u64::MAX`] means all.
    back: NonZeroU64,
    /// The last tick. Later ticks count as this one.
    horizon: u64,
    /// How many permits a new limiter lacks.
    deficit: u64,
}

impl FirstHit {
    /// Creates a period with `limit` permits. `back` of them are refilled at the end of each
    /// period, and `initial` are available at first.
    ///
    /// # Errors
    ///
    /// The largest limit that fits this period, and the shortest period that this limit fits.
    pub(super) const fn new(
        period: NonZeroU64,
        limit: NonZeroU64,
        back: NonZeroU64,
        initial: u64,
    ) -> Result<Self, (u64, Option<Duration>)> {
        let (finest, windows) = (period.ilog2(), needed(period.get()));
        let coarsest = if finest < MIN_SHIFT {
            finest
        } else {
            MIN_SHIFT
        };
        // Ends are numbered from 0. The last two numbers are unused, so that the word is never all
        // ones.
        let ends_needed = ((windows as u128) << coarsest) + 3;
        let most_bits = (u64::MAX as u128 / ends_needed).checked_ilog2();
        let bits = match most_bits {
            Some(most) if limit.get() < 1 << 62 => {
                let bits = 64 - (2 * limit.get()).leading_zeros();
                if bits > most {
                    return Err(Self::what_fits(most, limit.get()));
                }
                bits
            }
            Some(most) => return Err(Self::what_fits(most, limit.get())),
            None => return Err((0, None)),
        };
        let ends = u64::MAX >> bits;
        let shift = match ((ends - 2) / windows).checked_ilog2() {
            Some(fits) if fits < finest => fits,
            Some(_) => finest,
            None => return Err((0, None)),
        };
        let quantum = ((period.get() as u128) << 64) >> shift;
        let period = Divisor::new(period, shift);
        // A period that begins at the horizon still ends before the last two ends.
        let last = period.first_with(ends - 2 - (1 << shift), shift) - 1;
        Ok(Self {
            limit,
            most: (1 << bits) - 1,
            quantum: ((quantum >> 64) as u64, quantum as u64),
            bits,
            shift,
            period,
            back,
            horizon: if last < u64::MAX { last } else { u64::MAX - 1 },
            deficit: limit.get().saturating_sub(initial),
        })
    }

    const fn what_fits(most_bits: u32, limit: u64) -> (u64, Option<Duration>) {
        let max = ((1_u64 << most_bits) - 1) / 2;
        if limit >= 1 << 56 {
            return (max, None);
        }
        let ends = u64::MAX >> (64 - (2 * limit).leading_zeros());
        (max, shortest_period((ends - 2) >> MIN_SHIFT))
    }

    /// Returns whether a constructor could have made this period.
    fn fits(&self) -> bool {
        let period = self.period.period();
        let Some(initial) = self.limit.get().checked_sub(self.deficit) else {
            return false;
        };
        period.get() <= MIN_HORIZON_NS
            && Self::new(period, self.limit, self.back, initial).is_ok_and(|made| made == *self)
    }

    /// Returns the length of a part, rounded up to a nanosecond. Beginnings of periods are rounded
    /// up to a multiple of the part.
    pub(super) const fn quantum(&self) -> Duration {
        Duration::from_nanos(self.first_with(1))
    }

    /// Returns how many permits above the limit can be counted.
    pub(super) const fn largest_debt(&self) -> u64 {
        self.most - self.limit.get()
    }

    /// Returns the first tick at which this many parts have passed.
    #[inline]
    const fn first_with(&self, parts: u64) -> u64 {
        self.period.first_with(parts, self.shift)
    }

    /// Returns the number of parts per period.
    #[inline(always)]
    const fn parts(&self) -> u64 {
        1 << self.shift
    }
}

settings!(FirstHit, 11, if FirstHit::fits; limit most quantum bits shift period back horizon deficit);
