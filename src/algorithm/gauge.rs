use core::fmt;
use core::num::{NonZeroU64, NonZeroU128};

use super::Algorithm;
use crate::clock::Tick;

/// An algorithm that can report how much it has counted.
pub trait Gauge: Algorithm {
    /// Returns how many permits are counted at `now`: the level of the bucket, or the count of the
    /// window. 0 means that nothing is counted, the limit means full, and more is debt. The level
    /// is exact, even where decisions round in the caller's favor.
    fn level(&self, word: u64, now: Tick) -> Level;
}

/// The number of permits that a limiter counts, with an exact fraction.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{LeakyBucket, Limiter, ManualClock, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new();
/// let bucket = LeakyBucket::meter(Quota::per_second(2).burst(10))?;
/// let limiter = Limiter::with_clock(bucket, clock.clone());
/// limiter.try_acquire_n(4)?;
/// clock.advance(Duration::from_millis(250));
/// let level = limiter.level();
/// assert_eq!(level.as_f64(), 3.5);
/// assert_eq!((level.floor(), level.ceil()), (3, 4));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub struct Level {
    units: u128,
    permit: NonZeroU128,
}

impl Level {
    /// Creates a level of `n` whole permits.
    #[inline]
    pub const fn of_permits(n: u64) -> Self {
        Self::of_units(n as u128, NonZeroU64::MIN)
    }

    /// Creates a level of `units`. One permit is `permit` units.
    #[inline]
    pub const fn of_units(units: u128, permit: NonZeroU64) -> Self {
        let permit = match NonZeroU128::new(permit.get() as u128) {
            Some(permit) => permit,
            None => NonZeroU128::MIN,
        };
        Self { units, permit }
    }

    /// Adds two levels that count the same units.
    #[cfg(feature = "std")]
    pub(crate) fn plus(self, other: Self) -> Self {
        let units = self.units.saturating_add(other.units);
        Self { units, ..self }
    }

    /// Converts a level of fractions to permits. One permit is `permit` fractions.
    #[cfg(feature = "std")]
    pub(crate) fn of_fractions(self, permit: u64) -> Self {
        match NonZeroU128::new(permit.into()) {
            Some(permit) => Self {
                permit: self.permit.saturating_mul(permit),
                ..self
            },
            None => self,
        }
    }

    /// Returns the number of permits, rounded down.
    #[inline]
    #[must_use]
    pub fn floor(&self) -> u64 {
        u64::try_from(self.units / self.permit.get()).unwrap_or(u64::MAX)
    }

    /// Returns the number of permits, rounded up.
    #[inline]
    #[must_use]
    pub fn ceil(&self) -> u64 {
        u64::try_from(self.units.div_ceil(self.permit.get())).unwrap_or(u64::MAX)
    }

    /// Returns the number of permits as a float, rounded to its precision.
    #[inline]
    #[must_use]
    pub fn as_f64(&self) -> f64 {
        let permit = self.permit.get();
        let part = (self.units % permit) as f64 / permit as f64;
        (self.units / permit) as f64 + part
    }

    /// Returns whether nothing is counted.
    #[inline]
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.units == 0
    }
}

impl fmt::Debug for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Level({})", self.as_f64())
    }
}
