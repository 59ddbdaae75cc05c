//! Division of ticks by a fixed period: a multiplication and one correction.

use core::num::NonZeroU64;

use super::settings::settings;

/// A period and its reciprocal, for fast division by the period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub(super) struct Divisor {
    period: NonZeroU64,
    /// `2^(64 + shift) / period`, rounded down, and at most [`u64::MAX`].
    inverse: u64,
}

impl Divisor {
    /// Creates the divisor for a period below 2^63 ns (50 years are below that). The period is
    /// divided into `2^shift` parts, each of at least a nanosecond: `2^shift <= period`. All calls
    /// must pass the same `shift`.
    pub(super) const fn new(period: NonZeroU64, shift: u32) -> Self {
        let inverse = (1_u128 << (64 + shift)) / period.get() as u128;
        Self {
            period,
            // It is 2^64 only if a part is exactly one nanosecond.
            inverse: if inverse > u64::MAX as u128 {
                u64::MAX
            } else {
                inverse as u64
            },
        }
    }

    #[inline(always)]
    pub(super) const fn period(&self) -> NonZeroU64 {
        self.period
    }

    /// Returns `x * 2^shift / period`, rounded down, and the remainder.
    #[inline(always)]
    pub(super) const fn divide(&self, x: u64, shift: u32) -> (u64, u64) {
        // `inverse` is at most 1 too small, so the product is less than 1 below the true quotient.
        // Truncating it loses less than 1 more. So the quotient is this number or the next.
        let quotient = ((x as u128 * self.inverse as u128) >> 64) as u64;
        // The remainder is below twice the period, so 64 bits hold all of it.
        let scaled = x.wrapping_shl(shift);
        let rest = scaled.wrapping_sub(quotient.wrapping_mul(self.period.get()));
        if rest >= self.period.get() {
            (quotient + 1, rest - self.period.get())
        } else {
            (quotient, rest)
        }
    }

    /// Returns the least `x` whose quotient is `quotient`, or [`u64::MAX`] if it does not fit.
    #[inline]
    pub(super) const fn first_with(&self, quotient: u64, shift: u32) -> u64 {
        let scaled = quotient as u128 * self.period.get() as u128;
        let x = (scaled + ((1 << shift) - 1)) >> shift;
        if x > u64::MAX as u128 {
            u64::MAX
        } else {
            x as u64
        }
    }
}

settings!(Divisor, 2; period inverse);

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns edge cases: numbers near multiples of the period, near powers of two, and at the
    /// ends of the range.
    fn awkward(period: u64) -> impl Iterator<Item = u64> {
        let powers = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        let multiples = powers.clone().flat_map(move |k| {
            let multiple = period.saturating_mul(k);
            [
                multiple.saturating_sub(1),
                multiple,
                multiple.saturating_add(1),
            ]
        });
        powers.chain(multiples).chain([u64::MAX, u64::MAX - 1])
    }

    #[test]
    fn division_agrees_with_u128_division() {
        let periods = [
            1,
            2,
            3,
            7,
            64,
            1000,
            999_999_937,
            1_000_000_000,
            60_000_000_000,
            86_400_000_000_000,
            1_577_880_000_000_000_000,
            u64::MAX / 2,
        ];
        let mut checked = 0;
        for period in periods.map(|period| NonZeroU64::new(period).expect("not zero")) {
            for shift in 0..=period.ilog2() {
                let divisor = Divisor::new(period, shift);
                for x in awkward(period.get()) {
                    let wide = u128::from(x) << shift;
                    let quotient = wide / u128::from(period.get());
                    let rest = wide % u128::from(period.get());
                    let (ours, remains) = divisor.divide(x, shift);
                    assert_eq!((ours.into(), remains.into()), (quotient, rest));
                    let first = divisor.first_with(ours, shift);
                    assert!(first <= x && divisor.divide(first, shift).0 == ours);
                    assert!(first == 0 || divisor.divide(first - 1, shift).0 < ours);
                    checked += 1;
                }
            }
        }
        assert!(checked > 100_000, "{checked}");
    }
}
