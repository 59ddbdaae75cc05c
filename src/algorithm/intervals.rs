//! A token bucket that is refilled once per period.
//!
//! # The word
//!
//! An aligned bucket has the word of a [`Pace`] whose units are permits. They accrue at the
//! beginning of each window:
//!
//! ```text
//!  63                                                              0
//! ┌─────────────────────────────────────────────────────────────────┐
//! │ the permit count at which the bucket will be full again          │
//! └─────────────────────────────────────────────────────────────────┘
//!
//! accrued(now) = window(now) * n
//! base         = max(word, accrued)
//! admitted iff base + k <= accrued + burst;  the word becomes base + k
//! ```
//!
//! **Budget.** `n * (windows in 50 years) + 2 * burst < 2^64`, so a burst of debt always fits.
//!
//! A greedy bucket has the word of a [`FirstHit`].

use core::num::NonZeroU64;
use core::time::Duration;

use super::alignment::{Alignment, alignable};
use super::counting::Counting;
use super::delegate::{reserves_on, runs_on};
use super::first_hit::FirstHit;
use super::grid::{Grid, WindowAccrual, needed, period_of, shortest_period};
use super::pace::{MAX_WORD, Pace};
use super::settings::{NO_QUOTA, settings, settings_of_kinds};
use super::{ChangeQuota, Level, carry};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::{MAX_BURST, Quota, QuotaError};

/// A token bucket that is refilled once per period, with all of the period's permits at once.
///
/// - By default its periods are aligned to the clock: they begin at tick 0, unless an alignment
///   method changes that. Bucket4j calls this `refillIntervallyAligned`. (In its
///   `refillIntervally`, periods begin when the bucket is made.)
/// - If it is [`greedy`](Self::greedy), a period begins with the first permit that is taken from a
///   full bucket, so the first refill is one whole period after that permit.
///
/// For a bucket that is refilled permit by permit, use a [`TokenBucket`](crate::TokenBucket).
///
/// **Bound.** In every interval `[a, b]` at most `burst + min(n, burst) * ceil((b - a) / period)`
/// permits are granted. Around a refill, callers can take a burst and a refill at once. If that is
/// too many, choose short periods or a [`TokenBucket`](crate::TokenBucket).
///
/// **Reservations.** A reservation is due at the beginning of a period. If the bucket is full
/// before that, further refills are lost, and count as permits that wait. A bucket that is
/// [`greedy`](Self::greedy) records reservations as debt. If the word can't record more, a caller
/// is denied, and `retry_after` says when there is room. If a greedy bucket's `n` is larger than
/// its burst, it has no reservations, and grants only what is available now.
///
/// Unlike a [`FixedWindow`](crate::FixedWindow), it keeps permits that were not taken, up to the
/// burst. It also keeps the debt of a [charge](crate::Limiter::charge), which the next refills pay.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Intervals, Limiter, ManualClock, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new();
/// let bucket = Intervals::new(Quota::per_minute(10).burst(25))?;
/// let limiter = Limiter::with_clock(bucket, clock.clone());
/// limiter.try_acquire_n(25)?;
/// clock.advance(Duration::from_secs(59));
/// assert_eq!(limiter.available(), 0);
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(limiter.available(), 10);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Intervals {
    refill: Refill,
    alignment: Alignment,
    quota: Quota,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Refill {
    Aligned(Pace<WindowAccrual>),
    Greedy(FirstHit),
}

/// The parts of a quota, checked.
struct Checked {
    period: NonZeroU64,
    step: NonZeroU64,
    burst: NonZeroU64,
}

impl Checked {
    const fn of(quota: Quota) -> Result<Self, QuotaError> {
        let period = match period_of(quota) {
            Ok(period) => period,
            Err(error) => return Err(error),
        };
        let (Some(step), Some(burst)) = (
            NonZeroU64::new(quota.permits()),
            NonZeroU64::new(quota.burst_size()),
        ) else {
            return Err(QuotaError::ZeroBurst);
        };
        let initial = quota.initial_permits();
        if initial > burst.get() {
            let burst = burst.get();
            return Err(QuotaError::InitialAboveBurst { initial, burst });
        }
        Ok(Self {
            period,
            step,
            burst,
        })
    }
}

impl Intervals {
    /// Creates a bucket that is refilled at the beginning of each period of the clock.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] names the field of the quota that can't be represented, and what is allowed.
    pub const fn new(quota: Quota) -> Result<Self, QuotaError> {
        let Checked {
            period,
            step,
            burst,
        } = match Checked::of(quota) {
            Ok(checked) => checked,
            Err(error) => return Err(error),
        };
        let (n, initial) = (step.get(), quota.initial_permits());
        let needed = needed(period.get());
        // The refills must leave room for a burst of one permit and a debt of one permit.
        if (MAX_WORD - 2) / needed < n {
            return Err(QuotaError::LimitTooLarge {
                n,
                max: (MAX_WORD - 2) / needed,
                period: quota.period(),
                min_period: shortest_period((MAX_WORD - 2) / n),
            });
        }
        let max = (MAX_WORD - needed * n) / 2;
        let max = if max < MAX_BURST { max } else { MAX_BURST };
        if burst.get() > max {
            let burst = burst.get();
            return Err(QuotaError::BurstTooLarge { burst, max });
        }
        let grid = Grid::new(period, (MAX_WORD - 2 * burst.get()) / n, Alignment::CLOCK);
        Ok(Self {
            refill: Refill::Aligned(Pace::of_permits(
                WindowAccrual { grid, step },
                burst,
                initial,
            )),
            alignment: Alignment::CLOCK,
            quota,
        })
    }

    pub(super) const fn aligned(self, alignment: Alignment) -> Self {
        match self.refill {
            Refill::Aligned(pace) => {
                let WindowAccrual { grid, step } = *pace.accrual();
                let grid = grid.aligned(alignment);
                Self {
                    refill: Refill::Aligned(pace.with_accrual(WindowAccrual { grid, step })),
                    alignment,
                    quota: self.quota,
                }
            }
            // A greedy period begins when a permit is taken.
            Refill::Greedy(_) => self,
        }
    }

    /// Makes the bucket greedy: a period begins with the first permit that is taken from a full
    /// bucket, and further periods follow until the bucket is full again. Alignment has no effect
    /// on such a bucket.
    ///
    /// The word stores the beginning of the period rounded up to a multiple of the
    /// [`quantum`](Self::quantum). So a refill is never early, and at most one quantum late, even
    /// after many periods.
    ///
    /// # Errors
    ///
    /// [`QuotaError::BurstTooLarge`] if the quantum would be above a 64th of the period.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Intervals, Limiter, ManualClock, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let bucket = Intervals::new(Quota::per_minute(10))?.greedy()?;
    /// let limiter = Limiter::with_clock(bucket, clock.clone());
    /// clock.advance(Duration::from_secs(45));
    /// limiter.try_acquire()?;
    /// clock.advance(Duration::from_secs(59));
    /// assert_eq!(limiter.available(), 9);
    /// clock.advance(Duration::from_secs(1) + bucket.quantum().unwrap());
    /// assert_eq!(limiter.available(), 10);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn greedy(self) -> Result<Self, QuotaError> {
        Self::greedily(self.quota)
    }

    /// Creates a greedy bucket. The quota may be too large for an aligned bucket.
    pub(super) const fn greedily(quota: Quota) -> Result<Self, QuotaError> {
        let Checked {
            period,
            step,
            burst,
        } = match Checked::of(quota) {
            Ok(checked) => checked,
            Err(error) => return Err(error),
        };
        match FirstHit::new(period, burst, step, quota.initial_permits()) {
            Ok(periods) => Ok(Self {
                refill: Refill::Greedy(periods),
                alignment: Alignment::CLOCK,
                quota,
            }),
            Err((max, _)) => {
                let burst = burst.get();
                Err(QuotaError::BurstTooLarge { burst, max })
            }
        }
    }

    /// Returns the pace of an aligned bucket.
    pub(super) const fn pace(&self) -> Option<&Pace<WindowAccrual>> {
        match &self.refill {
            Refill::Aligned(pace) => Some(pace),
            Refill::Greedy(_) => None,
        }
    }

    pub(super) const fn is_greedy(&self) -> bool {
        matches!(self.refill, Refill::Greedy(_))
    }

    /// Returns the quantum of a greedy bucket: beginnings of periods are rounded up to a multiple
    /// of it. Returns `None` for an aligned bucket.
    pub const fn quantum(&self) -> Option<Duration> {
        match &self.refill {
            Refill::Aligned(_) => None,
            Refill::Greedy(periods) => Some(periods.quantum()),
        }
    }
}

macro_rules! its_refill {
    ($this:ident, $core:ident => $call:expr) => {
        match &$this.refill {
            Refill::Aligned($core) => $call,
            Refill::Greedy(window) => {
                let $core = &Counting(window);
                $call
            }
        }
    };
}

runs_on!(Intervals, its_refill);
reserves_on!(Intervals, its_refill);
alignable!(Intervals);
settings_of_kinds!(Refill, 12; 0 Aligned 1 Greedy);
settings!(Intervals, 12, "intervals"; refill; alignment = Alignment::CLOCK; quota = NO_QUOTA);

/// Only greedy buckets carry counts over. Aligned ones carry whole permits over.
impl carry::Recount for Intervals {
    fn recount(
        &self,
        word: u64,
        now: Tick,
        next: &Self,
        counts: carry::CarriedCounts,
    ) -> Option<u64> {
        match (&self.refill, &next.refill) {
            (Refill::Greedy(this), Refill::Greedy(next)) => this.recount(word, now, next, counts),
            _ => None,
        }
    }
}

impl ChangeQuota for Intervals {
    #[inline]
    fn quota(&self) -> Quota {
        self.quota
    }

    fn with_quota(&self, quota: Quota) -> Result<Self, QuotaError> {
        if self.is_greedy() {
            Self::greedily(quota)
        } else {
            Ok(Self::new(quota)?.aligned(self.alignment))
        }
    }

    carry::carries_counts!();
}
