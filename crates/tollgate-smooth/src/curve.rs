//! How permits are stored, and what stored permits cost. This is the only difference between the
//! two limiters.

use core::time::Duration;

use crate::error::SmoothError;
use crate::pace::{Cost, Unit};
use crate::state::{NEVER, SmoothState};

/// The slowest rate: one permit in 365 days.
pub(crate) const MIN_RATE: f64 = 1.0 / (365.0 * 86_400.0);
/// The fastest rate.
pub(crate) const MAX_RATE: f64 = 1e12;
/// The largest number of permits that a store can hold. Up to here, a double distinguishes each
/// number from the next.
const MAX_STORED: f64 = (1_u64 << 50) as f64;
/// The longest time that a store may take to fill.
const MAX_FILL: Duration = Duration::from_secs(365 * 86_400);
/// The largest cold factor.
pub(crate) const MAX_COLD_FACTOR: f64 = 1e6;

/// The curve of [`SmoothBursty`](crate::SmoothBursty): stored permits are free.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bursty {
    pub(crate) max_burst: Duration,
}

/// The curve of [`SmoothWarmingUp`](crate::SmoothWarmingUp): stored permits cost more, the
/// more of them there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmingUp {
    pub(crate) warm_up: Duration,
    pub(crate) cold_factor: f64,
}

/// A rate, with its interval in the limiter's unit.
#[derive(Debug, Clone, Copy)]
pub struct PermitInterval {
    pub(crate) unit: Unit,
    /// In permits a second.
    pub(crate) rate: f64,
    /// The time from one permit to the next, in units.
    pub(crate) interval: f64,
}

impl PermitInterval {
    pub(crate) fn new(unit: Unit, rate: f64) -> Self {
        Self {
            unit,
            rate,
            interval: unit.a_second() / rate,
        }
    }
}

/// The operations in which the two limiters differ. There are no other implementations.
pub trait Curve: Copy {
    /// Returns the largest number of stored permits.
    fn max(&self, pace: &PermitInterval) -> f64;
    /// Returns the time that it takes to store one more permit, in units.
    fn refill_interval(&self, pace: &PermitInterval) -> f64;
    /// Returns how many permits a new limiter stores.
    fn initial(&self, pace: &PermitInterval) -> f64;
    /// Returns the cost of taking `take` of the `stored` permits.
    fn cost(&self, pace: &PermitInterval, stored: f64, take: f64) -> Cost;
    /// Returns the fastest rate at which at most `MAX_STORED` permits can be stored.
    fn max_rate(&self) -> f64;
}

impl Curve for Bursty {
    fn max(&self, pace: &PermitInterval) -> f64 {
        self.max_burst.as_secs_f64() * pace.rate
    }

    fn refill_interval(&self, pace: &PermitInterval) -> f64 {
        pace.interval
    }

    fn initial(&self, _: &PermitInterval) -> f64 {
        0.0
    }

    fn cost(&self, pace: &PermitInterval, _: f64, _: f64) -> Cost {
        Cost::none(pace.unit)
    }

    fn max_rate(&self) -> f64 {
        max_rate(self.max_burst, 1.0)
    }
}

/// A limiter is warm while its store is at or below a threshold: permits are then an interval
/// apart. Above the threshold the interval grows linearly, up to the cold interval with a full
/// store. At the fastest pace, callers take the warm-up time to empty a full store down to the
/// threshold, and half of that time to empty the rest.
impl WarmingUp {
    /// Returns the warm-up time in units.
    fn period(&self, pace: &PermitInterval) -> f64 {
        match pace.unit {
            Unit::Nanos => self.warm_up.as_nanos() as f64,
            Unit::Micros => self.warm_up.as_micros() as f64,
        }
    }

    fn threshold(&self, pace: &PermitInterval) -> f64 {
        0.5 * self.period(pace) / pace.interval
    }

    fn cold_interval(&self, pace: &PermitInterval) -> f64 {
        pace.interval * self.cold_factor
    }
}

impl Curve for WarmingUp {
    fn max(&self, pace: &PermitInterval) -> f64 {
        let both = pace.interval + self.cold_interval(pace);
        self.threshold(pace) + 2.0 * self.period(pace) / both
    }

    fn refill_interval(&self, pace: &PermitInterval) -> f64 {
        self.period(pace) / self.max(pace)
    }

    /// A new limiter is cold.
    fn initial(&self, pace: &PermitInterval) -> f64 {
        self.max(pace)
    }

    fn cost(&self, pace: &PermitInterval, stored: f64, take: f64) -> Cost {
        let none = Cost::none(pace.unit);
        let (threshold, interval) = (self.threshold(pace), pace.interval);
        let above = stored - threshold;
        if above <= 0.0 {
            return none.and(interval * take);
        }
        let slope = (self.cold_interval(pace) - interval) / (self.max(pace) - threshold);
        let at = |above: f64| interval + above * slope;
        let taken = above.min(take);
        // The area under the line.
        let slower = taken * (at(above) + at(above - taken)) / 2.0;
        none.and(slower).and(interval * (take - taken))
    }

    fn max_rate(&self) -> f64 {
        max_rate(self.warm_up, MOST_A_PERIOD)
    }
}

/// The largest store, in multiples of what a warm limiter grants in the warm-up time. A cold factor
/// of 1 needs this much.
const MOST_A_PERIOD: f64 = 1.5;

fn max_rate(fill: Duration, times: f64) -> f64 {
    (MAX_STORED / (times * fill.as_secs_f64())).min(MAX_RATE)
}

fn max_fill(rate: f64, times: f64) -> Duration {
    let longest = Duration::try_from_secs_f64(MAX_STORED / (times * rate));
    longest.map_or(MAX_FILL, |longest| longest.min(MAX_FILL))
}

pub(crate) fn check_rate(rate: f64, max: f64) -> Result<(), SmoothError> {
    match (MIN_RATE..=max).contains(&rate) {
        true => Ok(()),
        false => Err(SmoothError::Rate {
            rate,
            min: MIN_RATE,
            max,
        }),
    }
}

pub(crate) fn check_max_burst(max_burst: Duration, rate: f64) -> Result<Bursty, SmoothError> {
    match max_fill(rate, 1.0) {
        max if max_burst > max => Err(SmoothError::MaxBurst { max_burst, max }),
        _ => Ok(Bursty { max_burst }),
    }
}

pub(crate) fn check_warm_up(warm_up: Duration, rate: f64) -> Result<(), SmoothError> {
    match max_fill(rate, MOST_A_PERIOD) {
        max if warm_up > max => Err(SmoothError::WarmUp { warm_up, max }),
        _ => Ok(()),
    }
}

/// The store at a rate. Its methods are pure functions of the state.
#[derive(Clone, Copy)]
pub(crate) struct StoredPermits<K> {
    curve: K,
    pace: PermitInterval,
}

impl<K: Curve> StoredPermits<K> {
    pub(crate) fn new(curve: K, unit: Unit, rate: f64) -> Self {
        let pace = PermitInterval::new(unit, rate);
        Self { curve, pace }
    }

    pub(crate) fn rate(&self) -> f64 {
        self.pace.rate
    }

    pub(crate) fn max(&self) -> f64 {
        self.curve.max(&self.pace)
    }

    pub(crate) fn initial(&self) -> f64 {
        self.curve.initial(&self.pace)
    }

    /// Adds the permits that accumulated until now, unless a turn is still pending.
    pub(crate) fn resync(&self, state: SmoothState, now: u64) -> SmoothState {
        if now <= state.next {
            return state;
        }
        let max = self.max();
        let stored = match max > 0.0 {
            true => {
                let elapsed = (now - state.next) as f64;
                let came = elapsed / self.curve.refill_interval(&self.pace);
                let came = self.pace.unit.settle(came, max);
                (state.stored + came).min(max)
            }
            // A store of size zero stays empty. This avoids dividing zero by zero.
            false => 0.0,
        };
        SmoothState {
            next: now,
            stored,
            ..state
        }
    }

    /// Returns the state after taking `n` permits, stored ones first. The next caller waits for
    /// them.
    pub(crate) fn take(&self, state: SmoothState, n: u64) -> SmoothState {
        let n = n as f64;
        let spent = n.min(state.stored);
        let cost = self.curve.cost(&self.pace, state.stored, spent);
        let cost = cost.and((n - spent) * self.pace.interval).total();
        SmoothState {
            next: state.next.saturating_add(cost).min(NEVER),
            stored: state.stored - spent,
            ..state
        }
    }

    /// Converts a number of stored permits to the same fraction of a full store at another rate.
    pub(crate) fn scaled(&self, stored: f64, new: &Self) -> f64 {
        let (old, max) = (self.max(), new.max());
        match old > 0.0 {
            true => self.pace.unit.settle(stored * max / old, max),
            false => new.initial(),
        }
    }
}
