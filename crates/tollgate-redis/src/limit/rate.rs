//! Rates: quotas as exact integers that a script can add and compare.
//!
//! `n` permits every `period` microseconds, reduced, so one permit costs `period` units of 1/n
//! microsecond. Products are computed here, in 128 bits; the scripts only add and compare.

use std::fmt;

use tollgate::Quota;

use crate::limit::bounds::{MAX_BURST, MAX_N, MAX_SPAN, SPAN};
use crate::limit::error::LimitError;

/// The microseconds from 1970 to 2026, from which ticks count.
pub(crate) const ORIGIN: u64 = 1_767_225_600_000_000;

/// A span or a moment: microseconds, and a part of one more in units of 1/n, below n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Ticks {
    pub(crate) whole: u64,
    pub(crate) part: u64,
}

/// A quota in exact units.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Rate {
    /// Permits every `period` microseconds.
    n: u64,
    /// Microseconds for `n` permits, or units of 1/n microsecond for one; at most [`SPAN`].
    period: u64,
    burst: u64,
    /// What a full burst costs.
    reach: Ticks,
}

impl Rate {
    /// Creates the rate of a quota, if the scripts can count it exactly for 50 years.
    pub(crate) fn new(quota: Quota) -> Result<Self, LimitError> {
        let (n, period, burst) = (quota.permits(), quota.period(), quota.burst_size());
        if n == 0 {
            return Err(LimitError::ZeroPermits);
        }
        if period.is_zero() {
            return Err(LimitError::ZeroPeriod);
        }
        if period > MAX_SPAN {
            return Err(LimitError::PeriodTooLong { period });
        }
        // Every 1000 nanoseconds are a microsecond, so n permits in `nanos` nanoseconds are 1000 n
        // in `nanos` microseconds.
        let (thousand, nanos) = (u128::from(n) * 1000, period.as_nanos());
        let divisor = gcd(thousand, nanos).max(1);
        let (exact_n, exact_period) = (thousand / divisor, nanos / divisor);
        if exact_n > u128::from(MAX_N) {
            return Err(LimitError::RateTooFine { n, period });
        }
        // Whole microseconds have a common divisor of at least 1000, so they are at most this span.
        if exact_period > u128::from(SPAN) {
            return Err(LimitError::PeriodNotWhole { period });
        }
        // At least 1, because the period is at most this span.
        let max_burst = (u128::from(SPAN) * exact_n / exact_period).min(MAX_BURST.into());
        if burst == 0 || u128::from(burst) > max_burst {
            let max = to_u64(max_burst);
            return Err(LimitError::Burst { burst, max });
        }
        let initial = quota.initial_permits();
        if initial != burst {
            return Err(LimitError::Initial { initial, burst });
        }
        let mut rate = Self {
            n: to_u64(exact_n),
            period: to_u64(exact_period),
            burst,
            reach: Ticks::default(),
        };
        rate.reach = rate.ticks(rate.cost(burst));
        Ok(rate)
    }

    /// Returns the most permits that can be taken at once.
    pub(crate) const fn burst(&self) -> u64 {
        self.burst
    }

    pub(crate) const fn n(&self) -> u64 {
        self.n
    }

    pub(crate) const fn period(&self) -> u64 {
        self.period
    }

    /// Returns whether permits come back as fast as at another rate.
    pub(crate) const fn is_as_fast(&self, other: &Self) -> bool {
        self.n == other.n && self.period == other.period
    }

    pub(crate) const fn reach(&self) -> Ticks {
        self.reach
    }

    /// Returns what `permits` cost, in units of 1/n microsecond.
    pub(crate) fn cost(&self, permits: u64) -> u128 {
        u128::from(permits) * u128::from(self.period)
    }

    /// Returns how many whole permits the units are.
    pub(crate) fn permits(&self, units: u128) -> u64 {
        to_u64(units / u128::from(self.period.max(1)))
    }

    /// Returns the units as permits, rounded up.
    pub(crate) fn permits_up(&self, units: u128) -> u64 {
        to_u64(units.div_ceil(u128::from(self.period.max(1))))
    }

    /// Returns the units in a span.
    pub(crate) fn units(&self, ticks: Ticks) -> u128 {
        u128::from(ticks.whole) * u128::from(self.n) + u128::from(ticks.part)
    }

    /// Returns the span of the units.
    pub(crate) fn ticks(&self, units: u128) -> Ticks {
        let n = u128::from(self.n.max(1));
        Ticks {
            whole: to_u64(units / n),
            part: to_u64(units % n),
        }
    }

    /// Returns the units as microseconds, rounded up.
    pub(crate) fn micros_up(&self, units: u128) -> u64 {
        to_u64(units.div_ceil(u128::from(self.n.max(1))))
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            n, period, burst, ..
        } = self;
        write!(f, "Rate({n}/{period}us burst {burst})")
    }
}

fn to_u64(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

pub(crate) const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
