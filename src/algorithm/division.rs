//! Division of ticks by a period that is known beforehand: a multiplication and one correction.

use core::num::NonZeroU64;

use super::settings::settings;

/// Divides by a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub(super) struct Divisor {
    period: NonZeroU64,
    /// `2^(64 + shift) / period`, rounded down to what fits.
    inverse: u64,
}

impl Divisor {
    /// For a period of less than 2^63 (50 years are), in at most so many parts that one is a
    /// nanosecond or longer: `2^shift <= period`. All calls must say the same shift.
    pub(super) const fn new(period: NonZeroU64, shift: u32) -> Self {
        let inverse = (1_u128 << (64 + shift)) / period.get() as u128;
        Self {
            period,
            // 2^64 only if a part is a nanosecond.
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

    /// `x * 2^shift / period`, rounded down, and what remains of `x * 2^shift`.
    #[inline(always)]
    pub(super) const fn divide(&self, x: u64, shift: u32) -> (u64, u64) {
        // `inverse` falls short of what it stands for by at most one, so the product of x falls
        // short of the quotient by less than one, and by less than one more when it is cut off: the
        // quotient is this or the next one.
        let quotient = ((x as u128 * self.inverse as u128) >> 64) as u64;
        // The remainder is below twice the period, so its last 64 bits are all of it.
        let scaled = x.wrapping_shl(shift);
        let rest = scaled.wrapping_sub(quotient.wrapping_mul(self.period.get()));
        if rest >= self.period.get() {
            (quotient + 1, rest - self.period.get())
        } else {
            (quotient, rest)
        }
    }

    /// The least `x` whose quotient is `quotient`, or [`u64::MAX`] if that is beyond it.
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

    /// Numbers at which something could go wrong: near multiples, powers of two and the ends.
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
    fn it_divides_as_wide_integers_do() {
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
