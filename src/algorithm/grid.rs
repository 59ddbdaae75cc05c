//! Windows of equal length that follow each other on the clock.
//!
//! ```text
//!           offset
//! tick 0 ┐  │
//!        ├──┼─────────┬─────────┬─────────┬──
//!  index   0     1         2         3
//! ```
//!
//! Window 0 may have begun before the clock did. When the last window that a word can number ends,
//! time stops for the limiter: later ticks count as the last tick of that window.

use core::num::NonZeroU64;
use core::time::Duration;

use super::alignment::Alignment;
use super::division::Divisor;
use super::pace::accrual::Accrual;
use super::settings::settings;
use crate::clock::Tick;
use crate::outcome::Granted;
use crate::quota::{MIN_HORIZON_NS, Quota, QuotaError};

/// A division of the clock into windows, which finds the window of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub(crate) struct Grid {
    period: Divisor,
    /// How long before tick 0 window 0 began. It is less than a period.
    lead: u64,
    /// The last tick. Later ticks count as this one.
    last: u64,
    /// How many windows a word can number.
    windows: u64,
}

/// The position of a tick in its window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowPosition {
    /// The number of the window.
    pub(crate) index: u64,
    /// How long ago the window began.
    pub(crate) elapsed: u64,
}

impl Grid {
    /// Creates a grid of `windows` windows, which must be at least [`needed`].
    pub(super) const fn new(period: NonZeroU64, windows: u64, alignment: Alignment) -> Self {
        Self::leading(period, windows, alignment.lead(period.get()))
    }

    /// Creates a grid whose first window began `lead` nanoseconds before tick 0. `lead` is less
    /// than a period.
    const fn leading(period: NonZeroU64, windows: u64, lead: u64) -> Self {
        let length = windows as u128 * period.get() as u128;
        let last = length - 1 - lead as u128;
        // Keep the last tick below the end of time, because the window after it must begin later.
        let most = (u64::MAX - 1 - lead) as u128;
        Self {
            period: Divisor::new(period, 0),
            lead,
            last: if last > most {
                most as u64
            } else {
                last as u64
            },
            windows,
        }
    }

    /// Returns whether a constructor could have made this grid.
    fn fits(&self) -> bool {
        let period = self.period();
        period.get() <= MIN_HORIZON_NS
            && self.lead < period.get()
            && self.windows > 0
            && *self == Self::leading(period, self.windows, self.lead)
    }

    /// Returns whether the window numbers fit in a word beside a field of `bits` bits (below 64),
    /// with one number to spare.
    pub(super) const fn fits_beside(&self, bits: u32) -> bool {
        self.windows <= u64::MAX >> bits
    }

    /// Returns how long before tick 0 window 0 began.
    pub(super) const fn lead(&self) -> u64 {
        self.lead
    }

    /// Creates a grid that begins at tick 0.
    #[cfg(feature = "std")]
    pub(crate) const fn on_the_clock(period: NonZeroU64, windows: u64) -> Self {
        Self::new(period, windows, Alignment::CLOCK)
    }

    pub(super) const fn aligned(self, alignment: Alignment) -> Self {
        Self::new(self.period.period(), self.windows, alignment)
    }

    #[inline(always)]
    pub(crate) const fn period(&self) -> NonZeroU64 {
        self.period.period()
    }

    /// Returns the number of the last window.
    #[inline(always)]
    pub(crate) const fn last_index(&self) -> u64 {
        self.windows - 1
    }

    /// Returns how long ago window `index` began, if `now` is in it and not past the last tick. It
    /// does not divide, and it is all that nearly every decision needs. If it returns `None`, use
    /// [`place`](Self::place).
    #[inline(always)]
    pub(crate) fn elapsed_in(&self, index: u64, now: Tick) -> Option<u64> {
        // Up to the last tick nothing wraps for a window of this grid. The index in a word that no
        // algorithm wrote may wrap. Any answer is valid for such a word.
        let (start, now) = (index.wrapping_mul(self.period().get()), now.as_nanos());
        let elapsed = now.wrapping_add(self.lead).wrapping_sub(start);
        if elapsed < self.period().get() && now <= self.last {
            Some(elapsed)
        } else {
            None
        }
    }

    /// Returns the position of a tick. Ticks past the last one count as the last one.
    #[inline(always)]
    pub(crate) fn place(&self, now: Tick) -> WindowPosition {
        let tick = now.as_nanos().min(self.last);
        let (index, elapsed) = self.period.divide(tick + self.lead, 0);
        WindowPosition { index, elapsed }
    }

    /// Returns whether the window at `to` has less time left than the window at `from`.
    pub(super) fn ends_earlier(&self, from: Tick, to: Tick) -> bool {
        self.place(to).elapsed > self.place(from).elapsed
    }

    /// Returns the first tick of a window, or [`u64::MAX`] if it is past the end of time.
    #[inline]
    pub(crate) fn start_of(&self, index: u64) -> u64 {
        match self.period.first_with(index, 0) {
            u64::MAX => u64::MAX,
            start => start.saturating_sub(self.lead),
        }
    }

    /// Returns the tick at which `elapsed` nanoseconds of a window have passed, if it is not past
    /// the last tick. A tick before the clock's start becomes tick 0.
    #[inline]
    pub(super) fn tick_in(&self, index: u64, elapsed: u64) -> Option<u64> {
        let start = u128::from(index) * u128::from(self.period().get());
        let tick = (start + u128::from(elapsed)).saturating_sub(self.lead.into());
        let tick = u64::try_from(tick).ok()?;
        (tick <= self.last).then_some(tick)
    }

    /// Returns the first tick of a window, if it is not past the last tick.
    #[inline]
    pub(crate) fn reachable_start_of(&self, index: u64) -> Option<u64> {
        let start = self.start_of(index);
        (start <= self.last).then_some(start)
    }
}

/// Returns how many windows cover 50 years, wherever they begin. The first and the last window may
/// be only partly in these years.
pub(crate) const fn needed(period: u64) -> u64 {
    MIN_HORIZON_NS / period + 2
}

/// Returns the shortest period for which `windows` windows cover 50 years.
pub(crate) const fn shortest_period(windows: u64) -> Option<Duration> {
    // Even the longest period needs three windows.
    if windows < 3 {
        return None;
    }
    Some(Duration::from_nanos(MIN_HORIZON_NS / (windows - 1) + 1))
}

/// A word layout for windows: the window's number, above one or more counts of the same width.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// The width of a count.
    pub(super) bits: u32,
    /// How many windows can be numbered. The last number is unused, so that no word is all ones.
    pub(super) windows: u64,
}

impl Layout {
    /// Returns the layout with the widest counts that leave enough bits for the window numbers of
    /// 50 years.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the limit does not fit a count. It holds the largest limit that does.
    pub(super) const fn new(quota: Quota, counts: u32) -> Result<Self, QuotaError> {
        let period = match period_of(quota) {
            Ok(period) => period,
            Err(error) => return Err(error),
        };
        if let Err(error) = quota.check_is_window() {
            return Err(error);
        }
        let n = quota.permits();
        let bits = (63 - needed(period.get()).ilog2()) / counts;
        if n < 1 << bits {
            return Ok(Self {
                bits,
                windows: Self::windows(bits, counts),
            });
        }
        let width = u64::BITS - n.leading_zeros();
        Err(QuotaError::LimitTooLarge {
            n,
            max: (1 << bits) - 1,
            period: quota.period(),
            min_period: if width * counts < 63 {
                shortest_period(Self::windows(width, counts))
            } else {
                None
            },
        })
    }

    const fn windows(bits: u32, counts: u32) -> u64 {
        u64::MAX >> (counts * bits)
    }
}

/// Returns the period of a quota for windows, which is at most 50 years.
pub(crate) const fn period_of(quota: Quota) -> Result<NonZeroU64, QuotaError> {
    let period = match quota.valid_period_ns() {
        Ok(period) => period,
        Err(error) => return Err(error),
    };
    if period > MIN_HORIZON_NS {
        return Err(QuotaError::WindowTooLong {
            period: quota.period(),
            max: Duration::from_nanos(MIN_HORIZON_NS),
        });
    }
    match NonZeroU64::new(period) {
        Some(period) => Ok(period),
        None => Err(QuotaError::ZeroPeriod),
    }
}

/// An accrual by which all permits of a window accrue at once, at the window's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub(super) struct WindowAccrual {
    pub(super) grid: Grid,
    /// Permits per window.
    pub(super) step: NonZeroU64,
}

impl WindowAccrual {
    pub(super) const fn windows(&self) -> u64 {
        self.grid.windows
    }
}

impl Accrual for WindowAccrual {
    const ONE_BY_ONE: bool = false;

    #[inline(always)]
    fn accrued(&self, now: Tick) -> u64 {
        self.grid.place(now).index * self.step.get()
    }

    #[inline]
    fn tick_of(&self, units: u64) -> u64 {
        // If the burst lasts for centuries, the window's number times the period may exceed 64
        // bits.
        let (index, period) = (units.div_ceil(self.step.get()), self.grid.period().get());
        let start = u128::from(index) * u128::from(period);
        u64::try_from(start.saturating_sub(self.grid.lead.into())).unwrap_or(u64::MAX)
    }

    #[inline(always)]
    fn horizon(&self) -> u64 {
        self.grid.last
    }

    #[inline(always)]
    fn with_idle_at(&self, granted: Granted, word: u64) -> Granted {
        granted.with_reset_at(Tick::from_nanos(self.tick_of(word)))
    }
}

settings!(Grid, 5, if Grid::fits; period lead last windows);
settings!(WindowAccrual, 6; grid step);
