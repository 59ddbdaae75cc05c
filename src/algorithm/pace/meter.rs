//! How the clock makes units over time.

use core::num::NonZeroU64;

use super::super::settings::settings;
use crate::clock::Tick;
use crate::outcome::Granted;

/// The number of fractional bits of `speed`.
pub(super) const SPEED_BITS: u32 = 60;

/// How many units the clock has made by each tick. The number never decreases over time.
pub(crate) trait Meter {
    /// Whether units come one by one, so that a larger word becomes idle later.
    const ONE_BY_ONE: bool;

    /// Returns how many units the clock has made by `now`, or by the horizon if `now` is later.
    fn made(&self, now: Tick) -> u64;

    /// Returns the first tick at which the clock has made `units`, as if there were no horizon.
    fn tick_of(&self, units: u64) -> u64;

    /// Returns the last tick at which units are made.
    fn horizon(&self) -> u64;

    /// Adds to the grant when the clock will have made as many units as `word`.
    fn resets(&self, granted: Granted, word: u64) -> Granted;
}

/// A meter that makes units at a steady speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub(crate) struct Steady {
    /// Units per nanosecond, times 2^60.
    pub(super) speed: NonZeroU64,
    /// The last tick at which nothing can wrap.
    pub(super) horizon: u64,
    /// 2^124 / speed, to divide by the speed: see [`Meter::tick_of`].
    pub(super) inverse: u64,
}

impl Steady {
    /// Returns whether the clock has made fewer than `units` at `tick`.
    #[inline]
    fn is_short(&self, tick: u64, units: u64) -> bool {
        u128::from(tick) * u128::from(self.speed.get()) < u128::from(units) << SPEED_BITS
    }
}

impl Meter for Steady {
    const ONE_BY_ONE: bool = true;

    #[inline(always)]
    fn made(&self, now: Tick) -> u64 {
        scale(now.as_nanos().min(self.horizon), self.speed.get())
    }

    #[inline]
    fn tick_of(&self, units: u64) -> u64 {
        // The product is too small by less than two: rounding down the inverse costs less than one,
        // and the shift costs less than one.
        let mut tick = ((u128::from(units) * u128::from(self.inverse)) >> 64) as u64;
        tick += u64::from(self.is_short(tick, units));
        tick += u64::from(self.is_short(tick, units));
        tick
    }

    #[inline(always)]
    fn horizon(&self) -> u64 {
        self.horizon
    }

    #[inline(always)]
    fn resets(&self, granted: Granted, word: u64) -> Granted {
        granted.with_reset_units(word, self.speed)
    }
}

settings!(Steady, 3; speed horizon inverse);

/// Returns the whole units that `ticks` nanoseconds make at `speed`. The caller ensures that the
/// result fits.
#[inline]
pub(super) const fn scale(ticks: u64, speed: u64) -> u64 {
    ((ticks as u128 * speed as u128) >> SPEED_BITS) as u64
}
