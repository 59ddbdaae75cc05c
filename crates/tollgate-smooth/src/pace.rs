//! The unit of time that a smooth limiter counts in, and how it rounds.

use core::time::Duration;

use tollgate::Tick;

use crate::state::NEVER;

/// The unit of time, which also decides how costs are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Nanoseconds. A call's cost is rounded up to a whole one, and permits that accumulate are
    /// rounded down.
    Nanos,
    /// Microseconds, as Guava counts: each part of a cost is rounded down to a whole one.
    Micros,
}

impl Unit {
    const fn nanos(self) -> u64 {
        match self {
            Self::Nanos => 1,
            Self::Micros => 1_000,
        }
    }

    pub(crate) const fn a_second(self) -> f64 {
        match self {
            Self::Nanos => 1e9,
            Self::Micros => 1e6,
        }
    }

    /// Returns the whole units since the clock's start, at most [`NEVER`].
    pub(crate) const fn of(self, tick: Tick) -> u64 {
        let units = tick.as_nanos() / self.nanos();
        if units < NEVER { units } else { NEVER }
    }

    pub(crate) const fn of_wait(self, wait: Duration) -> u64 {
        let units = wait.as_nanos() / self.nanos() as u128;
        if units < NEVER as u128 {
            units as u64
        } else {
            NEVER
        }
    }

    pub(crate) const fn tick(self, units: u64) -> Tick {
        Tick::from_nanos(units.saturating_mul(self.nanos()))
    }

    /// Rounds stored permits down to a multiple of the last digit of a double as large as `max`,
    /// and to at most `max`. Sums and differences of such numbers are exact, so a store never has
    /// more than accumulated. In microseconds nothing is rounded.
    pub(crate) fn settle(self, permits: f64, max: f64) -> f64 {
        if self == Self::Micros || max <= 0.0 {
            return permits;
        }
        // `max` has 53 bits, and the last of them is 2^-52 of the first.
        let exponent = max.to_bits() >> 52;
        let scale = f64::from_bits(2_098_u64.saturating_sub(exponent) << 52);
        (permits.min(max) * scale) as u64 as f64 / scale
    }
}

/// The cost of a call, added up part by part: `parts` in nanoseconds, `cut` in microseconds.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    unit: Unit,
    parts: f64,
    cut: u64,
}

impl Cost {
    pub(crate) const fn none(unit: Unit) -> Self {
        Self {
            unit,
            parts: 0.0,
            cut: 0,
        }
    }

    pub(crate) fn and(self, part: f64) -> Self {
        match self.unit {
            Unit::Nanos => Self {
                parts: self.parts + part,
                ..self
            },
            Unit::Micros => Self {
                cut: self.cut.saturating_add(whole(part)),
                ..self
            },
        }
    }

    /// Returns the sum in whole units.
    pub(crate) fn total(self) -> u64 {
        match self.unit {
            Unit::Micros => self.cut,
            Unit::Nanos => {
                let cut = whole(self.parts);
                cut.saturating_add(u64::from((cut as f64) < self.parts))
            }
        }
    }
}

/// Rounds down. A cost that can't be represented becomes [`NEVER`].
fn whole(part: f64) -> u64 {
    match part < NEVER as f64 {
        true => part as u64,
        false => NEVER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanos_round_the_sum_up_and_micros_round_each_part_down() {
        let total = |unit, parts: [f64; 2]| Cost::none(unit).and(parts[0]).and(parts[1]).total();
        assert_eq!(total(Unit::Nanos, [0.75, 0.75]), 2);
        assert_eq!(total(Unit::Nanos, [0.25, 0.75]), 1);
        assert_eq!(total(Unit::Nanos, [3.0, 0.0]), 3);
        assert_eq!(total(Unit::Micros, [0.75, 0.75]), 0);
        assert_eq!(total(Unit::Micros, [1.75, 2.75]), 3);
        for never in [f64::NAN, f64::INFINITY, 1e300] {
            assert!(total(Unit::Nanos, [never, 0.0]) >= NEVER);
            assert!(total(Unit::Micros, [never, 0.0]) >= NEVER);
        }
    }

    #[test]
    fn settle_rounds_down_to_the_last_digit() {
        for max in [0.5, 1.0, 3.0, 1e-9, 1e12] {
            assert_eq!(Unit::Nanos.settle(max, max), max);
            let digit = f64::EPSILON * max / 2.0;
            let less = Unit::Nanos.settle(max / 3.0, max);
            assert!(less <= max / 3.0 && max / 3.0 - less < 4.0 * digit, "{max}");
        }
        assert_eq!(Unit::Nanos.settle(0.7, 0.0), 0.7);
    }
}
