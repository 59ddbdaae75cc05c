use core::time::Duration;

use crate::clock::Tick;

/// A charge: permits that were taken unconditionally.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
///
/// # fn main() -> Result<(), tollgate::error::QuotaError> {
/// let limiter = Limiter::with_clock(TokenBucket::new(Quota::per_second(10))?, ManualClock::new());
/// let charged = limiter.charge(25);
/// assert_eq!(charged.n(), 25);
/// assert_eq!(charged.debt(), 15);
/// assert_eq!(charged.clear_after(), Duration::from_millis(1500));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Charged {
    n: u64,
    at: Tick,
    debt: u64,
    clear_after: Duration,
}

impl Charged {
    /// Creates a charge of `n` permits, counted at `at`, that left no debt.
    #[inline]
    pub const fn new(n: u64, at: Tick) -> Self {
        Self {
            n,
            at,
            debt: 0,
            clear_after: Duration::ZERO,
        }
    }

    /// Sets how many permits are owed, and how long it takes until they are paid. [`Duration::MAX`]
    /// means that they never will be.
    #[inline]
    #[must_use]
    pub const fn with_debt(self, debt: u64, clear_after: Duration) -> Self {
        Self {
            debt,
            clear_after,
            ..self
        }
    }

    /// Returns how many permits were recorded. These are all that were charged, unless the word
    /// can't hold that much debt (decades of it). It is 0 if a table of keys had no slot for the
    /// key, or no such plan.
    #[inline]
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// Returns the tick at which the permits were counted.
    #[inline]
    pub const fn at(&self) -> Tick {
        self.at
    }

    /// Returns how many permits the limiter owes now, rounded up; 0 if it is not in debt.
    #[inline]
    pub const fn debt(&self) -> u64 {
        self.debt
    }

    /// Returns how long it takes until the debt is paid, if no caller takes or charges more.
    /// [`Duration::MAX`] means that the clock ends before that.
    #[inline]
    pub const fn clear_after(&self) -> Duration {
        self.clear_after
    }
}
