//! Any of the crate's algorithms, chosen at run time.

mod text;

pub use text::ParseAlgorithmError;

use super::delegate::{reserves_on, runs_on};
use super::{
    ChangeQuota, FixedWindow, Gcra, Intervals, LeakyBucket, Level, SlidingWindow, TokenBucket,
    carry,
};
use crate::clock::{Tick, UtcClock};
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::{Quota, QuotaError};

/// Any algorithm of this crate, for code that chooses one at run time.
///
/// It supports all verbs. Those that wait (`reserve`, `blocking_acquire`) wait for all algorithms
/// except `fixed-window`, and `greedy` intervals with a burst below `n`. For these two they grant
/// only permits that are available now. Otherwise they return [`Denied::Later`] at once, whose
/// `retry_after` says when to try again. [`Reserve`](crate::algorithm::Reserve) says why.
///
/// A decision costs one predictable branch more than with the algorithm itself. It can be parsed
/// from text and written as text (with the feature `serde`, also by serde):
///
/// ```text
/// [token-bucket]  QUOTA
/// gcra            QUOTA                          or  gcra 1/10ms tolerance 25ms
/// leaky-meter     QUOTA
/// leaky-queue     QUOTA [free NUMBER]
/// fixed-window    QUOTA [utc | origin TIME] [offset TIME]   or  QUOTA first-hit
/// sliding-window  QUOTA [utc | origin TIME] [offset TIME] [rounding down]
/// intervals       QUOTA [utc | origin TIME] [offset TIME]   or  QUOTA greedy
/// ```
///
/// A quota is written as described at [`Quota`]: `100/s burst 20 initial 5`. Windows take neither
/// `burst` nor `initial`. A quota without an algorithm's name is a token bucket.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{AnyAlgorithm, FixedWindow, Limiter, ManualClock, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::new("gcra 100/s burst 20".parse::<AnyAlgorithm>()?);
/// assert_eq!(limiter.available(), 20);
///
/// let window: AnyAlgorithm = FixedWindow::new(Quota::per_minute(1000))?.into();
/// assert_eq!(window.to_string(), "fixed-window 1000/min");
/// assert_eq!("fixed-window 1000 per 60 seconds".parse(), Ok(window));
/// assert_eq!("100/s burst 20".parse::<AnyAlgorithm>()?.to_string(), "token-bucket 100/s burst 20");
///
/// let clock = ManualClock::new();
/// let limiter = Limiter::with_clock("sliding-window 1/s".parse::<AnyAlgorithm>()?, clock.clone());
/// assert!(limiter.reserve(1)?.is_due());
/// assert_eq!(limiter.reserve(1)?.delay(), Duration::from_secs(2));
///
/// // A fixed window has no reservations.
/// let limiter = Limiter::with_clock("fixed-window 1/s".parse::<AnyAlgorithm>()?, clock);
/// assert!(limiter.reserve(1)?.is_due());
/// let denied = limiter.reserve(1).unwrap_err();
/// assert_eq!(denied.retry_after(), Some(Duration::from_secs(1)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
// A tag of its own: one that is hidden in a field of a variant costs each decision four
// instructions.
#[repr(u64)]
pub enum AnyAlgorithm {
    /// Permits are added at a steady rate, up to a burst.
    TokenBucket(TokenBucket),
    /// The token bucket's decisions, expressed in time.
    Gcra(Gcra),
    /// Requests leak at a steady rate.
    LeakyBucket(LeakyBucket),
    /// Up to `n` permits in each period.
    FixedWindow(FixedWindow),
    /// Up to `n` permits in the last period.
    SlidingWindow(SlidingWindow),
    /// All permits of a period are added at once.
    Intervals(Intervals),
}

macro_rules! any_of {
    ($this:ident, $core:ident => $call:expr) => {
        match $this {
            AnyAlgorithm::TokenBucket($core) => $call,
            AnyAlgorithm::Gcra($core) => $call,
            AnyAlgorithm::LeakyBucket($core) => $call,
            AnyAlgorithm::FixedWindow($core) => $call,
            AnyAlgorithm::SlidingWindow($core) => $call,
            AnyAlgorithm::Intervals($core) => $call,
        }
    };
}

pub(super) use any_of;

/// Evaluates the first expression if both are of the same kind, with both names bound to what is
/// inside, and otherwise the second.
macro_rules! of_same_kind {
    (($one:expr, $next:ident), $this:ident => $same:expr, else $other:expr) => {
        of_same_kind!(
            ($one, $next), $this => $same, else $other;
            TokenBucket Gcra LeakyBucket FixedWindow SlidingWindow Intervals
        )
    };
    (($one:expr, $next:ident), $this:ident => $same:expr, else $other:expr; $($kind:ident)*) => {
        match ($one, $next) {
            $((AnyAlgorithm::$kind($this), AnyAlgorithm::$kind($next)) => $same,)*
            _ => $other,
        }
    };
}

runs_on!(AnyAlgorithm, any_of);
reserves_on!(AnyAlgorithm, any_of);

impl AnyAlgorithm {
    /// Aligns windows whose text says `utc` to UTC on this clock, which must be the limiter's
    /// clock. Without this they are aligned for the [`SystemClock`](crate::clock::SystemClock). All
    /// other algorithms stay as they are.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{AnyAlgorithm, Limiter, ManualClock};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let hour = Duration::from_secs(3600);
    /// let clock = ManualClock::with_unix_origin(20_000 * 24 * hour + 23 * hour);
    /// let daily: AnyAlgorithm = "fixed-window 5/d utc".parse()?;
    /// let limiter = Limiter::with_clock(daily.with_utc_of(&clock), clock.clone());
    /// limiter.try_acquire_n(5)?;
    /// clock.advance(hour); // to midnight
    /// assert_eq!(limiter.available(), 5);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_utc_of(self, clock: &impl UtcClock) -> Self {
        let origin = clock.unix_origin();
        match self {
            Self::FixedWindow(this) => Self::FixedWindow(this.with_utc_origin(origin)),
            Self::SlidingWindow(this) => Self::SlidingWindow(this.with_utc_origin(origin)),
            Self::Intervals(this) => Self::Intervals(this.with_utc_origin(origin)),
            other => other,
        }
    }
}

impl ChangeQuota for AnyAlgorithm {
    fn quota(&self) -> Quota {
        any_of!(self, core => core.quota())
    }

    /// Keeps all other options of the algorithm, except a tolerance, which makes sense only with
    /// its interval.
    fn with_quota(&self, quota: Quota) -> Result<Self, QuotaError> {
        any_of!(self, core => core.with_quota(quota).map(Self::from))
    }

    /// Carries the word over even to another algorithm, in whole permits.
    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        of_same_kind!((self, next), this => this.carry_over(word, now, next), else {
            carry::by_permits(self, word, now, next)
        })
    }

    fn carry_scaled(&self, word: u64, now: Tick, next: &Self) -> u64 {
        of_same_kind!((self, next), this => this.carry_scaled(word, now, next), else {
            // Between different algorithms, whole permits are scaled.
            carry::scaled(self, word, now, next)
        })
    }

    fn carry_used(&self, word: u64, now: Tick, next: &Self) -> u64 {
        of_same_kind!((self, next), this => this.carry_used(word, now, next), else {
            carry::by_level(self, word, now, next)
        })
    }
}

macro_rules! from_each {
    ($($algorithm:ident)*) => {$(
        impl From<$algorithm> for AnyAlgorithm {
            #[inline]
            fn from(algorithm: $algorithm) -> Self {
                Self::$algorithm(algorithm)
            }
        }
    )*};
}

from_each!(TokenBucket Gcra LeakyBucket FixedWindow SlidingWindow Intervals);
