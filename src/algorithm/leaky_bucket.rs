//! The leaky bucket. It uses the word of a [`Pace`]: the distance of the word above the clock is
//! the level of the bucket.

use super::Level;
use super::delegate::runs_on;
use super::pace::Pace;
use super::settings::{NO_QUOTA, Settings, settings};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::{Quota, QuotaError};

/// A leaky bucket: requests fill it, and it leaks at a steady rate. A request that does not fit is
/// denied.
///
/// - As a [`meter`](Self::meter) it denies what does not fit, and a request that fits may go at
///   once. It makes the same decisions as the [`TokenBucket`](crate::TokenBucket) of the same
///   quota; [`level`](crate::Limiter::level) is how full it is. Networks call this policing.
/// - As a [`queue`](Self::queue) it delays requests: [`granted.delay()`](Granted::delay) says how
///   long a request that fits must wait, so that requests leave at the quota's rate. Networks call
///   this shaping.
///
/// **Bound.** Both forms grant at most `burst + rate * (b - a)` permits in every interval `[a, b]`.
/// At rates that are not exact, `b - a` counts as one unit longer, as for the
/// [`TokenBucket`](crate::TokenBucket).
///
/// At most `max(free + 1, k) + rate * (b - a + 1 ns)` permits leave a queue in every interval,
/// provided that all callers wait for their delay, that no request is for more than `k`, and that
/// nothing is refunded or charged. Delays are whole nanoseconds. So two permits can leave a
/// fraction of a nanosecond too close together, unless the time between permits is a whole number
/// of nanoseconds.
///
/// **Giving back.** The last grant in line gives all its permits back. While others wait behind a
/// grant, [`undo`](crate::Limiter::undo) and [`settle`](crate::Limiter::settle) give none of its
/// permits back: the callers behind it were told when to leave, and a newcomer with its place would
/// leave at the same tick as one of them. When no caller waits any more, permits that the queue has
/// not served yet come back. A permit no longer counts from the tick at which it comes back. Settle
/// a grant after it has left: an earlier settlement does not shorten its delay.
///
/// **Exactness.** It is as exact as the [`TokenBucket`](crate::TokenBucket). If the rate is exact,
/// each permit leaves at the first nanosecond that the rate allows. Otherwise it may leave less
/// than one unit early, or up to one nanosecond late.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{LeakyBucket, Limiter, ManualClock, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // nginx's `rate=10r/s burst=4 delay=1`: one request is served, four more may queue, and the
/// // first of those goes at once.
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
    /// A permit goes without delay if the word after it is at most this many units above the clock.
    at_once: u64,
    /// How many permits ahead of the rate go without delay. [`u64::MAX`] means all.
    free: u64,
    quota: Quota,
}

impl LeakyBucket {
    /// Creates a meter, which denies what overflows. It holds the quota's burst and leaks at the
    /// quota's rate.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] names the field of the quota that can't be represented, and what is allowed.
    pub const fn meter(quota: Quota) -> Result<Self, QuotaError> {
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

    /// Creates a queue, which delays requests so that they leave at the quota's rate. It holds the
    /// quota's burst, including the request that is being served.
    ///
    /// The permits of one request leave one by one too, and a reservation is due when its last
    /// permit leaves. A request for more permits than can leave within the caller's maximum wait is
    /// denied with [`Denied::Never`]. (If the rate is not exact, make the maximum wait one
    /// nanosecond longer.)
    ///
    /// # Errors
    ///
    /// [`QuotaError`] names the field of the quota that can't be represented, and what is allowed.
    pub const fn queue(quota: Quota) -> Result<Self, QuotaError> {
        match Self::meter(quota) {
            Ok(meter) => Ok(meter.free(0)),
            Err(error) => Err(error),
        }
    }

    /// Lets `permits` permits ahead of the rate go without delay. All later permits leave earlier
    /// by the time that these take at the rate. [`u64::MAX`] turns the queue into a meter.
    #[must_use]
    pub const fn free(self, permits: u64) -> Self {
        let permit = self.pace.permit();
        Self {
            at_once: permits.saturating_mul(permit).saturating_add(permit),
            free: permits,
            ..self
        }
    }

    /// Returns how many permits ahead of the rate go without delay. Returns `None` for a meter,
    /// which delays none.
    pub const fn free_permits(&self) -> Option<u64> {
        match self.free {
            u64::MAX => None,
            free => Some(free),
        }
    }

    pub(super) const fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Returns the same bucket at another pace.
    pub(super) const fn at_pace(&self, pace: Pace) -> Self {
        Self { pace, ..*self }
    }
}

/// A pace whose grants carry a delay.
struct Shaped<'a> {
    pace: &'a Pace,
    at_once: u64,
}

impl Shaped<'_> {
    #[inline(always)]
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        let (next, granted) = self.pace.step(word, now, n)?;
        Ok((next, self.delayed(granted, next, now)))
    }

    #[inline(always)]
    fn step_fast(&self, word: u64, now: Tick, n: u64) -> Option<Result<(u64, Granted), Denied>> {
        Some(self.step(word, now, n))
    }

    #[inline]
    fn take_up_to(&self, word: u64, now: Tick, n: u64) -> (u64, Granted) {
        let (next, granted) = self.pace.take_up_to(word, now, n);
        (next, self.delayed(granted, next, now))
    }

    /// Gives a grant back, but nothing while a caller waits behind it in a queue. That caller was
    /// told when to leave, and a newcomer with the same place would leave at the same tick.
    #[inline]
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        match self.at_once < self.pace.capacity() {
            true => self.roll_back(word, now, granted),
            // No permit is delayed, so no caller waits.
            false => self.pace.undo(word, now, granted),
        }
    }

    #[inline]
    fn roll_back(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        let cancelled = (self.pace).cancel_of(self.at_once, word, now, granted, granted.n());
        (cancelled.0, cancelled.2)
    }

    #[inline(always)]
    fn delayed(&self, granted: Granted, next: u64, now: Tick) -> Granted {
        match self.leaves(granted.n(), next, now) {
            Some(units) => granted.with_ready_units(units),
            None => granted,
        }
    }

    /// Returns when the last of the permits leaves: once this many units have accrued. `None` means
    /// now. It leaves after all permits before it, except the free ones.
    #[inline(always)]
    fn leaves(&self, n: u64, next: u64, now: Tick) -> Option<u64> {
        if n == 0 || next.saturating_sub(self.pace.accrued(now)) <= self.at_once {
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
settings!(LeakyBucket, 9, "leaky-bucket", if LeakyBucket::fits; pace at_once free; quota = NO_QUOTA);

impl LeakyBucket {
    /// Returns the next word, the grant of `n` permits, and when the last of them leaves.
    #[inline(always)]
    fn leaving(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted, Tick), Denied> {
        let (next, granted) = self.pace.reserve(word, now, n, Tick::MAX)?;
        let shaped = Shaped {
            pace: &self.pace,
            at_once: self.at_once,
        };
        let leaves = match shaped.leaves(n, next, now) {
            Some(units) => self.pace.tick_of(units),
            None => Some(now),
        };
        let due = leaves.ok_or(Denied::stuck(n))?.max(granted.due());
        Ok((next, granted, due))
    }

    /// Returns the denial of `n` permits that would leave at `due`. Permits leave one by one even
    /// from an empty queue, so the denial is permanent if the caller can't wait that long.
    #[cold]
    fn too_late(&self, word: u64, now: Tick, n: u64, latest: Tick, due: Tick) -> Denied {
        let (patience, wait) = (latest.saturating_since(now), due.saturating_since(latest));
        let then = now.saturating_add(wait);
        match self.leaving(word, then, n) {
            Ok((_, _, due)) if due.saturating_since(then) > patience => {
                let patience = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
                let served = self
                    .pace
                    .accrued(Tick::from_nanos(patience))
                    .saturating_add(self.at_once);
                let limit = served / self.pace.permit();
                Denied::never(n, limit.min(n.saturating_sub(1)))
            }
            Ok(_) => Denied::later(n, wait),
            Err(denied) => denied,
        }
    }

    fn fits(&self) -> bool {
        self.pace.is_sound() && self.at_once >= self.pace.permit()
    }
}

/// The permits of a queue are due when they leave it. A reservation may be made even while the
/// queue is full.
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
        self.pace.waiting_of(self.at_once, word, now)
    }
}

impl crate::algorithm::ChangeQuota for LeakyBucket {
    #[inline]
    fn quota(&self) -> Quota {
        self.quota
    }

    fn with_quota(&self, quota: Quota) -> Result<Self, QuotaError> {
        let meter = Self::meter(quota)?;
        Ok(match self.free_permits() {
            Some(free) => meter.free(free),
            None => meter,
        })
    }

    #[inline]
    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        match (self.free_permits(), next.free_permits()) {
            // Keep all waiting requests, even if they are more than the next queue allows. A larger
            // queue has more room.
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

    fn carry_used(&self, word: u64, now: Tick, next: &Self) -> u64 {
        self.pace.carry_level(word, now, &next.pace)
    }
}

#[cfg(test)]
mod tests {
    use super::{LeakyBucket, Quota};

    /// The settings of a snapshot may be forged.
    #[test]
    fn settings_are_sound_only_if_a_constructor_can_make_them() {
        let queue = LeakyBucket::queue(Quota::per_second(7).burst(3)).expect("a quota");
        assert!(queue.fits());
        let at_once = queue.pace.permit() - 1;
        assert!(
            !LeakyBucket { at_once, ..queue }.fits(),
            "no permit goes at once"
        );
    }
}
