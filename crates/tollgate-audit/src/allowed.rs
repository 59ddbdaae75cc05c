//! How many permits a bound allows in an interval.

use core::num::NonZeroU64;
use core::time::Duration;

use crate::bound::{Bound, Comes, Owed};
use tollgate::Tick;

impl Bound {
    /// Returns how many permits may be granted in any interval of this length.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_audit::Bound;
    /// use tollgate::Quota;
    ///
    /// # fn main() -> Result<(), tollgate::error::QuotaError> {
    /// let bound = Bound::of_quota(Quota::per_second(10).burst(3))?;
    /// assert_eq!(bound.allows(Duration::from_millis(299)), 5);
    /// // One nanosecond can lie in two windows.
    /// let bound = Bound::of_windows(Quota::per_second(10))?;
    /// assert_eq!(bound.allows(Duration::from_nanos(1)), 20);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn allows(&self, length: Duration) -> u128 {
        let length = length.as_nanos();
        let units = match self.comes {
            Comes::Steadily { rate } => (rate as u128).saturating_mul(length),
            Comes::AtEdges { windows, units } => {
                let edges = length.div_ceil(windows.period());
                edges.saturating_mul(units as u128)
            }
            Comes::Anew { windows } => {
                let edges = length.div_ceil(windows.period());
                edges.saturating_mul(self.burst)
            }
            Comes::InSteps { units, period } => steps(length, units, period),
            Comes::Within { places, span } => {
                let apart = length.div_ceil(places.period());
                (apart / span.get() as u128).saturating_mul(self.burst)
            }
        };
        self.permits(units)
    }

    /// Returns how many permits may be granted from `from` to `to`, both included.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_audit::Bound;
    /// use tollgate::{Quota, Tick};
    ///
    /// # fn main() -> Result<(), tollgate::error::QuotaError> {
    /// let bound = Bound::of_windows(Quota::per(7, Duration::from_nanos(10)))?;
    /// let allowed = |a, b| bound.allows_between(Tick::from_nanos(a), Tick::from_nanos(b));
    /// assert_eq!(allowed(0, 9), 7);
    /// assert_eq!(allowed(9, 10), 14);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn allows_between(&self, from: Tick, to: Tick) -> u128 {
        match self.comes {
            Comes::Anew { windows } => {
                self.permits(windows.edges(from, to).saturating_mul(self.burst))
            }
            Comes::Within { places, span } => {
                let apart = places.edges(from, to) / span.get() as u128;
                self.permits(apart.saturating_mul(self.burst))
            }
            _ => self.permits(self.made(from, to)),
        }
    }

    /// Returns how many permits a burst and this many units make.
    const fn permits(&self, units: u128) -> u128 {
        self.burst.saturating_add(units) / self.permit as u128
    }

    /// Returns by how many units the allowance of an interval grows if its end moves from `from` to
    /// `to`.
    ///
    /// For some bounds there is no such number. For refills in steps, this returns what an interval
    /// from `from` to `to` may have beyond a burst. For fixed windows and for spans, it returns 0,
    /// the refill of an interval within one window or span.
    pub(crate) const fn made(&self, from: Tick, to: Tick) -> u128 {
        let length = to.saturating_since(from).as_nanos();
        match self.comes {
            Comes::Steadily { rate } => (rate as u128).saturating_mul(length),
            Comes::AtEdges { windows, units } => {
                windows.edges(from, to).saturating_mul(units as u128)
            }
            Comes::Anew { .. } | Comes::Within { .. } => 0,
            Comes::InSteps { units, period } => steps(length, units, period),
        }
    }

    /// Returns how many units a reset allows. Ticks before the reset go up to `latest`, and ticks
    /// after it begin at `earliest`, so this is a burst and the refill between the two.
    pub(crate) const fn worth_of_reset(&self, earliest: Tick, latest: Tick) -> u128 {
        self.burst.saturating_add(self.made(earliest, latest))
    }

    /// Returns the bound that holds when charges count too, in a form that can be checked with
    /// them, or `None` if there is none.
    ///
    /// Refills in steps are bounded by a steady refill that begins with one step:
    /// `ceil(x / period) <= (x + period - 1) / period`.
    pub(crate) fn with_charges(&self) -> Option<Self> {
        match (self.debt, self.comes) {
            (Owed::Forgotten, _) => None,
            (_, Comes::InSteps { units, period }) => {
                let period = u128::from(period.get());
                let first = u128::from(units) * (period - 1);
                Some(Self {
                    permit: period as u64,
                    burst: (self.burst * period).saturating_add(first),
                    comes: Comes::Steadily { rate: units },
                    ..*self
                })
            }
            _ => Some(*self),
        }
    }

    /// Returns whether debt charged at the tick `charged` still counts against grants at `now`.
    pub(crate) const fn remembers(&self, charged: Tick, now: Tick) -> bool {
        match self.debt {
            Owed::Paid => true,
            Owed::ForgottenAfter(windows) => windows.index(charged) == windows.index(now),
            Owed::Forgotten => false,
        }
    }
}

/// Returns the refill of `length` nanoseconds in steps of `units` each period.
const fn steps(length: u128, units: u64, period: NonZeroU64) -> u128 {
    let steps = length.div_ceil(period.get() as u128);
    steps.saturating_mul(units as u128)
}
