//! Windows side by side: where they begin, from the definition; and what fits a word, from what is
//! documented of each layout, by trying one width after the other.

use std::time::Duration;

use crate::support::reference::FIFTY_YEARS;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Windows {
    pub(crate) period: i128,
    /// Tick 0 is so long after a beginning, which may be many windows ago, or not yet.
    since: i128,
    /// How many windows can be told, from that of tick 0 on.
    told: i128,
}

impl Windows {
    /// Tick 0 is `origin` after the beginning of one of them, and all are `offset` later.
    pub(crate) fn new(period: u64, told: u128, origin: Duration, offset: Duration) -> Self {
        Self {
            period: period.into(),
            since: origin.as_nanos() as i128 - offset.as_nanos() as i128,
            told: told as i128,
        }
    }

    /// The number of the window that this moment is in.
    pub(crate) fn index(&self, time: u128) -> i128 {
        (time as i128 + self.since).div_euclid(self.period)
    }

    /// The number of the window that tick 0 is in.
    pub(crate) fn first(&self) -> i128 {
        self.index(0)
    }

    /// When a window begins; below 0 if before the clock did.
    pub(crate) fn start(&self, index: i128) -> i128 {
        index * self.period - self.since
    }

    /// The last tick of the last window that is told, or of the last one that begins before the end
    /// of time is near.
    pub(crate) fn horizon(&self) -> u64 {
        let last = self.start(self.first() + self.told) - 1;
        let most = i128::from(u64::MAX - 1) + self.start(self.first());
        u64::try_from(last.min(most)).expect("not before the clock")
    }

    /// The first tick of the next window.
    pub(crate) fn edge(&self, now: u64) -> u64 {
        u64::try_from(self.start(self.index(now.into()) + 1)).unwrap_or(u64::MAX)
    }
}

/// So many windows are needed for 50 years, wherever they begin: the first and the last are cut.
pub(crate) fn needed(period: u64) -> u128 {
    u128::from(FIFTY_YEARS / period) + 2
}

/// For windows with so many counts each: how wide a count is, and how many windows can be told. It
/// is the widest that leaves 50 years of windows, where the last number is no window.
pub(crate) fn counts(period: u64, counts: u32) -> (u32, u128) {
    let told = |bits: u32| (1_u128 << (64 - counts * bits)) - 1;
    let bits = (1..=62 / counts)
        .rev()
        .find(|bits| told(*bits) >= needed(period))
        .expect("one bit always fits");
    (bits, told(bits))
}

/// The layout of a period that begins with the first permit for such a limit: how wide the count
/// is, and in how many parts (2 to the power of this) a period is divided. `None` if they would be
/// fewer than 64 and longer than a nanosecond.
pub(crate) fn parts(period: u64, limit: u64) -> Option<(u32, u32)> {
    let bits = (1..63).find(|bits| 1_u128 << bits > 2 * u128::from(limit))?;
    // The last two numbers are no ends of a period.
    let ends = (1_u128 << (64 - bits)) - 3;
    let fits = |shift: &u32| needed(period) << *shift <= ends;
    let is_long_enough = |shift: &u32| 1_u128 << *shift <= u128::from(period);
    let shift = (0..64).rev().find(|s| is_long_enough(s) && fits(s))?;
    let is_fine = shift >= 6 || 1_u128 << (shift + 1) > u128::from(period);
    is_fine.then_some((bits, shift))
}

/// How many windows an aligned bucket of permits can tell.
pub(crate) fn refills(n: u64, burst: u64) -> u128 {
    (u128::from(u64::MAX - 1) - 2 * u128::from(burst)) / u128::from(n)
}

/// The largest number that fits, when all below it do.
pub(crate) fn largest(fits: impl Fn(u64) -> bool) -> u64 {
    (0..63).rev().map(|bit| 1_u64 << bit).fold(
        0,
        |most, bit| if fits(most | bit) { most | bit } else { most },
    )
}
