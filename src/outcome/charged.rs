use core::time::Duration;

use crate::clock::Tick;

/// Permits were taken, whether they were there or not.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
///
/// # fn main() -> Result<(), tollgate::ConfigError> {
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
    /// A charge of `n` permits, counted at `at`, that left no debt.
    #[inline]
    pub const fn new(n: u64, at: Tick) -> Self {
        Self {
            n,
            at,
            debt: 0,
            clear_after: Duration::ZERO,
        }
    }

    /// Says how many permits are owed, and how long it takes until they will have been paid:
    /// [`Duration::MAX`] if they never will.
    #[inline]
    #[must_use]
    pub const fn with_debt(self, debt: u64, clear_after: Duration) -> Self {
        Self {
            debt,
            clear_after,
            ..self
        }
    }

    /// How many permits were recorded: all that were charged, unless the word could not hold that
    /// much debt (decades of it); none if a table of keys had no room for the key, or no such plan.
    #[inline]
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// The tick at which they were counted.
    #[inline]
    pub const fn at(&self) -> Tick {
        self.at
    }

    /// How many permits the limiter owes now, a started one counted whole; 0 if it is not in debt.
    #[inline]
    pub const fn debt(&self) -> u64 {
        self.debt
    }

    /// How long until the debt is paid, if nobody takes or charges more; [`Duration::MAX`] if the
    /// clock will not get there.
    #[inline]
    pub const fn clear_after(&self) -> Duration {
        self.clear_after
    }
}
