//! How the clock makes units.

use core::num::NonZeroU64;

use super::super::settings::settings;
use crate::clock::Tick;
use crate::outcome::Granted;

/// `speed` counts in parts of a unit of this many bits.
pub(super) const SPEED_BITS: u32 = 60;

/// How units come with time: never fewer at a later tick.
pub(crate) trait Meter {
    /// Whether units come one by one, so that a larger word is idle later.
    const ONE_BY_ONE: bool;

    /// How many units the clock has made until `now`; until the horizon, if that is later.
    fn made(&self, now: Tick) -> u64;

    /// The first tick at which the clock has made `units`, as if there were no horizon.
    fn tick_of(&self, units: u64) -> u64;

    /// The last tick at which units are made.
    fn horizon(&self) -> u64;

    /// Says when the clock will have made as many units as the word says.
    fn resets(&self, granted: Granted, word: u64) -> Granted;
}

/// Units come steadily.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub(crate) struct Steady {
    /// Units a nanosecond, times 2^60.
    pub(super) speed: NonZeroU64,
    /// The last tick at which nothing can wrap.
    pub(super) horizon: u64,
    /// 2^124 / speed, to divide by it: see [`Meter::tick_of`].
    pub(super) inverse: u64,
}

impl Steady {
    /// Whether the clock has made fewer than `units` at `tick`.
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
        // What is cut off here is less than two: the product loses less than one because the
        // inverse is rounded down, and less than one by the shift.
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

/// `ticks` nanoseconds at `speed`, in whole units. The caller knows that it fits.
#[inline]
pub(super) const fn scale(ticks: u64, speed: u64) -> u64 {
    ((ticks as u128 * speed as u128) >> SPEED_BITS) as u64
}
