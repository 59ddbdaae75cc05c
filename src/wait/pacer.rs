use core::fmt;
use core::time::Duration;

use super::Reservation;
use crate::algorithm::Gcra;
use crate::clock::{Clock, SleepClock, SystemClock, Tick};
use crate::limiter::Limiter;
use crate::outcome::Denied;
use crate::quota::{ConfigError, Quota};

/// Spreads work evenly: each [`acquire`](Self::acquire) returns when the next piece may begin.
///
/// [`Limiter::reserve`] on a [`Gcra`] limiter does the same; a pacer adds the slack and sleeps.
///
/// A late caller may catch up: turns that were not taken are kept, up to 10 intervals, and the next
/// callers get them at once. [`with_slack`](Self::with_slack) sets another number. With a slack of
/// 0, turns are always at least an interval apart. Deadlines follow one another on the clock, and
/// not each other's wake-ups, so the rate is kept in the long run though each sleeps a little too
/// long.
///
/// **Bound.** In every interval `[a, b]` at most `1 + slack + rate * (b - a)`.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{ManualClock, Pacer, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new();
/// let pacer = Pacer::with_clock(Quota::per_second(100), 10, clock.clone())?;
/// let mut times = Vec::new();
/// for _ in 0..4 {
///     let due = pacer.reserve()?.due();
///     clock.set(due); // or pacer.acquire(), which sleeps until then
///     times.push(due.as_nanos() / 1_000_000);
/// }
/// assert_eq!(times, [0, 10, 20, 30]);
///
/// clock.advance(Duration::from_secs(1)); // no caller came
/// assert!((0..11).all(|_| pacer.reserve().unwrap().is_due()));
/// assert_eq!(pacer.reserve()?.delay(), Duration::from_millis(10));
/// # Ok(())
/// # }
/// ```
pub struct Pacer<C = SystemClock> {
    limiter: Limiter<Gcra, C>,
}

/// The slack of [`Pacer::new`], in intervals.
const SLACK: u64 = 10;

impl Pacer {
    /// A pacer with the quota's rate, and a slack of 10 intervals. (The quota's burst has no
    /// meaning here.)
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the field of the quota that can't be represented, and what is allowed.
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        Self::with_slack(quota, SLACK)
    }

    /// The same with this slack, in intervals: 0 for strictly even spacing.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] as [`new`](Self::new); a slack that does not fit is a burst that is too
    /// large.
    pub fn with_slack(quota: Quota, slack: u64) -> Result<Self, ConfigError> {
        Self::with_clock(quota, slack, SystemClock)
    }
}

impl<C: Clock> Pacer<C> {
    /// When the next piece of work may begin: [`Reservation::due`]. A caller that changes its mind
    /// may [cancel](Reservation::cancel).
    ///
    /// # Errors
    ///
    /// [`Denied`] if the clock will not get there.
    pub fn reserve(&self) -> Result<Reservation<&Limiter<Gcra, C>>, Denied> {
        self.limiter.reserve(1)
    }

    /// The same futures that other limiters have: `pacer.with_timer(timer).acquire().await`.
    #[cfg(feature = "wait")]
    pub fn with_timer<T: crate::clock::Timer>(
        &self,
        timer: T,
    ) -> super::AsyncLimiter<&Limiter<Gcra, C>, T> {
        self.limiter.with_timer(timer)
    }
}

impl<C> Pacer<C> {
    /// The same on a clock of your own. It starts with its first use: there is nothing to catch up
    /// with then.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] as [`with_slack`](Pacer::with_slack).
    pub fn with_clock(quota: Quota, slack: u64, clock: C) -> Result<Self, ConfigError> {
        let quota = quota.burst(slack.saturating_add(1)).initial(1);
        let limiter = Limiter::unstarted(Gcra::new(quota)?, clock);
        Ok(Self { limiter })
    }

    pub(crate) const fn limiter(&self) -> &Limiter<Gcra, C> {
        &self.limiter
    }

    /// [`reserve`](Self::reserve) at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the clock will not get there.
    pub fn reserve_at(&self, now: Tick) -> Result<Reservation<&Limiter<Gcra, C>>, Denied> {
        self.limiter.reserve_at(1, now)
    }

    /// The time from one piece of work to the next, rounded down to a nanosecond.
    pub fn interval(&self) -> Duration {
        let quota = self.limiter.quota();
        let nanos = quota.period().as_nanos() / u128::from(quota.permits().max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many intervals a late caller may catch up with.
    pub fn slack(&self) -> u64 {
        self.limiter.quota().burst_size().saturating_sub(1)
    }
}

impl<C: SleepClock> Pacer<C> {
    /// Blocks this thread until the next piece of work may begin, and returns the tick at which
    /// that was.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the clock will not get there.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pacer = tollgate::Pacer::with_slack(tollgate::Quota::per_second(1000), 0)?;
    /// let first = pacer.acquire()?;
    /// let second = pacer.acquire()?;
    /// assert!(second.saturating_since(first) >= pacer.interval());
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire(&self) -> Result<Tick, Denied> {
        Ok(self.limiter.acquire()?.at())
    }
}

impl<C: fmt::Debug> fmt::Debug for Pacer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pacer")
            .field("interval", &self.interval())
            .field("slack", &self.slack())
            .field("clock", self.limiter.clock())
            .finish()
    }
}
