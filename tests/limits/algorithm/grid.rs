//! Consecutive windows: where they begin, by definition, and what fits in a word, from the
//! documented layouts, found by trying one width after the other.

use crate::support::*;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Windows {
    pub(crate) period: i128,
    /// The time from a window's start to tick 0. It may be many windows, or negative.
    since: i128,
    /// The number of distinguishable windows, counted from the window of tick 0.
    told: i128,
}

impl Windows {
    /// Creates windows. One of them starts `origin` before tick 0, and then all are moved by
    /// `offset`.
    pub(crate) fn new(period: u64, told: u128, origin: Duration, offset: Duration) -> Self {
        Self {
            period: period.into(),
            since: origin.as_nanos() as i128 - offset.as_nanos() as i128,
            told: told as i128,
        }
    }

    /// Returns the number of the window at this time.
    pub(crate) fn index(&self, time: u128) -> i128 {
        (time as i128 + self.since).div_euclid(self.period)
    }

    /// Returns the number of the window at tick 0.
    pub(crate) fn first(&self) -> i128 {
        self.index(0)
    }

    /// Returns the start of a window. Negative if it is before the clock's start.
    pub(crate) fn start(&self, index: i128) -> i128 {
        index * self.period - self.since
    }

    /// Returns the last tick of the last window that can be distinguished, or of the last one that
    /// begins before the end of time is near.
    pub(crate) fn horizon(&self) -> u64 {
        let last = self.start(self.first() + self.told) - 1;
        let most = i128::from(u64::MAX - 1) + self.start(self.first());
        u64::try_from(last.min(most)).expect("not before the clock")
    }

    /// Returns the first tick of the next window.
    pub(crate) fn edge(&self, now: u64) -> u64 {
        u64::try_from(self.start(self.index(now.into()) + 1)).unwrap_or(u64::MAX)
    }
}

/// Returns the number of windows needed for 50 years from any tick: the first and the last are
/// partial.
pub(crate) fn needed(period: u64) -> u128 {
    u128::from(FIFTY_YEARS / period) + 2
}

/// Returns, for windows with `counts` counts each, the width of a count and the number of
/// distinguishable windows. The width is the largest that leaves 50 years of windows. The last
/// number is not a window.
pub(crate) fn counts(period: u64, counts: u32) -> (u32, u128) {
    let told = |bits: u32| (1_u128 << (64 - counts * bits)) - 1;
    let bits = (1..=62 / counts)
        .rev()
        .find(|bits| told(*bits) >= needed(period))
        .expect("one bit always fits");
    (bits, told(bits))
}

/// Returns the layout of a period that begins with the first permit: the width of the count, and
/// the number of parts in a period as a power of 2. `None` if there would be fewer than 64 parts
/// and they would be longer than a nanosecond.
pub(crate) fn parts(period: u64, limit: u64) -> Option<(u32, u32)> {
    let bits = (1..63).find(|bits| 1_u128 << bits > 2 * u128::from(limit))?;
    // The last two numbers do not stand for the end of a period.
    let ends = (1_u128 << (64 - bits)) - 3;
    let fits = |shift: &u32| needed(period) << *shift <= ends;
    let is_long_enough = |shift: &u32| 1_u128 << *shift <= u128::from(period);
    let shift = (0..64).rev().find(|s| is_long_enough(s) && fits(s))?;
    let is_fine = shift >= 6 || 1_u128 << (shift + 1) > u128::from(period);
    is_fine.then_some((bits, shift))
}

/// Returns the number of windows that an aligned bucket can distinguish.
pub(crate) fn refills(n: u64, burst: u64) -> u128 {
    (u128::from(u64::MAX - 1) - 2 * u128::from(burst)) / u128::from(n)
}

/// Returns the largest number that fits, given that all smaller ones fit.
pub(crate) fn largest(fits: impl Fn(u64) -> bool) -> u64 {
    (0..63).rev().map(|bit| 1_u64 << bit).fold(
        0,
        |most, bit| if fits(most | bit) { most | bit } else { most },
    )
}
