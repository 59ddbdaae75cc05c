use core::fmt;
use core::time::Duration;

use super::Reservation;
use crate::algorithm::Gcra;
use crate::clock::{Clock, SleepClock, SystemClock, Tick};
use crate::limiter::Limiter;
use crate::outcome::Denied;
use crate::quota::{ConfigError, Quota};

/// Spaces work evenly: each [`acquire`](Self::acquire) returns when the next piece of work may
/// begin.
///
/// A pacer is a [`Gcra`] limiter that starts with one permit and has a burst of `slack + 1`. Each
/// permit is a turn.
///
/// The *slack* is how many unused turns are kept: 10, unless [`with_slack`](Self::with_slack) sets
/// another number. A late caller can catch up, since it gets these turns at once. With a slack of
/// 0, turns are always at least an interval apart. Each deadline follows the previous deadline and
/// not the previous wake-up, so sleeping a little too long each time does not lower the long-run
/// rate.
///
/// **Bound.** At most `1 + slack + rate * (b - a)` turns in every interval `[a, b]`.
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
    /// Makes a pacer with the quota's rate and a slack of 10 intervals. The quota's burst is
    /// ignored.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the field of the quota that cannot be represented, and the allowed
    /// values.
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        Self::with_slack(quota, SLACK)
    }

    /// Makes a pacer with this slack, in intervals. A slack of 0 gives strictly even spacing.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new). A slack that is too large is reported as a burst that is too large.
    pub fn with_slack(quota: Quota, slack: u64) -> Result<Self, ConfigError> {
        Self::with_clock(quota, slack, SystemClock)
    }
}

impl<C: Clock> Pacer<C> {
    /// Takes the next turn. [`Reservation::due`] says when the work may begin. A caller that
    /// changes its mind can [cancel](Reservation::cancel) the reservation.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the turn lies beyond the clock's end.
    pub fn reserve(&self) -> Result<Reservation<&Limiter<Gcra, C>>, Denied> {
        self.limiter.reserve(1)
    }

    /// Returns this pacer for callers that wait in futures:
    /// `pacer.with_timer(timer).acquire().await`.
    #[cfg(feature = "wait")]
    pub fn with_timer<T: crate::clock::Timer>(
        &self,
        timer: T,
    ) -> super::AsyncLimiter<&Limiter<Gcra, C>, T> {
        self.limiter.with_timer(timer)
    }
}

impl<C> Pacer<C> {
    /// Makes a pacer with this slack and a clock of your own. The pacer starts at its first use,
    /// with no turns to catch up on.
    ///
    /// # Errors
    ///
    /// As [`with_slack`](Pacer::with_slack).
    pub fn with_clock(quota: Quota, slack: u64, clock: C) -> Result<Self, ConfigError> {
        let quota = quota.burst(slack.saturating_add(1)).initial(1);
        let limiter = Limiter::unstarted(Gcra::new(quota)?, clock);
        Ok(Self { limiter })
    }

    pub(crate) const fn limiter(&self) -> &Limiter<Gcra, C> {
        &self.limiter
    }

    /// [`reserve`](Self::reserve) at the tick `now`.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the turn lies beyond the clock's end.
    pub fn reserve_at(&self, now: Tick) -> Result<Reservation<&Limiter<Gcra, C>>, Denied> {
        self.limiter.reserve_at(1, now)
    }

    /// Returns the time from one turn to the next, rounded down to a nanosecond.
    pub fn interval(&self) -> Duration {
        let quota = self.limiter.quota();
        let nanos = quota.period().as_nanos() / u128::from(quota.permits().max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns how many intervals a late caller may catch up on.
    pub fn slack(&self) -> u64 {
        self.limiter.quota().burst_size().saturating_sub(1)
    }
}

impl<C: SleepClock> Pacer<C> {
    /// Blocks this thread until the next piece of work may begin, and returns that tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the turn lies beyond the clock's end.
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
