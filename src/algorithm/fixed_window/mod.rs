//! The fixed window. It is [`Aligned`] to the clock, or opened by the first hit: then it is a
//! [`FirstHit`] whose permits are all refilled at the end of its period.

mod aligned;

use core::num::NonZeroU64;
use core::time::Duration;

use self::aligned::Aligned;
use super::alignment::{Alignment, alignable, limited};
use super::counting::Counting;
use super::delegate::runs_on;
use super::first_hit::FirstHit;
use super::grid::period_of;
use super::settings::{NO_QUOTA, settings, settings_of_kinds};
use super::{ChangeQuota, Level, Reserve, carry};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::{Quota, QuotaError};

/// A fixed window: up to `n` permits in each period. The count starts again at 0 in the next
/// period.
///
/// Windows follow each other from tick 0 of the clock, unless one of the methods changes that.
///
/// **Bound.** At most `n` permits in each window, and exactly `n` if enough are requested. So at
/// most `n * (1 + ceil((b - a) / period))` in an interval `[a, b]`: requests right before and right
/// after the end of a window can get `2 * n` at once. If that is too many, use a
/// [`SlidingWindow`](crate::SlidingWindow) or a [`TokenBucket`](crate::TokenBucket).
///
/// If a caller's tick is older than the word's window, its permits count at the beginning of that
/// window ([`Granted::at`]). So threads whose clocks differ are never granted more than the limit.
/// [Undoing](crate::Limiter::undo) a grant after its window is over returns nothing. A
/// [charge](crate::Limiter::charge) counts in the current window only.
///
/// It has no reservations: [`Reserve`](crate::algorithm::Reserve) says why. To wait, use
/// [`time_until`](crate::Limiter::time_until), or a window that slides.
///
/// A window has no burst and no initial permits of its own: a quota in which these differ from `n`
/// is refused. A window is from 1 ns to 50 years long, with at least one permit in 365 days. The
/// largest `n` depends on the length: up to 8 589 934 591 per second.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{FixedWindow, Limiter, ManualClock, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new();
/// let limiter = Limiter::with_clock(FixedWindow::new(Quota::per_minute(3))?, clock.clone());
/// clock.advance(Duration::from_secs(50));
/// let granted = limiter.try_acquire_n(2)?;
/// assert_eq!(granted.remaining(), 1);
/// assert_eq!(granted.reset_after(), Duration::from_secs(10));
/// clock.advance(Duration::from_secs(10));
/// assert_eq!(limiter.available(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FixedWindow {
    opening: Opening,
    alignment: Alignment,
    quota: Quota,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Opening {
    Aligned(Aligned),
    FirstHit(FirstHit),
}

impl FixedWindow {
    /// Creates windows that begin at the clock's tick 0.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] names the field of the quota that can't be represented, and what is allowed.
    pub const fn new(quota: Quota) -> Result<Self, QuotaError> {
        match Aligned::new(quota) {
            Ok(aligned) => Ok(Self {
                opening: Opening::Aligned(aligned),
                alignment: Alignment::CLOCK,
                quota,
            }),
            Err(error) => Err(error),
        }
    }

    pub(super) const fn aligned(self, alignment: Alignment) -> Self {
        match self.opening {
            Opening::Aligned(aligned) => Self {
                opening: Opening::Aligned(aligned.aligned(alignment)),
                alignment,
                quota: self.quota,
            },
            // The first hit opens the window, so alignment has no effect.
            Opening::FirstHit(_) => self,
        }
    }

    /// Opens a window when a permit is taken while no window is open. The window ends one period
    /// later. Alignment has no effect on such windows.
    ///
    /// The word stores the beginning of the window rounded up to a multiple of the
    /// [`quantum`](Self::quantum). So a window is never shorter than the period, and at most one
    /// quantum longer. If all of its permits are given back, the window closes early.
    ///
    /// # Errors
    ///
    /// [`QuotaError::LimitTooLarge`] if the quantum would be above a 64th of the period.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{FixedWindow, Limiter, ManualClock, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let window = FixedWindow::new(Quota::per_minute(100))?.opened_by_first_hit()?;
    /// assert!(window.quantum() <= Some(Duration::from_nanos(60)));
    /// let clock = ManualClock::new();
    /// let limiter = Limiter::with_clock(window, clock.clone());
    /// clock.advance(Duration::from_secs(59));
    /// limiter.try_acquire_n(100)?;
    /// clock.advance(Duration::from_secs(59));
    /// assert_eq!(limiter.available(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn opened_by_first_hit(self) -> Result<Self, QuotaError> {
        Self::first_hit(self.quota)
    }

    /// Creates windows that are opened by the first hit. The quota may be too large for aligned
    /// windows.
    pub(super) const fn first_hit(quota: Quota) -> Result<Self, QuotaError> {
        let period = match period_of(quota) {
            Ok(period) => period,
            Err(error) => return Err(error),
        };
        if let Err(error) = quota.check_is_window() {
            return Err(error);
        }
        let n = quota.permits();
        let Some(limit) = NonZeroU64::new(n) else {
            return Err(QuotaError::ZeroPermits);
        };
        match FirstHit::new(period, limit, NonZeroU64::MAX, n) {
            Ok(window) => Ok(Self {
                opening: Opening::FirstHit(window),
                alignment: Alignment::CLOCK,
                quota,
            }),
            Err((max, min_period)) => Err(QuotaError::LimitTooLarge {
                n,
                max,
                period: quota.period(),
                min_period,
            }),
        }
    }

    /// Returns the quantum of windows that are opened by the first hit: their beginnings are
    /// rounded up to a multiple of it. Returns `None` for aligned windows.
    pub const fn quantum(&self) -> Option<Duration> {
        match &self.opening {
            Opening::Aligned(_) => None,
            Opening::FirstHit(window) => Some(window.quantum()),
        }
    }

    /// Returns the largest debt: how many permits above its limit a window can count. Charges
    /// beyond that are not recorded.
    pub const fn largest_debt(&self) -> u64 {
        match &self.opening {
            Opening::Aligned(aligned) => aligned.largest_debt(),
            Opening::FirstHit(window) => window.largest_debt(),
        }
    }
}

macro_rules! its_opening {
    ($this:ident, $core:ident => $call:expr) => {
        match &$this.opening {
            Opening::Aligned(window) => {
                let $core = &Counting(window);
                $call
            }
            Opening::FirstHit(window) => {
                let $core = &Counting(window);
                $call
            }
        }
    };
}

runs_on!(FixedWindow, its_opening);
alignable!(FixedWindow);
limited!(FixedWindow);
settings_of_kinds!(Opening, 12; 0 Aligned 1 FirstHit);
settings!(FixedWindow, 12, "fixed-window"; opening; alignment = Alignment::CLOCK; quota = NO_QUOTA);

/// The parts of [`Reserve`] for [`AnyAlgorithm`](crate::AnyAlgorithm). They only grant what is
/// available now.
impl FixedWindow {
    pub(super) fn reserve(
        &self,
        word: u64,
        now: Tick,
        n: u64,
        latest: Tick,
    ) -> Result<(u64, Granted), Denied> {
        its_opening!(self, core => core.reserve(word, now, n, latest))
    }

    pub(super) fn cancel(
        &self,
        word: u64,
        now: Tick,
        granted: &Granted,
        n: u64,
    ) -> (u64, Granted, u64) {
        its_opening!(self, core => core.cancel(word, now, granted, n))
    }

    pub(super) fn waiting(&self, word: u64, now: Tick) -> u64 {
        its_opening!(self, core => core.waiting(word, now))
    }
}

/// Only windows opened by the first hit carry counts over. Aligned ones carry whole permits over.
impl carry::Recount for FixedWindow {
    fn recount(
        &self,
        word: u64,
        now: Tick,
        next: &Self,
        counts: carry::CarriedCounts,
    ) -> Option<u64> {
        match (&self.opening, &next.opening) {
            (Opening::FirstHit(this), Opening::FirstHit(next)) => {
                this.recount(word, now, next, counts)
            }
            _ => None,
        }
    }
}

impl ChangeQuota for FixedWindow {
    #[inline]
    fn quota(&self) -> Quota {
        self.quota
    }

    fn with_quota(&self, quota: Quota) -> Result<Self, QuotaError> {
        match self.opening {
            Opening::Aligned(_) => Ok(Self::new(quota)?.aligned(self.alignment)),
            Opening::FirstHit(_) => Self::first_hit(quota),
        }
    }

    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        carry::over(self, word, now, next)
    }

    fn carry_scaled(&self, word: u64, now: Tick, next: &Self) -> u64 {
        carry::in_part(self, word, now, next)
    }
}
