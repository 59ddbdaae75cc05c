//! The arithmetic that the token bucket and GCRA share.
//!
//! # The word
//!
//! ```text
//!  63                                                              0
//! ┌─────────────────────────────────────────────────────────────────┐
//! │ the unit count at which the bucket will be full again (0: it is) │
//! └─────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Everything is counted in units of the limiter's own. The clock makes `speed` units a
//! nanosecond, `made(now)` of them until now; one permit is `unit` of them, a full bucket `reach`.
//! The word stands `word - made(now)` units above the clock: that is what the bucket lacks. GCRA
//! calls the word the theoretical arrival time.
//!
//! ```text
//! made(now) = floor(min(now, horizon) * speed / 2^60)
//! base      = max(word, made + round)
//! admitted iff n <= burst and word <= made + reach - n * unit;  the word becomes base + n * unit
//! ```
//!
//! # Why it is exact
//!
//! Let the quota be `n` permits in `period` nanoseconds, reduced by their greatest common divisor.
//!
//! - If the reduced `n` is at most [`EXACT_N`], a unit is the `n`-th part of a nanosecond:
//!   `speed = n`, `unit = period`, `round = 0`. Clock, permits and full buckets are then whole
//!   numbers of units, and every decision is the rational bucket's own. This covers all intervals
//!   of whole nanoseconds (`n = 1`, and the unit is the nanosecond). A burst that does not fit the
//!   word so, but does with coarser units, gets those.
//! - Otherwise a unit is a quarter of a nanosecond or less: `unit = ceil(4 * period / n)` and
//!   `speed = unit * n / period`, rounded down to a multiple of 2^-60. `made` then loses a part of
//!   a unit, and `round = 1` moves the base of an idle bucket up past it: no permit is early. The
//!   price is that unit (at most 1/4 ns) and the rounded speed (2^60.5 ns * 2^-62, about 0.35 ns
//!   after 50 years of uninterrupted work): no permit is due more than one nanosecond late. Nothing
//!   accumulates from one permit to the next.
//!
//! # Why nothing wraps
//!
//! `horizon` is the last tick at which `made + round + 2 * reach` fits the word, so that a full
//! burst and a burst of debt always do. It is at least 50 years, else the quota is refused. Later
//! ticks count as the horizon: the limiter then stands still and denies. `scripts/prove` shows both
//! for all words, ticks and quotas.

use core::num::NonZeroU64;
use core::time::Duration;

use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::{ConfigError, MAX_BURST, MAX_INTERVAL_NS, Quota};

/// `speed` counts in parts of a unit of this many bits.
const SPEED_BITS: u32 = 60;

/// The largest reduced numerator whose clock lasts 50 years: 11 * 50 years is below 2^64 ns.
const EXACT_N: u64 = 11;

/// Every limiter works at least so long: 50 years.
const MIN_HORIZON_NS: u64 = 50 * 36525 * 24 * 36 * 1_000_000_000;

/// The largest word; the one above it belongs to the limiter.
const MAX_WORD: u64 = u64::MAX - 1;

/// What every decision reads comes first, so that it shares a cache line with the word before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub(crate) struct Pace {
    /// Units a nanosecond, times 2^60.
    speed: NonZeroU64,
    /// The last tick at which nothing can wrap.
    horizon: u64,
    /// Units a permit.
    unit: NonZeroU64,
    /// Units a full bucket.
    reach: u64,
    /// What the base of an idle bucket is rounded up by.
    round: u64,
    /// The most permits at once: `reach / unit`.
    burst: NonZeroU64,
    /// 2^124 / speed, to divide by it: see [`Pace::tick_of`].
    inverse: u64,
    /// What a fresh limiter lacks, in permits.
    missing: u64,
}

impl Pace {
    /// The arithmetic of a quota.
    pub(crate) const fn from_quota(quota: Quota) -> Result<Self, ConfigError> {
        let (n, burst, initial) = (quota.permits(), quota.burst_size(), quota.initial_permits());
        let period = match quota.valid_period_ns() {
            Ok(period) => period,
            Err(error) => return Err(error),
        };
        if burst == 0 {
            return Err(ConfigError::ZeroBurst);
        }
        if initial > burst {
            return Err(ConfigError::InitialAboveBurst { initial, burst });
        }
        let divisor = gcd(n, period);
        let mut max = 0;
        if n / divisor <= EXACT_N {
            let speed = (n / divisor) << SPEED_BITS;
            match Self::fitted(speed, 0, period / divisor, burst) {
                Ok(pace) => return Ok(pace.starting_with(initial)),
                Err(fits) => max = fits,
            }
        }
        if n / divisor > 1 {
            let unit = (4 * period as u128).div_ceil(n as u128);
            let speed = ((unit * n as u128) << SPEED_BITS) / period as u128;
            // Both fit 64 bits: the unit is at most 4 * 365 days, and the speed below 10 units a
            // nanosecond.
            match Self::fitted(speed as u64, 1, unit as u64, burst) {
                Ok(pace) => return Ok(pace.starting_with(initial)),
                Err(fits) if fits > max => max = fits,
                Err(_) => {}
            }
        }
        Err(ConfigError::BurstTooLarge { burst, max })
    }

    /// The arithmetic of an emission interval and a tolerance.
    pub(crate) const fn from_interval(
        interval: Duration,
        tolerance: Duration,
    ) -> Result<Self, ConfigError> {
        let (unit, excess) = (interval.as_nanos(), tolerance.as_nanos());
        if unit == 0 {
            return Err(ConfigError::ZeroInterval);
        }
        if unit > MAX_INTERVAL_NS as u128 {
            return Err(ConfigError::IntervalTooLong { interval });
        }
        let max_reach = (MAX_WORD - MIN_HORIZON_NS) as u128 / 2;
        let max_reach = min(max_reach, MAX_BURST as u128 * unit + (unit - 1));
        // The interval is at most a year, and a year's reach always fits.
        let max = max_reach - unit;
        if excess > max {
            let max = Duration::from_nanos(max as u64);
            return Err(ConfigError::ToleranceTooLong { tolerance, max });
        }
        match Self::reaching(1 << SPEED_BITS, 0, unit as u64, (unit + excess) as u64) {
            Some(pace) => Ok(pace),
            None => Err(ConfigError::ZeroInterval),
        }
    }

    /// With this burst, or the largest that fits.
    const fn fitted(speed: u64, round: u64, unit: u64, burst: u64) -> Result<Self, u64> {
        let made = scale(MIN_HORIZON_NS, speed);
        let max = (MAX_WORD - round - made) / 2 / unit;
        let max = if max > MAX_BURST { MAX_BURST } else { max };
        if burst > max {
            return Err(max);
        }
        match Self::reaching(speed, round, unit, burst * unit) {
            Some(pace) => Ok(pace),
            None => Err(0),
        }
    }

    /// With this reach, of which the caller knows that it fits. `None` if the unit is 0 or above
    /// the reach.
    const fn reaching(speed: u64, round: u64, unit: u64, reach: u64) -> Option<Self> {
        let (Some(unit), Some(speed)) = (NonZeroU64::new(unit), NonZeroU64::new(speed)) else {
            return None;
        };
        let Some(burst) = NonZeroU64::new(reach / unit.get()) else {
            return None;
        };
        let room = MAX_WORD - round - 2 * reach;
        let horizon = ((room as u128) << SPEED_BITS) / speed.get() as u128;
        let inverse = (1_u128 << (64 + SPEED_BITS)) / speed.get() as u128;
        Some(Self {
            speed,
            inverse: min(inverse, u64::MAX as u128) as u64,
            round,
            unit,
            reach,
            burst,
            horizon: min(horizon, u64::MAX as u128) as u64,
            missing: 0,
        })
    }

    const fn starting_with(self, initial: u64) -> Self {
        Self {
            missing: self.burst.get() - initial,
            ..self
        }
    }

    pub(crate) const fn burst(&self) -> u64 {
        self.burst.get()
    }

    /// How many units the clock has made until `now`.
    #[inline]
    fn made(&self, now: Tick) -> u64 {
        scale(now.as_nanos().min(self.horizon), self.speed.get())
    }

    /// The first tick at which the clock has made `units`; [`made`](Self::made) without the
    /// horizon, turned round.
    #[inline]
    fn tick_of(&self, units: u64) -> u64 {
        // What is cut off here is less than two: the product loses less than one because the
        // inverse is rounded down, and less than one by the shift.
        let mut tick = ((u128::from(units) * u128::from(self.inverse)) >> 64) as u64;
        tick += u64::from(self.is_short(tick, units));
        tick += u64::from(self.is_short(tick, units));
        tick
    }

    /// Whether the clock has made fewer than `units` at `tick`.
    #[inline]
    fn is_short(&self, tick: u64, units: u64) -> bool {
        u128::from(tick) * u128::from(self.speed.get()) < u128::from(units) << SPEED_BITS
    }

    /// How far the word may stand above the clock for `n` permits to be granted; at most a burst.
    #[inline]
    fn slack(&self, n: u64) -> u64 {
        if n == 0 {
            // Not in debt: a full burst from idle leaves the word at made + round + reach.
            self.reach + self.round
        } else {
            self.reach - n * self.unit.get()
        }
    }

    #[inline(always)]
    pub(crate) fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        if n > self.burst.get() {
            return Err(Denied::never(n, self.burst.get()));
        }
        let made = self.made(now);
        let slack = self.slack(n);
        if word > made + slack {
            return Err(self.denied(word - slack, now, n));
        }
        let next = if n == 0 {
            word
        } else {
            word.max(made + self.round) + n * self.unit.get()
        };
        Ok((next, self.granted(next, made, now, n)))
    }

    #[inline]
    pub(crate) fn take_up_to(&self, word: u64, now: Tick, n: u64) -> (u64, Granted) {
        let made = self.made(now);
        let n = n.min(self.room(word, made) / self.unit.get());
        let next = if n == 0 {
            word
        } else {
            word.max(made + self.round) + n * self.unit.get()
        };
        (next, self.granted(next, made, now, n))
    }

    /// What is left of a full bucket, in units.
    #[inline]
    fn room(&self, word: u64, made: u64) -> u64 {
        self.reach.saturating_sub(word.saturating_sub(made))
    }

    #[inline(always)]
    fn granted(&self, next: u64, made: u64, now: Tick, n: u64) -> Granted {
        Granted::new(n, now)
            .with_room(self.room(next, made), self.unit)
            .with_reset_units(next, self.speed)
            .with_mark(next)
    }

    /// The denial of a request that can be granted once the clock has made `units`.
    #[inline(always)]
    fn denied(&self, units: u64, now: Tick, n: u64) -> Denied {
        let due = self.tick_of(units);
        if due > self.horizon {
            Denied::stuck(n)
        } else {
            Denied::later(n, Tick::from_nanos(due).saturating_since(now))
        }
    }

    #[inline]
    pub(crate) fn available(&self, word: u64, now: Tick) -> u64 {
        self.room(word, self.made(now)) / self.unit.get()
    }

    #[inline]
    pub(crate) fn is_idle(&self, word: u64, now: Tick) -> bool {
        word <= self.made(now)
    }

    #[inline]
    pub(crate) fn initial_word(&self, now: Tick) -> u64 {
        if self.missing == 0 {
            0
        } else {
            self.made(now) + self.round + self.missing * self.unit.get()
        }
    }

    #[inline]
    pub(crate) fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick> {
        if n > self.burst.get() {
            return None;
        }
        let due = self.tick_of(word.saturating_sub(self.slack(n)));
        (due <= self.horizon).then(|| now.max(Tick::from_nanos(due)))
    }

    /// Lowers the word by `units`, but not below the base of an idle bucket: the next word, and
    /// the permits that came back, a part of one counted whole. The clock itself may be a part of
    /// a unit further than it has `made`, so down to there would bring a permit forward.
    #[inline]
    fn give_back(&self, word: u64, base: u64, units: u64) -> (u64, u64) {
        let units = units.min(word.saturating_sub(base));
        (word - units, units.div_ceil(self.unit.get()))
    }

    /// The grant stands in the word from `mark - n * unit` to `mark`; what of that the clock has
    /// passed is refilled already, and is not given back a second time.
    #[inline]
    pub(crate) fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        let base = self.made(now) + self.round;
        let units = granted.n().saturating_mul(self.unit.get());
        let ahead = granted.mark().saturating_sub(base);
        self.give_back(word, base, units.min(ahead))
    }

    #[inline]
    pub(crate) fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        let units = n.saturating_mul(self.unit.get());
        self.give_back(word, self.made(now) + self.round, units)
    }

    #[inline]
    pub(crate) fn charge(&self, word: u64, now: Tick, n: u64) -> (u64, Charged) {
        let made = self.made(now);
        let (next, n) = if n == 0 {
            (word, 0)
        } else {
            let base = word.max(made + self.round).min(MAX_WORD);
            let n = n.min((MAX_WORD - base) / self.unit.get());
            // Where nothing fits any more, nothing changes.
            (
                if n == 0 {
                    word
                } else {
                    base + n * self.unit.get()
                },
                n,
            )
        };
        let clear = next.saturating_sub(self.slack(0));
        let debt = clear.saturating_sub(made).div_ceil(self.unit.get());
        let clear_after = match self.tick_of(clear) {
            tick if tick > self.horizon && debt > 0 => Duration::MAX,
            tick => Tick::from_nanos(tick).saturating_since(now),
        };
        (next, Charged::new(n, now).with_debt(debt, clear_after))
    }

    #[inline]
    pub(crate) fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
        let (made, then) = (self.made(now), next.made(now));
        if self == next {
            return word;
        }
        let of_permits = |reach: u64, unit: NonZeroU64| u128::from(reach) * u128::from(unit.get());
        if word <= made && of_permits(next.reach, self.unit) <= of_permits(self.reach, next.unit) {
            return 0;
        }
        // Permits are exchanged unit for unit, rounded down; debt likewise, rounded up.
        let (have, owe) = (
            self.room(word, made),
            word.saturating_sub(made).saturating_sub(self.slack(0)),
        );
        let convert = |units: u64| u128::from(units) * u128::from(next.unit.get());
        let have = convert(have) / u128::from(self.unit.get());
        let owe = convert(owe).div_ceil(u128::from(self.unit.get()));
        let lack = u128::from(next.reach).saturating_sub(have) + owe;
        let word = u128::from(then + next.round).saturating_add(lack);
        if lack == 0 {
            0
        } else {
            min(word, MAX_WORD as u128) as u64
        }
    }

    #[inline]
    pub(crate) fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64 {
        if from == to {
            return word;
        }
        let ahead = word.saturating_sub(self.made(from));
        if ahead == 0 {
            return 0;
        }
        let base = self.made(to) + self.round;
        base.saturating_add(ahead).min(MAX_WORD)
    }
}

/// `ticks` nanoseconds at `speed`, in whole units. The caller knows that it fits.
#[inline]
const fn scale(ticks: u64, speed: u64) -> u64 {
    ((ticks as u128 * speed as u128) >> SPEED_BITS) as u64
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

const fn min(a: u128, b: u128) -> u128 {
    if a < b { a } else { b }
}

/// Implements the traits for an algorithm that keeps a `pace`.
macro_rules! runs_on_pace {
    ($algorithm:ty) => {
        impl crate::algorithm::Algorithm for $algorithm {
            #[inline(always)]
            fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
                self.pace.step(word, now, n)
            }

            #[inline]
            fn available(&self, word: u64, now: Tick) -> u64 {
                self.pace.available(word, now)
            }

            #[inline]
            fn is_idle(&self, word: u64, now: Tick) -> bool {
                self.pace.is_idle(word, now)
            }

            #[inline]
            fn initial_word(&self, now: Tick) -> u64 {
                self.pace.initial_word(now)
            }

            #[inline]
            fn take_up_to(&self, word: u64, now: Tick, n: u64) -> (u64, Granted) {
                self.pace.take_up_to(word, now, n)
            }
        }

        impl crate::algorithm::GiveBack for $algorithm {
            #[inline]
            fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
                self.pace.undo(word, now, granted)
            }

            #[inline]
            fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
                self.pace.refund(word, now, n)
            }
        }

        impl crate::algorithm::Debt for $algorithm {
            #[inline]
            fn charge(&self, word: u64, now: Tick, n: u64) -> (u64, Charged) {
                self.pace.charge(word, now, n)
            }
        }

        impl crate::algorithm::Forecast for $algorithm {
            #[inline]
            fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick> {
                self.pace.due(word, now, n)
            }
        }

        impl crate::algorithm::Rebase for $algorithm {
            #[inline]
            fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64 {
                self.pace.rebase(word, from, to)
            }
        }

        impl crate::algorithm::Requota for $algorithm {
            #[inline]
            fn quota(&self) -> Quota {
                self.quota
            }

            fn with_quota(&self, quota: Quota) -> Result<Self, ConfigError> {
                Self::new(quota)
            }

            #[inline]
            fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64 {
                self.pace.carry_over(word, now, &next.pace)
            }
        }
    };
}
pub(crate) use runs_on_pace;
