use core::num::NonZeroU64;
use core::time::Duration;

use crate::windows::{Windows, period_of};
use tollgate::error::{LimiterError, QuotaError};
use tollgate::{Quota, TokenBucket};

/// The most that a limiter grants in every interval `[a, b]`:
///
/// | constructor | at most |
/// |---|---|
/// | [`of_quota`](Self::of_quota) | `burst + rate * (b - a + one unit)` |
/// | [`of_interval`](Self::of_interval) | `1 + (tolerance + (b - a)) / interval` |
/// | [`of_windows`](Self::of_windows) | `n`, if the interval lies in one window of the clock |
/// | [`of_refills`](Self::of_refills) | `burst`, and `n` for each window that begins in it after `a` |
/// | [`of_steps`](Self::of_steps) | `burst + n * ceil((b - a) / period)` |
/// | [`of_log`](Self::of_log) | `n`, if the interval is shorter than a period |
/// | [`of_slots`](Self::of_slots) | `n`, if the interval lies within `slots` adjacent slots |
///
/// An algorithm states its own with [`Bounded`](crate::Bounded).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Units in a permit. All amounts of a bound are in the same unit; `burst` units are allowed at
    /// a single tick.
    pub(crate) permit: u64,
    pub(crate) burst: u128,
    /// For a bucket that loses fractions: what the rate allows in one unit of time, rounded up.
    /// Otherwise 0.
    pub(crate) unit_of_time: u64,
    pub(crate) comes: Comes,
    pub(crate) debt: Owed,
}

/// How the allowance grows with the length of the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comes {
    /// By `rate` units each nanosecond.
    Steadily { rate: u64 },
    /// By `units` at the beginning of each window.
    AtEdges { windows: Windows, units: u64 },
    /// Each window allows a full burst, with nothing left over from the one before.
    Anew { windows: Windows },
    /// By `units` each period, wherever the periods begin.
    InSteps { units: u64, period: NonZeroU64 },
    /// Not at all. The clock is divided into `places`, which are ticks or slots, and any `span`
    /// adjacent places allow one burst.
    Within { places: Windows, span: NonZeroU64 },
}

/// How long debt counts against grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owed {
    /// Refills pay it.
    Paid,
    /// It counts against grants only in the window in which it was charged.
    ForgottenAfter(Windows),
    /// It may be forgotten at any time.
    Forgotten,
}

impl Bound {
    /// Returns the bound of a token bucket or GCRA with this quota: at most
    /// `burst + rate * (b - a)`, plus what the rate allows in one unit of time if the bucket can't
    /// express the rate exactly. A unit is at most a quarter of a nanosecond: see
    /// [`TokenBucket`](tollgate::TokenBucket).
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the quota has no rate or no burst.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    /// use tollgate_audit::Bound;
    ///
    /// # fn main() -> Result<(), tollgate::error::QuotaError> {
    /// // The ninth permit after a burst is due 692 307 692.3 ns later: less than a third of a
    /// // nanosecond after that tick, but more than a unit.
    /// let bound = Bound::of_quota(Quota::per_second(13))?;
    /// assert_eq!(bound.allows(Duration::from_nanos(692_307_692)), 13 + 8);
    /// assert_eq!(bound.allows(Duration::from_nanos(692_307_693)), 13 + 9);
    /// // The twelfth is due 923 076 923.08 ns later, less than a unit after the tick.
    /// assert_eq!(bound.allows(Duration::from_nanos(923_076_923)), 13 + 12);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn of_quota(quota: Quota) -> Result<Self, QuotaError> {
        match check_rate(quota) {
            Ok(()) if quota.burst_size() == 0 => Err(QuotaError::ZeroBurst),
            Ok(()) => Ok(Self::bucket(quota)),
            Err(error) => Err(error),
        }
    }

    /// Returns the bound of GCRA with this emission interval and tolerance: at most
    /// `1 + (tolerance + (b - a)) / interval`.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the interval is zero, or if either is longer than 584 years.
    pub const fn of_interval(interval: Duration, tolerance: Duration) -> Result<Self, QuotaError> {
        let permit = interval.as_nanos();
        if permit == 0 {
            return Err(QuotaError::ZeroInterval);
        }
        if permit > u64::MAX as u128 {
            return Err(QuotaError::IntervalTooLong { interval });
        }
        if tolerance.as_nanos() > u64::MAX as u128 {
            let max = Duration::from_nanos(u64::MAX);
            return Err(QuotaError::ToleranceTooLong { tolerance, max });
        }
        Ok(Self::spaced(interval, tolerance))
    }

    /// Returns the bound of a fixed window: at most `n` in each window of the quota's period.
    /// Windows follow each other from tick 0, unless an [`offset`](Self::offset) is added.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the quota has no rate, or a burst or an initial number other than `n`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_audit::{Bound, Audit, Log};
    /// use tollgate::{Quota, Tick};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut log = Log::new();
    /// log.grant(Tick::from_nanos(9), 2);
    /// log.grant(Tick::from_nanos(10), 2);
    /// let audit: Audit = [log].into_iter().collect();
    /// let bound = Bound::of_windows(Quota::per(2, Duration::from_nanos(10)))?;
    /// assert!(audit.check(&bound).is_ok()); // one window ends where the other begins
    /// assert!(audit.check(&bound.offset(Duration::from_nanos(1))).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub const fn of_windows(quota: Quota) -> Result<Self, QuotaError> {
        if let Err(error) = check_rate(quota) {
            return Err(error);
        }
        let (n, burst, initial) = (quota.permits(), quota.burst_size(), quota.initial_permits());
        if burst != n {
            return Err(QuotaError::BurstInWindow { burst, n });
        }
        if initial != n {
            return Err(QuotaError::InitialInWindow { initial, n });
        }
        Ok(Self::anew(quota, Windows::of(quota, Duration::ZERO)))
    }

    /// Returns the bound of a bucket that gets the quota's `n` permits at once at the beginning of
    /// each window of its period: at most `burst`, and `n` for each window that begins after `a`
    /// and not after `b`. Windows follow each other from tick 0, unless an [`offset`](Self::offset)
    /// is added.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the quota has no rate or no burst.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_audit::Bound;
    /// use tollgate::{Quota, Tick};
    ///
    /// # fn main() -> Result<(), tollgate::error::QuotaError> {
    /// let quota = Quota::per(2, Duration::from_nanos(10)).burst(5);
    /// let bound = Bound::of_refills(quota)?.offset(Duration::from_nanos(3));
    /// let allowed = |a, b| bound.allows_between(Tick::from_nanos(a), Tick::from_nanos(b));
    /// assert_eq!(allowed(3, 12), 5);
    /// assert_eq!(allowed(12, 13), 7);
    /// assert_eq!(allowed(2, 13), 9);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn of_refills(quota: Quota) -> Result<Self, QuotaError> {
        match Self::of_quota(quota) {
            Ok(_) => Ok(Self::at_edges(quota, Windows::of(quota, Duration::ZERO))),
            Err(error) => Err(error),
        }
    }

    /// Returns the bound of a bucket that gets the quota's `n` permits at once, a period or more
    /// apart, wherever the periods begin: at most `burst + n * ceil((b - a) / period)`.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the quota has no rate or no burst.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_audit::Bound;
    /// use tollgate::Quota;
    ///
    /// # fn main() -> Result<(), tollgate::error::QuotaError> {
    /// let bound = Bound::of_steps(Quota::per_second(2).burst(5))?;
    /// assert_eq!(bound.allows(Duration::ZERO), 5);
    /// assert_eq!(bound.allows(Duration::from_millis(1000)), 7);
    /// assert_eq!(bound.allows(Duration::from_millis(1001)), 9);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn of_steps(quota: Quota) -> Result<Self, QuotaError> {
        match Self::of_quota(quota) {
            Ok(_) => Ok(Self::in_steps(quota)),
            Err(error) => Err(error),
        }
    }

    /// Returns the bound of a sliding log: at most `n` in every interval that is shorter than the
    /// quota's period. A permit may be granted as soon as the `n`-th newest one is a period old.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the quota has no rate, or a burst or an initial number other than `n`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_audit::{Bound, Audit, Log};
    /// use tollgate::{Quota, Tick};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bound = Bound::of_log(Quota::per(2, Duration::from_nanos(10)))?;
    /// let granted_at = |ticks: [u64; 3]| {
    ///     let mut log = Log::new();
    ///     for tick in ticks {
    ///         log.grant(Tick::from_nanos(tick), 1);
    ///     }
    ///     Audit::from_iter([log])
    /// };
    /// assert!(granted_at([7, 9, 17]).check(&bound).is_ok());
    /// assert!(granted_at([7, 9, 16]).check(&bound).is_err());
    /// assert_eq!(bound.allows(Duration::from_nanos(9)), 2);
    /// assert_eq!(bound.allows(Duration::from_nanos(10)), 4);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn of_log(quota: Quota) -> Result<Self, QuotaError> {
        match Self::of_windows(quota) {
            Ok(_) => Ok(Self::within(quota, NonZeroU64::MIN, period_of(quota))),
            Err(error) => Err(error),
        }
    }

    /// Returns the bound of a slotted window. The quota's period is divided into `slots` slots, and
    /// at most `n` permits are granted in any `slots` adjacent slots of the clock. Slots begin at
    /// tick 0, unless an [`offset`](Self::offset) is added.
    ///
    /// # Errors
    ///
    /// [`LimiterError`] if the quota has no rate, or a burst or an initial number other than `n`,
    /// or if the period cannot be divided evenly into the slots.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_audit::Bound;
    /// use tollgate::{Quota, Tick};
    ///
    /// # fn main() -> Result<(), tollgate::error::LimiterError> {
    /// // Slots of 5 ns.
    /// let bound = Bound::of_slots(Quota::per(7, Duration::from_nanos(20)), 4)?;
    /// let allowed = |a, b| bound.allows_between(Tick::from_nanos(a), Tick::from_nanos(b));
    /// assert_eq!(allowed(20, 39), 7);
    /// assert_eq!(allowed(24, 39), 7);
    /// assert_eq!(allowed(24, 40), 14);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn of_slots(quota: Quota, slots: usize) -> Result<Self, LimiterError> {
        if let Err(error) = Self::of_windows(quota) {
            return Err(LimiterError::Quota(error));
        }
        let period = period_of(quota).get();
        let Some(span) = NonZeroU64::new(slots as u64) else {
            return Err(LimiterError::ZeroSlots);
        };
        match NonZeroU64::new(period / span.get()) {
            Some(slot) if period.is_multiple_of(span.get()) => Ok(Self::within(quota, slot, span)),
            _ => Err(LimiterError::SlotsUneven {
                slots,
                period: quota.period(),
            }),
        }
    }

    /// Moves the beginnings of windows or slots, if the bound has any, later by `offset`.
    #[must_use]
    pub const fn offset(self, offset: Duration) -> Self {
        let comes = match self.comes {
            Comes::AtEdges { windows, units } => Comes::AtEdges {
                windows: windows.later(offset),
                units,
            },
            Comes::Anew { windows } => Comes::Anew {
                windows: windows.later(offset),
            },
            Comes::Within { places, span } => Comes::Within {
                places: places.later(offset),
                span,
            },
            Comes::Steadily { .. } | Comes::InSteps { .. } => self.comes,
        };
        let debt = match self.debt {
            Owed::ForgottenAfter(windows) => Owed::ForgottenAfter(windows.later(offset)),
            Owed::Paid | Owed::Forgotten => self.debt,
        };
        Self {
            comes,
            debt,
            ..self
        }
    }

    /// Allows for this many changes of the quota or the clock during the history, such as those by
    /// `Adjustable::set_quota` and by a restore from a snapshot. If the rate of the bucket is not
    /// exact, each change adds what the rate allows in one unit of time, which is at most a quarter
    /// of a nanosecond. All other bounds stay the same.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Quota;
    /// use tollgate_audit::Bound;
    ///
    /// # fn main() -> Result<(), tollgate::error::QuotaError> {
    /// let bound = Bound::of_quota(Quota::per_second(13))?;
    /// // The ninth permit after a burst is due 692 307 692.3 ns later.
    /// let short = Duration::from_nanos(692_307_692);
    /// assert_eq!(bound.allows(short), 13 + 8);
    /// assert_eq!(bound.across_changes(1).allows(short), 13 + 9);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn across_changes(self, changes: u64) -> Self {
        let units = self.unit_of_time as u128 * changes as u128;
        Self {
            burst: self.burst.saturating_add(units),
            ..self
        }
    }

    /// Allows the algorithm to forget debt: no grant counts as an excess because of an earlier
    /// charge.
    ///
    /// ```
    /// use tollgate_audit::{Bound, Audit, Log};
    /// use tollgate::outcome::Charged;
    /// use tollgate::{Quota, Tick};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut log = Log::new();
    /// log.charged(&Charged::new(50, Tick::from_nanos(1)));
    /// log.grant(Tick::from_nanos(2), 1);
    /// let audit: Audit = [log].into_iter().collect();
    /// let bound = Bound::of_quota(Quota::per_second(10))?;
    /// assert!(audit.check(&bound).is_err());
    /// assert!(audit.check(&bound.forgetting_debt()).is_ok());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn forgetting_debt(self) -> Self {
        Self {
            debt: Owed::Forgotten,
            ..self
        }
    }
}

/// Constructors from validated quotas.
impl Bound {
    pub(crate) const fn steady(quota: Quota) -> Self {
        let period = period_of(quota).get();
        Self {
            permit: period,
            burst: quota.burst_size() as u128 * period as u128,
            unit_of_time: 0,
            comes: Comes::Steadily {
                rate: quota.permits(),
            },
            debt: Owed::Paid,
        }
    }

    /// The bound of a bucket of this quota, which counts in units.
    ///
    /// In `d` nanoseconds the clock makes less than `1 + d * unit * n / period` units. So
    /// `count * period < burst * period + d * n + period / unit`, and all but the last of these are
    /// whole numbers.
    pub(crate) const fn bucket(quota: Quota) -> Self {
        let steady = Self::steady(quota);
        let unit = match TokenBucket::new(quota) {
            Ok(bucket) => bucket.inexact_unit(),
            Err(_) => None,
        };
        let unit_of_time = match unit {
            Some(unit) => steady.permit.div_ceil(unit.get()),
            None => 0,
        };
        Self {
            burst: steady.burst + unit_of_time.saturating_sub(1) as u128,
            unit_of_time,
            ..steady
        }
    }

    pub(crate) const fn spaced(interval: Duration, tolerance: Duration) -> Self {
        Self {
            permit: interval.as_nanos() as u64,
            burst: interval.as_nanos() + tolerance.as_nanos(),
            unit_of_time: 0,
            comes: Comes::Steadily { rate: 1 },
            debt: Owed::Paid,
        }
    }

    pub(crate) const fn anew(quota: Quota, windows: Windows) -> Self {
        Self {
            permit: 1,
            burst: quota.permits() as u128,
            unit_of_time: 0,
            comes: Comes::Anew { windows },
            debt: Owed::Paid,
        }
    }

    pub(crate) const fn at_edges(quota: Quota, windows: Windows) -> Self {
        Self {
            permit: 1,
            burst: quota.burst_size() as u128,
            unit_of_time: 0,
            comes: Comes::AtEdges {
                windows,
                units: quota.permits(),
            },
            debt: Owed::Paid,
        }
    }

    pub(crate) const fn in_steps(quota: Quota) -> Self {
        Self {
            permit: 1,
            burst: quota.burst_size() as u128,
            unit_of_time: 0,
            comes: Comes::InSteps {
                units: quota.permits(),
                period: period_of(quota),
            },
            debt: Owed::Paid,
        }
    }

    /// At most `n` in any `span` adjacent places of `place` nanoseconds each.
    const fn within(quota: Quota, place: NonZeroU64, span: NonZeroU64) -> Self {
        Self {
            comes: Comes::Within {
                places: Windows::each(place),
                span,
            },
            ..Self::anew(quota, Windows::of(quota, Duration::ZERO))
        }
    }
}

/// Checks the permits and the period. With a burst of 1, a bucket is refused only if one of these
/// is wrong.
const fn check_rate(quota: Quota) -> Result<(), QuotaError> {
    match TokenBucket::new(Quota::per(quota.permits(), quota.period()).burst(1)) {
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}
