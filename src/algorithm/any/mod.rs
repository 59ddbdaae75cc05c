//! One of the crate's algorithms, chosen at run time.

mod text;

pub use text::ParseAlgorithmError;

use super::delegate::runs_on;
use super::{
    ChangeQuota, FixedWindow, Gcra, Intervals, LeakyBucket, Level, SlidingWindow, TokenBucket,
    carry,
};
use crate::clock::{Tick, UtcClock};
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::{ConfigError, Quota};

/// Any algorithm of this crate, for code that learns at run time which one it is to be.
///
/// It has all the verbs but those that wait, which not all of them can have, and costs one
/// predictable branch more than the algorithm itself. It is read from text and written as text (and
/// so by `serde`, with that feature):
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
/// A quota is written as [`Quota`] says: `100/s burst 20 initial 5`. Windows have no burst and no
/// initial. A quota without a name is a token bucket's.
///
/// ```
/// use tollgate::{AnyAlgorithm, FixedWindow, Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::new("gcra 100/s burst 20".parse::<AnyAlgorithm>()?);
/// assert_eq!(limiter.available(), 20);
///
/// let window: AnyAlgorithm = FixedWindow::new(Quota::per_minute(1000))?.into();
/// assert_eq!(window.to_string(), "fixed-window 1000/min");
/// assert_eq!("fixed-window 1000 per 60 seconds".parse(), Ok(window));
/// assert_eq!("100/s burst 20".parse::<AnyAlgorithm>()?.to_string(), "token-bucket 100/s burst 20");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AnyAlgorithm {
    /// Permits drop in at a steady rate.
    TokenBucket(TokenBucket),
    /// The same, seen in time.
    Gcra(Gcra),
    /// Requests run out at a steady rate.
    LeakyBucket(LeakyBucket),
    /// So many in each period.
    FixedWindow(FixedWindow),
    /// So many in the last period.
    SlidingWindow(SlidingWindow),
    /// Permits come all at once.
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

runs_on!(AnyAlgorithm, any_of);

impl AnyAlgorithm {
    /// The same on this clock, which must be that of the limiter: windows whose text says `utc`
    /// begin with the periods of UTC there. Without it they do on the
    /// [`SystemClock`](crate::clock::SystemClock). All other algorithms stay as they are.
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

    /// The same algorithm, with all that was said besides the quota; but for a tolerance, which
    /// goes with its interval.
    fn with_quota(&self, quota: Quota) -> Result<Self, ConfigError> {
        any_of!(self, core => core.with_quota(quota).map(Self::from))
    }

    /// Also from one algorithm to another: then whole permits are carried over.
    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        match (self, next) {
            (Self::TokenBucket(this), Self::TokenBucket(next)) => this.carry_over(word, now, next),
            (Self::Gcra(this), Self::Gcra(next)) => this.carry_over(word, now, next),
            (Self::LeakyBucket(this), Self::LeakyBucket(next)) => this.carry_over(word, now, next),
            (Self::FixedWindow(this), Self::FixedWindow(next)) => this.carry_over(word, now, next),
            (Self::SlidingWindow(this), Self::SlidingWindow(next)) => {
                this.carry_over(word, now, next)
            }
            (Self::Intervals(this), Self::Intervals(next)) => this.carry_over(word, now, next),
            (this, next) => carry::by_permits(this, word, now, next),
        }
    }

    fn carry_scaled(&self, word: u64, now: Tick, next: &Self) -> u64 {
        match (self, next) {
            (Self::TokenBucket(this), Self::TokenBucket(next)) => {
                this.carry_scaled(word, now, next)
            }
            (Self::Gcra(this), Self::Gcra(next)) => this.carry_scaled(word, now, next),
            (Self::LeakyBucket(this), Self::LeakyBucket(next)) => {
                this.carry_scaled(word, now, next)
            }
            (Self::FixedWindow(this), Self::FixedWindow(next)) => {
                this.carry_scaled(word, now, next)
            }
            (Self::SlidingWindow(this), Self::SlidingWindow(next)) => {
                this.carry_scaled(word, now, next)
            }
            (Self::Intervals(this), Self::Intervals(next)) => this.carry_scaled(word, now, next),
            // Others count whole permits.
            (this, next) => carry::scaled(this, word, now, next),
        }
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
