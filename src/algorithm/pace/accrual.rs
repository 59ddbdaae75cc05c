//! Accruals: how many units accrue over time.

use core::num::NonZeroU64;

use super::super::settings::settings;
use crate::clock::Tick;
use crate::outcome::Granted;

/// The number of fractional bits of `speed`.
pub(super) const SPEED_BITS: u32 = 60;

/// The number of units that have accrued by each tick. It never decreases over time.
pub(crate) trait Accrual {
    /// Whether units accrue one by one, so that a larger word becomes idle later.
    const ONE_BY_ONE: bool;

    /// Returns how many units have accrued by `now`, or by the horizon if `now` is later.
    fn accrued(&self, now: Tick) -> u64;

    /// Returns the first tick at which this many units have accrued, as if there were no horizon.
    fn tick_of(&self, units: u64) -> u64;

    /// Returns the last tick at which units accrue.
    fn horizon(&self) -> u64;

    /// Sets when the limiter will be idle: once as many units have accrued as `word` has.
    fn with_idle_at(&self, granted: Granted, word: u64) -> Granted;
}

/// An accrual by which units accrue at a steady speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub(crate) struct Steady {
    /// Units per nanosecond, times 2^60.
    pub(super) speed: NonZeroU64,
    /// The last tick at which nothing can wrap.
    pub(super) horizon: u64,
    /// 2^124 / speed, to divide by the speed: see [`Accrual::tick_of`].
    pub(super) inverse: u64,
}

impl Steady {
    /// Returns whether fewer than `units` have accrued at `tick`.
    #[inline]
    fn is_short(&self, tick: u64, units: u64) -> bool {
        u128::from(tick) * u128::from(self.speed.get()) < u128::from(units) << SPEED_BITS
    }
}

impl Accrual for Steady {
    const ONE_BY_ONE: bool = true;

    #[inline(always)]
    fn accrued(&self, now: Tick) -> u64 {
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
    fn with_idle_at(&self, granted: Granted, word: u64) -> Granted {
        granted.with_idle_at_units(word, self.speed)
    }
}

settings!(Steady, 3; speed horizon inverse);

/// Returns the whole units that accrue in `ticks` nanoseconds at `speed`. The caller ensures that
/// the result fits.
#[inline]
pub(super) const fn scale(ticks: u64, speed: u64) -> u64 {
    ((ticks as u128 * speed as u128) >> SPEED_BITS) as u64
}
