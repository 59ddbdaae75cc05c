//! The exact log: a ring of the ticks of the last permits. A decision on one permit exchanges the
//! oldest entry. A decision on several marks it as a claim, and then writes the other entries. If
//! the thread stops in between, other threads do the second step for it. [`shape`] defines the
//! layout of the words, [`claim`] the protocol.

mod claim;
mod shape;

use core::fmt;
use core::time::Duration;

use claim::LogView;
use shape::{LogLayout, MAX_LOG, is_told};

use crate::algorithm::period_of;
use crate::clock::{SystemClock, Tick};
use crate::limiter_error::LimiterError;
use crate::multiword::verbs::verbs_by_ticks;
use crate::outcome::{Denied, Granted};
use crate::quota::Quota;
use crate::sync::{AtomicU64, Backoff};

/// A sliding log: remembers when each permit was taken, and never grants more than `n` in any
/// interval of the window's length, wherever it begins.
///
/// Being exact takes memory: 8 bytes a permit, for at most [`MAX_PERMITS`](Self::MAX_PERMITS)
/// permits. If a small error does not matter, a [`SlidingWindow`](crate::SlidingWindow) takes one
/// word, and a [`SlottedWindow`](crate::SlottedWindow) one word for each slot.
///
/// **Bound.** Of any `n + 1` consecutive permits, the last is counted at least a period after the
/// first ([`Granted::at`]), for any number of threads. A request for several permits gets all of
/// them or none.
///
/// If a caller's tick is older than the newest permit, its permits count at the tick of that
/// permit. Permits can't be given back, and there is no debt: each permit occupies an entry for a
/// period.
///
/// (There is one imprecision. A thread may stop after its decision on several permits, while other
/// threads take about `n` more. The grant that it then returns may name an earlier tick than the
/// one at which its permits count.)
///
/// ```
/// use std::time::Duration;
/// use tollgate::{ManualClock, Quota, SlidingLog};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new();
/// let limiter = SlidingLog::with_clock(Quota::per_minute(3), clock.clone())?;
/// limiter.try_acquire_n(2)?;
/// clock.advance(Duration::from_secs(50));
/// limiter.try_acquire()?;
/// let denied = limiter.try_acquire_n(3).unwrap_err();
/// assert_eq!(denied.retry_after(), Some(Duration::from_secs(60)));
/// clock.advance(Duration::from_secs(10));
/// assert_eq!(limiter.available(), 2);
/// # Ok(())
/// # }
/// ```
#[repr(C)]
pub struct SlidingLog<C = SystemClock> {
    // The head comes first, next to the parameters that every decision reads.
    head: AtomicU64,
    shape: LogLayout,
    ring: Box<[AtomicU64]>,
    /// At least the tick of each claim of several permits.
    claimed_at: AtomicU64,
    quota: Quota,
    clock: C,
}

impl SlidingLog {
    /// The largest number of permits that a log can keep.
    pub const MAX_PERMITS: u64 = MAX_LOG;

    /// Creates a log that is as long as the quota's period, on the system clock.
    ///
    /// # Errors
    ///
    /// [`LimiterError`] names what can't be represented, and what is allowed: from 1 to
    /// [`Self::MAX_PERMITS`](Self::MAX_PERMITS) permits, with a burst of the same number.
    ///
    /// ```
    /// use tollgate::error::LimiterError;
    /// use tollgate::{Quota, SlidingLog};
    ///
    /// let error = SlidingLog::new(Quota::per_hour(9_000_000)).unwrap_err();
    /// assert_eq!(error, LimiterError::LogTooLarge { n: 9_000_000, max: SlidingLog::MAX_PERMITS });
    /// ```
    pub fn new(quota: Quota) -> Result<Self, LimiterError> {
        Self::with_clock(quota, SystemClock)
    }
}

impl<C> SlidingLog<C> {
    /// Creates a log that is as long as the quota's period, on a clock of your own.
    ///
    /// # Errors
    ///
    /// The same as for [`new`](SlidingLog::new).
    pub fn with_clock(quota: Quota, clock: C) -> Result<Self, LimiterError> {
        let (period, n) = (period_of(quota)?, quota.permits());
        quota.check_is_window()?;
        if n > MAX_LOG {
            return Err(LimiterError::LogTooLarge { n, max: MAX_LOG });
        }
        Ok(Self {
            head: AtomicU64::new(0),
            shape: LogLayout::new(n, period.get()),
            ring: (0..n).map(|_| AtomicU64::new(0)).collect(),
            claimed_at: AtomicU64::new(0),
            quota,
            clock,
        })
    }

    /// Takes `n` permits or none at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if fewer than `n` permits are available.
    #[inline(always)]
    pub(crate) fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        if n == 1 {
            if let Some(outcome) = self.try_one(now) {
                return outcome;
            }
        }
        self.try_all(n, now)
    }

    /// Decides on one permit in a single attempt. `None` if another thread interferes; use the slow
    /// path.
    #[inline(always)]
    fn try_one(&self, now: Tick) -> Option<Result<Granted, Denied>> {
        let view = self.glance(now)?;
        let expiry = self.shape.expiry(view.oldest);
        if expiry > view.now {
            return Some(Err(denied(expiry, 1, now)));
        }
        Some(Ok(self.granted(1, self.claim_one(&view)?, now)))
    }

    /// Decides in any state of the log.
    #[cold]
    #[inline(never)]
    fn try_all(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        if n > self.shape.limit {
            return Err(Denied::never(n, self.shape.limit));
        }
        if n == 0 {
            // A log is never in debt.
            return Ok(self.granted_none(&self.look(now), now));
        }
        let mut backoff = Backoff::new();
        // A request for one permit gets here if another thread disturbed its first attempt.
        let mut was_disturbed = n == 1;
        loop {
            if core::mem::replace(&mut was_disturbed, true) {
                backoff.wait();
            }
            let view = self.look(now);
            let expiry = self.shape.expiry(self.oldest(&view, n));
            if expiry <= view.now {
                // If this fails, another thread claimed first.
                if let Some(at) = self.claim(&view, n) {
                    return Ok(self.granted(n, at, now));
                }
            } else if self.still(&view) {
                return Err(denied(expiry, n, now));
            }
        }
    }

    /// Returns the grant. It leaves out how many permits remain, since counting them takes a
    /// search.
    #[inline(always)]
    fn granted(&self, n: u64, at: u64, now: Tick) -> Granted {
        let idle_at = Tick::from_nanos(at + self.shape.period);
        Granted::new(n, counted_at(at, now)).with_reset_at(idle_at)
    }

    fn granted_none(&self, view: &LogView, now: Tick) -> Granted {
        let idle_at = Tick::from_nanos(self.shape.expiry(view.newest));
        Granted::new(0, counted_at(view.now, now)).with_reset_at(idle_at)
    }

    /// Takes up to `n` permits at this tick.
    #[must_use = "the grant says how many permits were taken"]
    pub(crate) fn take_up_to_at(&self, n: u64, now: Tick) -> Granted {
        loop {
            let view = self.look(now);
            match self.expired(&view).min(n) {
                0 if n == 0 || self.still(&view) => return self.granted_none(&view, now),
                0 => {}
                n => {
                    if let Some(at) = self.claim(&view, n) {
                        return self.granted(n, at, now);
                    }
                }
            }
        }
    }

    /// Returns what [`try_acquire_n`](Self::try_acquire_n) would answer. Takes nothing.
    ///
    /// # Errors
    ///
    /// The [`Denied`] that the request would get.
    pub(crate) fn check_n_at(&self, n: u64, now: Tick) -> Result<(), Denied> {
        if n > self.shape.limit {
            return Err(Denied::never(n, self.shape.limit));
        }
        match self.time_until_at(n, now) {
            Some(Duration::ZERO) => Ok(()),
            Some(wait) => Err(Denied::later(n, wait)),
            None => Err(Denied::stuck(n)),
        }
    }

    /// Returns how many permits are [available](Self::available) at this tick.
    pub(crate) fn available_at(&self, now: Tick) -> u64 {
        loop {
            let view = self.look(now);
            let expired = self.expired(&view);
            if self.still(&view) {
                return expired;
            }
        }
    }

    /// Returns how long it takes until `n` permits are available.
    pub(crate) fn time_until_at(&self, n: u64, now: Tick) -> Option<Duration> {
        if n > self.shape.limit {
            return None;
        }
        if n == 0 {
            return Some(Duration::ZERO);
        }
        loop {
            let view = self.look(now);
            let expiry = self.shape.expiry(self.oldest(&view, n));
            if self.still(&view) {
                return match expiry <= view.now {
                    true => Some(Duration::ZERO),
                    false => Some(due(expiry)?.saturating_since(now)),
                };
            }
        }
    }
}

/// Returns the tick at which permits count. At the end of time, where the log can't represent later
/// ticks, that is the caller's own.
#[inline(always)]
const fn counted_at(at: u64, now: Tick) -> Tick {
    match is_told(now.as_nanos()) {
        true => Tick::from_nanos(at),
        false => now,
    }
}

/// Returns the tick at which a permit expires, if it can be represented.
fn due(expiry: u64) -> Option<Tick> {
    is_told(expiry).then(|| Tick::from_nanos(expiry))
}

#[inline(always)]
fn denied(expiry: u64, n: u64, now: Tick) -> Denied {
    match due(expiry) {
        Some(due) => Denied::later(n, due.saturating_since(now)),
        None => Denied::stuck(n),
    }
}

verbs_by_ticks!(SlidingLog: take_verbs, forecast_verbs);

impl<C: fmt::Debug> fmt::Debug for SlidingLog<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlidingLog")
            .field("quota", &self.quota)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
