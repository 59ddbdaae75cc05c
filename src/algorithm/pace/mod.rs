//! The arithmetic that the buckets share: token bucket, GCRA, leaky bucket, and aligned intervals.
//!
//! # The word
//!
//! ```text
//!  63                                                              0
//! ┌─────────────────────────────────────────────────────────────────┐
//! │ the unit count at which the bucket will be full again (0: it is) │
//! └─────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A bucket counts in units of its own. `speed / 2^60` units accrue per nanosecond, and
//! `accrued(now)` have accrued by now. One permit is `permit` units, and a full bucket is
//! `capacity` units. The bucket lacks `word - accrued(now)` units; comments call this the distance
//! of the word *above the clock*. GCRA calls the word the theoretical arrival time.
//!
//! The [`Accrual`] decides how units accrue: steadily ([`Steady`]), as below, or many at once
//! ([`WindowAccrual`](super::grid::WindowAccrual)).
//!
//! ```text
//! accrued(now) = floor(min(now, horizon) * speed / 2^60)
//! base         = max(word, accrued)
//! admitted iff n <= burst and word <= accrued + capacity - n * permit
//!              the word becomes base + n * permit
//! ```
//!
//! # Why it is exact
//!
//! Let the quota be `n` permits in `period` nanoseconds, reduced by their greatest common divisor.
//!
//! - If the reduced `n` is at most [`EXACT_N`], a unit is the `n`-th part of a nanosecond:
//!   `speed = n * 2^60` and `permit = period`. Accrued units, permits and full buckets are then
//!   whole numbers of units, so every decision is the one that rational arithmetic would make. This
//!   covers all intervals of whole nanoseconds (`n = 1`, where the unit is the nanosecond). If the
//!   burst does not fit the word in these units, but fits in coarser ones, the next case applies.
//! - Otherwise a unit is a quarter of a nanosecond or less: `permit = ceil(4 * period / n)` and
//!   `speed = 2^60 * permit * n / period`, rounded down. `accrued` then loses a fraction of a unit.
//!   An idle bucket counts from `accrued`, so this fraction counts as time that is still to come: a
//!   permit may be less than one unit early, and an interval of `d` grants what the rate allows in
//!   `d` and one unit more. In return the bucket is a whole number of permits at the tick at which
//!   it is first used: it grants its burst in any split. The rounding of the speed delays permits
//!   by about 0.35 ns after 50 years of uninterrupted work (2^60.5 ns * 2^-62). So no permit is due
//!   more than one nanosecond late, and nothing accumulates from one permit to the next.
//!
//! A word that moves to another quota or clock counts from the `accrued` of the new one. So each
//! such move within an interval adds one unit to the bound.
//!
//! # Why nothing wraps
//!
//! `horizon` is the last tick at which `accrued + 2 * capacity` fits the word, so a full burst
//! and a burst of debt always fit. The horizon is at least 50 years; otherwise the quota is
//! refused. Later ticks count as the horizon: nothing more is refilled. `scripts/prove` proves this
//! section and the one before it for all words, ticks and quotas.

pub(super) mod accrual;
mod reserve;
mod scaled;
mod shard;
mod verbs;

use core::num::NonZeroU64;
use core::time::Duration;

pub(crate) use accrual::{Accrual, Steady};
use accrual::{SPEED_BITS, scale};

use super::grid::WindowAccrual;
use super::settings::settings;
use crate::quota::{MAX_BURST, MAX_INTERVAL_NS, MIN_HORIZON_NS, Quota, QuotaError};

/// The largest reduced `n` for which the units of 50 years fit: 11 * 50 years is below 2^64 ns.
const EXACT_N: u64 = 11;

/// The largest word. The word of all ones, above it, is reserved for the limiter.
pub(super) const MAX_WORD: u64 = u64::MAX - 1;

/// How fast a bucket fills, and how much it holds. The fields that every decision reads come first,
/// so that they share a cache line with the limiter's word before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub(crate) struct Pace<M = Steady> {
    /// How units accrue.
    accrual: M,
    /// How many units are one permit.
    permit: NonZeroU64,
    /// Units in a full bucket.
    capacity: u64,
    /// The most permits at once: `capacity / permit`.
    burst: NonZeroU64,
    /// How many permits a new limiter lacks.
    deficit: u64,
}

impl Pace {
    /// Creates the pace of a quota.
    pub(crate) const fn from_quota(quota: Quota) -> Result<Self, QuotaError> {
        let (n, burst, initial) = (quota.permits(), quota.burst_size(), quota.initial_permits());
        let period = match quota.valid_period_ns() {
            Ok(period) => period,
            Err(error) => return Err(error),
        };
        if burst == 0 {
            return Err(QuotaError::ZeroBurst);
        }
        if initial > burst {
            return Err(QuotaError::InitialAboveBurst { initial, burst });
        }
        let divisor = gcd(n, period);
        if divisor == 0 {
            // Unreachable, but it tells the compiler that the divisor is not 0.
            return Err(QuotaError::ZeroPermits);
        }
        let mut max = 0;
        if n / divisor <= EXACT_N {
            let speed = (n / divisor) << SPEED_BITS;
            match Self::fitted(speed, period / divisor, burst) {
                Ok(pace) => return Ok(pace.starting_with(initial)),
                Err(fits) => max = fits,
            }
        }
        if n / divisor > 1 {
            let permit = (4 * period as u128).div_ceil(n as u128);
            let speed = ((permit * n as u128) << SPEED_BITS) / period as u128;
            // Both fit 64 bits: the permit is at most 4 * 365 days, and the speed is at most 10
            // units per nanosecond.
            match Self::fitted(speed as u64, permit as u64, burst) {
                Ok(pace) => return Ok(pace.starting_with(initial)),
                Err(fits) if fits > max => max = fits,
                Err(_) => {}
            }
        }
        Err(QuotaError::BurstTooLarge { burst, max })
    }

    /// Creates the pace of an emission interval and a tolerance.
    pub(crate) const fn from_interval(
        interval: Duration,
        tolerance: Duration,
    ) -> Result<Self, QuotaError> {
        let (ns, tolerance_ns) = (interval.as_nanos(), tolerance.as_nanos());
        if ns == 0 {
            return Err(QuotaError::ZeroInterval);
        }
        if ns > MAX_INTERVAL_NS as u128 {
            return Err(QuotaError::IntervalTooLong { interval });
        }
        let max_reach = (MAX_WORD - MIN_HORIZON_NS) as u128 / 2;
        let max_reach = min(max_reach, MAX_BURST as u128 * ns + (ns - 1));
        // The subtraction cannot wrap: the interval is at most a year, and a capacity of a year
        // always fits.
        let max = max_reach - ns;
        if tolerance_ns > max {
            let max = Duration::from_nanos(max as u64);
            return Err(QuotaError::ToleranceTooLong { tolerance, max });
        }
        match Self::of_capacity(1 << SPEED_BITS, ns as u64, (ns + tolerance_ns) as u64) {
            Some(pace) => Ok(pace),
            None => Err(QuotaError::ZeroInterval),
        }
    }

    /// Returns the pace with this burst, or the largest burst that fits.
    const fn fitted(speed: u64, permit: u64, burst: u64) -> Result<Self, u64> {
        if permit == 0 {
            // Unreachable, but it tells the compiler that the permit is not 0.
            return Err(0);
        }
        let accrued = scale(MIN_HORIZON_NS, speed);
        let max = (MAX_WORD - accrued) / 2 / permit;
        let max = if max > MAX_BURST { MAX_BURST } else { max };
        if burst > max {
            return Err(max);
        }
        match Self::of_capacity(speed, permit, burst * permit) {
            Some(pace) => Ok(pace),
            None => Err(0),
        }
    }

    /// Returns the pace with this capacity. The caller ensures that it fits. Returns `None` if the
    /// permit is 0 or above the capacity.
    const fn of_capacity(speed: u64, permit: u64, capacity: u64) -> Option<Self> {
        let (Some(permit), Some(speed)) = (NonZeroU64::new(permit), NonZeroU64::new(speed)) else {
            return None;
        };
        let Some(burst) = NonZeroU64::new(capacity / permit.get()) else {
            return None;
        };
        let rest = MAX_WORD - 2 * capacity;
        let horizon = ((rest as u128) << SPEED_BITS) / speed.get() as u128;
        let inverse = (1_u128 << (64 + SPEED_BITS)) / speed.get() as u128;
        Some(Self {
            accrual: Steady {
                speed,
                inverse: min(inverse, u64::MAX as u128) as u64,
                horizon: min(horizon, u64::MAX as u128) as u64,
            },
            permit,
            capacity,
            burst,
            deficit: 0,
        })
    }

    /// Returns whether a constructor could have made this pace.
    fn fits(&self) -> bool {
        let (permit, capacity) = (self.permit.get(), self.capacity);
        // A unit is a nanosecond or less.
        let is_usual = self.accrual.speed.get() >> SPEED_BITS > 0;
        if !is_usual || capacity > MAX_WORD / 2 || self.deficit > self.burst() {
            return false;
        }
        let built = Self::of_capacity(self.accrual.speed.get(), permit, capacity);
        let whole = Self {
            deficit: 0,
            ..*self
        };
        built == Some(whole)
    }

    const fn starting_with(self, initial: u64) -> Self {
        Self {
            deficit: self.burst.get() - initial,
            ..self
        }
    }

    /// Returns the units per permit if `accrued` can lose a fraction of a unit, or `None` if the
    /// pace is exact.
    pub(super) const fn inexact_unit(&self) -> Option<NonZeroU64> {
        match self.accrual.speed.get() % (1 << SPEED_BITS) {
            0 => None,
            _ => Some(self.permit),
        }
    }
}

impl<M: Copy> Pace<M> {
    /// Creates a pace whose units are whole permits, which accrue as `accrual` says.
    pub(super) const fn of_permits(accrual: M, burst: NonZeroU64, initial: u64) -> Self {
        Self {
            accrual,
            permit: NonZeroU64::MIN,
            capacity: burst.get(),
            burst,
            deficit: burst.get().saturating_sub(initial),
        }
    }

    /// Returns the same pace on another accrual.
    pub(super) const fn with_accrual(self, accrual: M) -> Self {
        Self { accrual, ..self }
    }

    pub(super) const fn accrual(&self) -> &M {
        &self.accrual
    }
}

impl Pace<WindowAccrual> {
    /// Returns whether a constructor could have made this pace.
    fn fits_windows(&self) -> bool {
        let all = u128::from(self.accrual.windows()) * u128::from(self.accrual.step.get());
        let twice = 2 * u128::from(self.capacity);
        self.capacity / self.permit == self.burst.get()
            && self.deficit <= self.burst()
            && all + twice <= MAX_WORD.into()
    }
}

impl<M> Pace<M> {
    pub(crate) const fn burst(&self) -> u64 {
        self.burst.get()
    }

    /// Returns how many units are one permit.
    pub(super) const fn permit(&self) -> u64 {
        self.permit.get()
    }

    /// Returns the units of a full bucket.
    pub(super) const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the units of a full bucket beyond its first permit.
    pub(super) const fn tolerance(&self) -> u64 {
        self.capacity - self.permit.get()
    }
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

const fn min(a: u128, b: u128) -> u128 {
    if a < b { a } else { b }
}

settings!(Pace<Steady>, 7, if Self::fits; accrual permit capacity burst deficit);
settings!(Pace<WindowAccrual>, 10, if Self::fits_windows; accrual permit capacity burst deficit);

#[cfg(test)]
mod tests {
    use super::{Duration, MAX_WORD, Pace, Quota, SPEED_BITS, Steady};
    use crate::clock::Tick;

    /// Returns a pace whose fields are consistent, as those of a forged snapshot can be.
    fn forged(speed: u64, permit: u64, capacity: u64) -> Pace {
        Pace::<Steady>::of_capacity(speed, permit, capacity).expect("a permit and a capacity")
    }

    #[test]
    fn a_pace_is_exact_if_a_nanosecond_has_whole_units() {
        let inexact =
            |rate| Pace::<Steady>::from_quota(Quota::per_second(rate)).map(|it| it.inexact_unit());
        assert_eq!(inexact(10), Ok(None));
        assert!(matches!(inexact(13), Ok(Some(_))));
    }

    #[test]
    fn pace_is_sound_only_if_a_constructor_can_make_it() {
        let built = Pace::<Steady>::from_quota(Quota::per_second(7).burst(3)).expect("a quota");
        assert!(built.fits());
        for initial in [0, 1, 3] {
            let quota = Quota::per_second(7).burst(3).initial(initial);
            assert!(
                Pace::<Steady>::from_quota(quota).is_ok_and(|pace| pace.fits()),
                "{initial}"
            );
        }
        let deficit = 4;
        assert!(
            !Pace { deficit, ..built }.fits(),
            "a new bucket must not lack more than a burst"
        );
        assert!(forged(1 << SPEED_BITS, 9, 27).fits());
        assert!(
            !forged((1 << SPEED_BITS) - 1, 9, 27).fits(),
            "a unit must not exceed a nanosecond"
        );
        let capacity = MAX_WORD / 2 + 1;
        assert!(
            !Pace { capacity, ..built }.fits(),
            "must not have more units than a word holds"
        );
    }

    #[test]
    fn debt_can_be_paid_at_the_last_tick() {
        let pace = Pace::<Steady>::from_quota(Quota::per(1, Duration::from_nanos(1)).burst(3));
        let pace = pace.expect("a quota");
        let last = pace.accrual.horizon;
        let now = Tick::from_nanos(last - 10);
        let paid_after = |n| pace.charge(0, now, n).1.clear_after();
        // The burst is available, and one unit comes per nanosecond.
        assert_eq!(paid_after(3 + 10), Duration::from_nanos(10));
        assert_eq!(paid_after(3 + 11), Duration::MAX);
    }
}
