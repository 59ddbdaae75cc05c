//! The sliding window, estimated from two counts.
//!
//! # The word
//!
//! ```text
//!  63              2 * bits              bits                          0
//! ┌──────────────────┬─────────────────────┬───────────────────────────┐
//! │ window           │ count of the window │ count of the window       │
//! │ (64 - 2*bits)    │ before it (bits)    │ (bits)                    │
//! └──────────────────┴─────────────────────┴───────────────────────────┘
//! ```
//!
//! ```text
//! admitted iff  before * left / period + count + n <= limit
//! ```
//!
//! Here `left` is how much of the current window is left, from a whole period at its beginning to a
//! nanosecond at its end. Both sides are multiplied by the period and compared in 128 bits, so
//! nothing is rounded. With [`Rounding::Down`] the previous window counts in whole permits. To
//! round down, the comparison allows `period - 1` more.
//!
//! When the clock enters the next window, `count` becomes `before`. When two windows have passed,
//! both are 0. Windows are numbered from the clock's start and never wrap, so an old count can't
//! become current again. If the word is in a later window, a caller with a later tick wrote it.
//! Then this caller's permits count at the beginning of that window, where the previous window has
//! the most weight.
//!
//! **Budget.** Two counts share the word with the window's number:
//! `(limit + largest debt)^2 * (windows in 50 years) < 2^64`. `bits` is the largest width that
//! leaves enough window numbers for 50 years, and `limit` must be below `2^bits`. The counts above
//! `limit` are for debt.

mod verbs;

use core::num::NonZeroU64;

use super::alignment::{Alignment, alignable, limited};
use super::counting::Counting;
use super::delegate::{reserves_on, runs_on};
use super::grid::{Grid, Layout, period_of};
use super::settings::{NO_QUOTA, settings};
use super::{ChangeQuota, Level, carry};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::{Quota, QuotaError};

/// The most fractions that a shard counts per permit.
const MOST_FRACTIONS: u64 = 32;

/// A sliding window: up to `n` permits in the last period, estimated from the counts of the current
/// window and the previous one.
///
/// The estimate assumes that the previous window was filled evenly. It weights that window's count
/// by the share of the window that is still within the last period. A request is granted if
/// `before * left / period + count + n` is at most the limit. The comparison is exact.
///
/// **Bound.** In every interval `[a, b]` at most `n + rate * (b - a)` permits, as with a
/// [`TokenBucket`](crate::TokenBucket) whose burst is `n`. [`Rounding::Down`] adds less than one
/// permit to this bound. So an interval of one period may hold up to `2 * n` permits. A
/// [`FixedWindow`](crate::FixedWindow) can grant them all at once, at the end of a window. A
/// sliding window can't.
///
/// **Under-admission.** The previous window keeps some weight until the last nanosecond of the
/// current one. So after a window with any permits, the next one grants at most `n - 1`. Under
/// constant demand the limiter grants `n - 1` permits per period; with `n` = 1, one permit every
/// two periods. [`Rounding::Down`] grants `n`.
///
/// If a caller's tick is older than the word's window, its permits count at the beginning of that
/// window ([`Granted::at`](crate::Granted::at)). So threads whose clocks differ are never granted
/// more than the limit. [Undoing](crate::Limiter::undo) a grant after its window is over returns
/// nothing. A [charge](crate::Limiter::charge) counts in the current window, and is weighted in the
/// next one like all other permits.
///
/// **Reservations.** A reservation counts in the window in which it is due. Until that window
/// begins:
///
/// - Permits of earlier windows can't be given back.
/// - A cancellation keeps as many permits counted as ensure
///   that no caller gets one before the window begins. It keeps none if the window before it is
///   full.
/// - The number of permits that wait does not include those of earlier windows.
///
/// A request for the whole limit is due when no permit is counted any longer: after a whole window
/// without permits.
///
/// A window has no burst and no initial permits of its own: a quota in which these differ from `n`
/// is refused. The largest `n` depends on the length of the window: up to 65 535 per second,
/// 524 287 per minute, 4 194 303 per hour.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, ManualClock, Quota, SlidingWindow};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new();
/// let limiter = Limiter::with_clock(SlidingWindow::new(Quota::per_minute(12))?, clock.clone());
/// limiter.try_acquire_n(9)?;
/// clock.advance(Duration::from_secs(75)); // a quarter into the next window
/// limiter.try_acquire_n(5)?;
/// assert_eq!(limiter.level().as_f64(), 11.75); // 9 * 3/4 + 5
/// assert!(limiter.try_acquire().is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct SlidingWindow {
    // The fields that every decision reads come first, so that they share a cache line with the
    // word.
    /// The largest weight that all counted permits may have together, as its lower and upper 64
    /// bits. It is the limit times the period, plus `period - 1` if the previous window is rounded
    /// down.
    allowed: (u64, u64),
    /// The largest count.
    most: u64,
    /// The width of a count.
    bits: u32,
    rounding: Rounding,
    grid: Grid,
    limit: NonZeroU64,
    alignment: Alignment,
    quota: Quota,
}

/// How a [`SlidingWindow`] rounds the share of the previous window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Rounding {
    /// No rounding: the share is exact.
    #[default]
    Exact,
    /// Rounded down to whole permits, as integer counters do.
    /// [`is_idle`](crate::store::View::is_idle) and [`reset_after`](crate::Granted::reset_after)
    /// still wait until a share below one permit is gone, and [`level`](crate::Limiter::level) is
    /// not rounded.
    Down,
}

impl SlidingWindow {
    /// Creates a window of the quota's period, with up to `n` permits in it.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] names the field of the quota that can't be represented, and what is allowed.
    pub const fn new(quota: Quota) -> Result<Self, QuotaError> {
        let Layout { bits, windows } = match Layout::new(quota, 2) {
            Ok(layout) => layout,
            Err(error) => return Err(error),
        };
        let (Some(limit), Ok(period)) = (NonZeroU64::new(quota.permits()), period_of(quota)) else {
            return Err(QuotaError::ZeroPermits);
        };
        let window = Self {
            allowed: (0, 0),
            most: (1 << bits) - 1,
            bits,
            rounding: Rounding::Exact,
            grid: Grid::new(period, windows, Alignment::CLOCK),
            limit,
            alignment: Alignment::CLOCK,
            quota,
        };
        Ok(window.rounding(Rounding::Exact))
    }

    /// Sets how the share of the previous window is rounded.
    ///
    /// ```
    /// use tollgate::algorithm::Rounding;
    /// use tollgate::clock::NoClock;
    /// use tollgate::{Limiter, Quota, SlidingWindow, Tick};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let exact = SlidingWindow::new(Quota::per_second(2))?;
    /// for (window, there) in [(exact, 0), (exact.rounding(Rounding::Down), 1)] {
    ///     let limiter = Limiter::unstarted(window, NoClock);
    ///     limiter.at(Tick::ZERO).try_acquire_n(2)?;
    ///     // 1.8 of the two earlier permits are still within a second.
    ///     assert_eq!(limiter.at(Tick::from_nanos(1_100_000_000)).available(), there);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn rounding(self, rounding: Rounding) -> Self {
        let period = self.grid.period().get() as u128;
        let allowed = self.limit.get() as u128 * period;
        let allowed = match rounding {
            Rounding::Exact => allowed,
            Rounding::Down => allowed + period - 1,
        };
        Self {
            allowed: (allowed as u64, (allowed >> 64) as u64),
            rounding,
            ..self
        }
    }

    /// Returns how the share of the previous window is rounded.
    pub(crate) const fn rounds(&self) -> Rounding {
        self.rounding
    }

    pub(super) const fn aligned(self, alignment: Alignment) -> Self {
        Self {
            grid: self.grid.aligned(alignment),
            alignment,
            ..self
        }
    }

    /// Returns whether a constructor could have made this window.
    fn fits(&self) -> bool {
        let fits = |bits: u32| self.grid.fits_beside(2 * bits) && self.most == (1 << bits) - 1;
        let limit = self.limit.get();
        let (period, (lower, upper)) = (self.grid.period().get(), self.allowed);
        let beyond = (u128::from(upper) << 64 | u128::from(lower))
            .checked_sub(u128::from(limit) * u128::from(period));
        let is_rounded = |beyond: u128| beyond == 0 || beyond == u128::from(period) - 1;
        (1..32).contains(&self.bits)
            && fits(self.bits)
            && limit <= self.most
            && beyond.is_some_and(is_rounded)
    }

    /// Returns the same window counting fractions of a permit, and the number of fractions in a
    /// permit: as many as the counts have bits for, up to [`MOST_FRACTIONS`], and 1 if there is
    /// only one shard. If a permit has several fractions, a window can still count a debt of three
    /// times the limit.
    pub(super) fn in_fractions(&self, parts: u64) -> (Self, u64) {
        let room = self.most / 4 / self.limit.get();
        let most = if parts > 1 { MOST_FRACTIONS } else { 1 };
        let fraction = NonZeroU64::new(room.min(most)).unwrap_or(NonZeroU64::MIN);
        let (lower, upper) = self.allowed;
        let allowed = u128::from(upper) << 64 | u128::from(lower);
        let allowed = allowed.saturating_mul(fraction.get().into());
        // With [`Rounding::Down`], `allowed` is more than the limit. The excess of all shards
        // together is less than a permit, so they grant no permit above the limit.
        let limit = u64::try_from(allowed / u128::from(self.grid.period().get()));
        let window = Self {
            allowed: (allowed as u64, (allowed >> 64) as u64),
            limit: limit.ok().and_then(NonZeroU64::new).unwrap_or(self.limit),
            ..*self
        };
        (window, fraction.get())
    }

    /// Returns the largest debt: how many permits above its limit a window can count. Charges
    /// beyond that are not recorded.
    pub const fn largest_debt(&self) -> u64 {
        self.most - self.limit.get()
    }
}

macro_rules! its_counts {
    ($this:ident, $core:ident => $call:expr) => {{
        let $core = &Counting($this);
        $call
    }};
}

runs_on!(SlidingWindow, its_counts);
reserves_on!(SlidingWindow, its_counts);

impl ChangeQuota for SlidingWindow {
    #[inline]
    fn quota(&self) -> Quota {
        self.quota
    }

    fn with_quota(&self, quota: Quota) -> Result<Self, QuotaError> {
        let window = Self::new(quota)?.rounding(self.rounds());
        Ok(window.aligned(self.alignment))
    }

    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        carry::over(self, word, now, next)
    }

    fn carry_scaled(&self, word: u64, now: Tick, next: &Self) -> u64 {
        carry::in_part(self, word, now, next)
    }
}

alignable!(SlidingWindow);
limited!(SlidingWindow);
settings!(SlidingWindow, 10, "sliding-window", if SlidingWindow::fits; allowed most bits grid limit;
    rounding = Rounding::Exact; alignment = Alignment::CLOCK; quota = NO_QUOTA);

#[cfg(test)]
mod tests {
    use super::{Quota, SlidingWindow};

    #[test]
    fn window_is_sound_only_if_its_counts_fit_the_word() {
        let made = SlidingWindow::new(Quota::per_second(10)).expect("a quota");
        assert!(made.fits());
        for bits in made.bits + 1..32 {
            let most = (1 << bits) - 1;
            assert!(!SlidingWindow { bits, most, ..made }.fits(), "{bits} bits");
        }
        let most = made.most - 1;
        assert!(
            !SlidingWindow { most, ..made }.fits(),
            "the largest count must fill its bits"
        );
        let allowed = (made.allowed.0 + 1, made.allowed.1);
        assert!(
            !SlidingWindow { allowed, ..made }.fits(),
            "the allowance must match the limit"
        );
    }
}
