//! The leaky bucket. Its word is that of a [`Pace`]: what is in the bucket is what it stands above
//! the clock.

use super::Level;
use super::delegate::runs_on;
use super::pace::Pace;
use super::settings::{NO_QUOTA, Settings, settings};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::{ConfigError, Quota};

/// The leaky bucket: requests drop in, and run out at a steady rate; a request that does not fit is
/// denied.
///
/// - As a [`meter`](Self::meter) it polices: a request that fits may go at once. It decides as the
///   [`TokenBucket`](crate::TokenBucket) of the same quota does, seen from the other side:
///   [`level`](crate::Limiter::level) is what is in it.
/// - As a [`queue`](Self::queue) it shapes: a request that fits is admitted, and told by
///   [`granted.delay()`](Granted::delay) how long to wait, so that all leave at the quota's rate.
///
/// **Bound.** Of both: in every interval `[a, b]` at most `burst + rate * (b - a)` permits are
/// admitted. Of the queue besides: in every interval at most `max(free + 1, k) + rate * (b - a + 1
/// ns)` leave, if all wait as they are told, none asks for more than `k` at once, and nothing is
/// given back: that makes room for others, but calls nobody back who was told to wait. (Waits are
/// whole nanoseconds, so two permits may leave a part of one nearer to each other. Where the
/// interval is whole too, they don't.)
///
/// What is said of the [`TokenBucket`](crate::TokenBucket)'s exactness holds here. No permit leaves
/// early; where the rate is exact, each leaves at the first nanosecond at which it may, and
/// elsewhere at most one later.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{LeakyBucket, Limiter, ManualClock, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // nginx's `rate=10r/s burst=4 delay=1`: one request is served, four more may queue, and the
/// // first of these goes at once.
/// let queue = LeakyBucket::queue(Quota::per_second(10).burst(5))?.free(1);
/// let limiter = Limiter::with_clock(queue, ManualClock::new());
/// let mut delays = Vec::new();
/// while let Ok(granted) = limiter.try_acquire() {
///     delays.push(granted.delay().as_millis());
/// }
/// assert_eq!(delays, [0, 0, 100, 200, 300]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct LeakyBucket {
    pace: Pace,
    /// How far above the clock a permit may end and go without delay, in units.
    at_once: u64,
    /// How many permits ahead of the rate go without delay; all, if it is [`u64::MAX`].
    free: u64,
    quota: Quota,
}

impl LeakyBucket {
    /// Polices: it holds the quota's burst, and runs out at its rate.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the field of the quota that can't be represented, and what is
    /// allowed.
    pub const fn meter(quota: Quota) -> Result<Self, ConfigError> {
        match Pace::from_quota(quota) {
            Ok(pace) => Ok(Self {
                pace,
                at_once: u64::MAX,
                free: u64::MAX,
                quota,
            }),
            Err(error) => Err(error),
        }
    }

    /// Shapes: it holds the quota's burst, the request that is being served among it, and all
    /// leave at the quota's rate.
    ///
    /// The permits of one request leave one by one as well, and a reservation is due when the last
    /// of them leaves. A request for more than leave within the caller's patience is denied with
    /// [`Denied::Never`]. (At rates that are not exact, allow a nanosecond more.)
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the field of the quota that can't be represented, and what is
    /// allowed.
    pub const fn queue(quota: Quota) -> Result<Self, ConfigError> {
        match Self::meter(quota) {
            Ok(meter) => Ok(meter.free(0)),
            Err(error) => Err(error),
        }
    }

    /// Up to so many permits ahead of the rate go without delay, and what comes after them as
    /// much earlier. [`u64::MAX`] makes it a meter.
    #[must_use]
    pub const fn free(self, permits: u64) -> Self {
        let unit = self.pace.unit();
        Self {
            at_once: permits.saturating_mul(unit).saturating_add(unit),
            free: permits,
            ..self
        }
    }

    /// How many permits ahead of the rate go without delay; `None` if it is a meter, where all do.
    pub const fn free_permits(&self) -> Option<u64> {
        match self.free {
            u64::MAX => None,
            free => Some(free),
        }
    }

    pub(super) const fn pace(&self) -> &Pace {
        &self.pace
    }

    /// The same at another pace.
    pub(super) const fn at_pace(&self, pace: Pace) -> Self {
        Self { pace, ..*self }
    }
}

/// A pace whose grants say when they may go.
struct Shaped<'a> {
    pace: &'a Pace,
    at_once: u64,
}

impl Shaped<'_> {
    #[inline(always)]
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        let (next, granted) = self.pace.step(word, now, n)?;
        Ok((next, self.delayed(granted, word, next, now)))
    }

    #[inline(always)]
    fn short_step(&self, word: u64, now: Tick, n: u64) -> Option<Result<(u64, Granted), Denied>> {
        Some(self.step(word, now, n))
    }

    #[inline]
    fn take_up_to(&self, word: u64, now: Tick, n: u64) -> (u64, Granted) {
        let (next, granted) = self.pace.take_up_to(word, now, n);
        (next, self.delayed(granted, word, next, now))
    }

    #[inline(always)]
    fn delayed(&self, granted: Granted, word: u64, next: u64, now: Tick) -> Granted {
        match self.leaves(granted.n(), word, next, now) {
            Some(units) => granted.with_ready_units(units),
            None => granted,
        }
    }

    /// When the last of the permits leaves: when the clock has made this many units, or at once if
    /// `None`. It leaves after all permits before it, except for the free ones.
    #[inline(always)]
    fn leaves(&self, n: u64, word: u64, next: u64, now: Tick) -> Option<u64> {
        // The base of an idle bucket is a unit above the clock where a clock is not exact: a permit
        // that finds it idle is not delayed for that.
        let base = if self.pace.is_idle(word, now) {
            self.pace.base(now)
        } else {
            self.pace.made(now)
        };
        if n == 0 || next.saturating_sub(base) <= self.at_once {
            None
        } else {
            Some(next - self.at_once)
        }
    }
}

macro_rules! its_shaped_pace {
    ($this:ident, $core:ident => $call:expr) => {{
        let $core = Shaped {
            pace: &$this.pace,
            at_once: $this.at_once,
        };
        $call
    }};
}

impl core::ops::Deref for Shaped<'_> {
    type Target = Pace;

    #[inline(always)]
    fn deref(&self) -> &Pace {
        self.pace
    }
}

runs_on!(LeakyBucket, its_shaped_pace);
settings!(LeakyBucket, 10, "leaky-bucket", if LeakyBucket::fits; pace at_once free; quota = NO_QUOTA);

impl LeakyBucket {
    /// The next word, the grant of `n` permits, and when the last of them leaves.
    #[inline(always)]
    fn leaving(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted, Tick), Denied> {
        let (next, granted) = self.pace.reserve(word, now, n, Tick::MAX)?;
        let shaped = Shaped {
            pace: &self.pace,
            at_once: self.at_once,
        };
        let leaves = match shaped.leaves(n, word, next, now) {
            Some(units) => self.pace.tick_of(units),
            None => Some(now),
        };
        let due = leaves.ok_or(Denied::stuck(n))?.max(granted.due());
        Ok((next, granted, due))
    }

    /// The denial of `n` permits that would leave at `due`. They leave one after the other from an
    /// empty queue as well: a caller that can't wait that long is never served.
    #[cold]
    fn too_late(&self, word: u64, now: Tick, n: u64, latest: Tick, due: Tick) -> Denied {
        let (patience, wait) = (latest.saturating_since(now), due.saturating_since(latest));
        let then = now.saturating_add(wait);
        match self.leaving(word, then, n) {
            Ok((_, _, due)) if due.saturating_since(then) > patience => {
                let patience = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
                let served = self
                    .pace
                    .made(Tick::from_nanos(patience))
                    .saturating_add(self.at_once);
                let limit = served / self.pace.unit();
                Denied::never(n, limit.min(n.saturating_sub(1)))
            }
            Ok(_) => Denied::later(n, wait),
            Err(denied) => denied,
        }
    }

    fn fits(&self) -> bool {
        self.pace.is_sound() && self.at_once >= self.pace.unit()
    }
}

/// Permits of a queue are due when they leave it. A reservation made while the queue is full leaves
/// in its turn.
impl crate::algorithm::Reserve for LeakyBucket {
    #[inline]
    fn reserve(
        &self,
        word: u64,
        now: Tick,
        n: u64,
        latest: Tick,
    ) -> Result<(u64, Granted), Denied> {
        let (next, granted, due) = self.leaving(word, now, n)?;
        let latest = latest.max(now);
        if due > latest {
            return Err(self.too_late(word, now, n, latest, due));
        }
        Ok((next, granted.with_ready_at(due)))
    }

    #[inline]
    fn cancel(&self, word: u64, now: Tick, granted: &Granted, n: u64) -> (u64, Granted, u64) {
        self.pace.cancel_of(self.at_once, word, now, granted, n)
    }

    #[inline]
    fn waiting(&self, word: u64, now: Tick) -> u64 {
        self.pace.waiting(self.at_once, word, now)
    }
}

impl crate::algorithm::ChangeQuota for LeakyBucket {
    #[inline]
    fn quota(&self) -> Quota {
        self.quota
    }

    fn with_quota(&self, quota: Quota) -> Result<Self, ConfigError> {
        let meter = Self::meter(quota)?;
        Ok(match self.free_permits() {
            Some(free) => meter.free(free),
            None => meter,
        })
    }

    #[inline]
    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        match (self.free_permits(), next.free_permits()) {
            // Those in line stay in line, however long it may be; and what it can hold more is
            // room.
            (Some(_), Some(_)) => self.pace.carry_level(word, now, &next.pace),
            _ => self.pace.carry_over(word, now, &next.pace),
        }
    }

    #[inline]
    fn carry_scaled(&self, word: u64, now: Tick, next: &Self) -> u64 {
        match (self.free_permits(), next.free_permits()) {
            (Some(_), Some(_)) => self.pace.carry_level(word, now, &next.pace),
            _ => self.pace.carry_scaled(word, now, &next.pace),
        }
    }
}
