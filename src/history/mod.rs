//! Shows that a limiter kept its promise: records what it granted, from any number of threads,
//! and checks the bound over **every** interval.
//!
//! Each thread keeps a [`Log`] of its own, which costs a push to a vector; afterwards a
//! [`History`] is made of them all and compared with a [`Bound`]:
//!
//! ```text
//! granted - given back in [a, b]  <=  burst + rate * (b - a)        for all a <= b
//! ```
//!
//! Grants count at [`Granted::at`](crate::Granted::at). What came back counts in the intervals in which it came back,
//! and a reset allows one burst more in every interval that holds it. A charge counts, but only
//! grants are judged: it may go into debt, and no grant may come out of that debt until it is paid
//! or a reset forgives it.
//!
//! # Threads that are stopped in the middle
//!
//! A thread that read the clock and was then put to sleep gives back at an old tick, and others
//! spend it at new ones. Where permits come back in a concurrent history, say for each verb when
//! it began and ended, by one clock for all threads ([`Entry::during`]): what came back then counts
//! in every interval with which it may have overlapped. Without it a verb takes no time. A reset then
//! allows, besides its burst, what the rate makes in the time by which the threads' ticks overlapped
//! at it: ticks of before it may be later than ticks of after it.
//!
//! That clock must order its readings with the verbs: `Instant`, or a counter that all increment. The
//! [`SystemClock`](crate::SystemClock) does not between threads, since the processor may read its
//! counter a little early or late. It need not be the clock of the ticks.
//!
//! What came back is recorded in whole permits, a part of one counted whole, so the check is looser by
//! as much for each.
//!
//! # How it is checked
//!
//! The check sorts the events and then looks at each tick once. If `over(b)` is the most by which
//! any interval that ends at `b` exceeds the rate, and `back` is what came back, then
//!
//! ```text
//! over(b) = max(over(previous tick) - rate * (b - previous tick) - back newly overlapping,
//!               - back still overlapping)  +  granted(b)
//! ```
//!
//! and the bound holds if no `over` is above the burst. All of it is exact arithmetic on integers.
//!
//! ```
//! use tollgate::history::{Bound, History, Log};
//! use tollgate::{Limiter, Quota};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let quota = Quota::per_second(1000).burst(50);
//! let gate = Limiter::token_bucket(quota)?;
//! let logs = std::thread::scope(|scope| {
//!     let threads: Vec<_> = (0..4)
//!         .map(|_| {
//!             scope.spawn(|| {
//!                 let mut log = Log::new();
//!                 for _ in 0..1000 {
//!                     if let Ok(granted) = gate.try_acquire() {
//!                         log.granted(&granted);
//!                     }
//!                 }
//!                 log
//!             })
//!         })
//!         .collect();
//!     threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
//! });
//! let history: History = logs.into_iter().collect();
//! let summary = history.check(&Bound::of_quota(quota)?)?;
//! assert!(summary.granted >= 50);
//! # Ok(())
//! # }
//! ```

mod check;
mod log;
#[cfg(test)]
mod tests;

use core::error::Error;
use core::fmt;
use core::time::Duration;

pub use check::History;
pub use log::{Entry, Log};

use crate::clock::Tick;
use crate::quota::{ConfigError, Quota};

/// What a limiter promised: at most `burst + rate * (b - a)` permits in every interval `[a, b]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Everything is counted in the same unit: of it a permit takes `permit`, a full burst has
    /// `burst`, and `rate` of it come in a nanosecond.
    pub(super) permit: u64,
    pub(super) burst: u128,
    pub(super) rate: u64,
}

impl Bound {
    /// The promise of a token bucket or of GCRA with this quota.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the quota has no rate or no burst.
    pub const fn of_quota(quota: Quota) -> Result<Self, ConfigError> {
        match quota.valid_period_ns() {
            Ok(_) if quota.burst_size() == 0 => Err(ConfigError::ZeroBurst),
            Ok(period) => Ok(Self {
                permit: period,
                burst: quota.burst_size() as u128 * period as u128,
                rate: quota.permits(),
            }),
            Err(error) => Err(error),
        }
    }

    /// The promise of GCRA with this emission interval and tolerance: at most
    /// `1 + (tolerance + (b - a)) / interval`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the interval is zero, or one of them above 584 years.
    pub const fn of_interval(interval: Duration, tolerance: Duration) -> Result<Self, ConfigError> {
        let permit = interval.as_nanos();
        if permit == 0 {
            return Err(ConfigError::ZeroInterval);
        }
        if permit > u64::MAX as u128 {
            return Err(ConfigError::IntervalTooLong { interval });
        }
        if tolerance.as_nanos() > u64::MAX as u128 {
            let max = Duration::from_nanos(u64::MAX);
            return Err(ConfigError::ToleranceTooLong { tolerance, max });
        }
        Ok(Self {
            permit: permit as u64,
            burst: permit + tolerance.as_nanos(),
            rate: 1,
        })
    }

    /// How many permits may be granted in an interval of this length.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::history::Bound;
    /// use tollgate::Quota;
    ///
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let bound = Bound::of_quota(Quota::per_second(10).burst(3))?;
    /// assert_eq!(bound.allows(Duration::from_millis(299)), 5);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn allows(&self, length: Duration) -> u128 {
        let made = (self.rate as u128).saturating_mul(length.as_nanos());
        self.burst.saturating_add(made) / self.permit as u128
    }
}

/// What a history that kept the bound has in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Permits granted.
    pub granted: u128,
    /// Permits given back.
    pub gave_back: u128,
    /// Permits charged.
    pub charged: u128,
    /// Resets.
    pub resets: u128,
    /// Distinct ticks at which something happened.
    pub ticks: usize,
}

/// An interval in which more was granted than was promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excess {
    /// Where the interval begins.
    pub from: Tick,
    /// Where it ends.
    pub to: Tick,
    /// What was taken in it, net of what came back; charges are in it.
    pub granted: i128,
    /// What may be granted in an interval of its length, without a reset.
    pub allowed: u128,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} permits were granted from {} ns to {} ns, where at most {} may be",
            self.granted,
            self.from.as_nanos(),
            self.to.as_nanos(),
            self.allowed
        )
    }
}

impl Error for Excess {}
