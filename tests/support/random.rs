//! A small seeded generator (splitmix64), so that every failure can be reproduced.

#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

/// Spreads the bits of a number.
pub(crate) const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[allow(dead_code, reason = "each binary uses some of these")]
impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number from 0 to `end - 1`, or 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// Returns a number from 0 to `max`. Each number of bits is about equally likely.
    pub(crate) fn upto(&mut self, max: u64) -> u64 {
        let bits = self.below(u64::from(u64::BITS - max.leading_zeros()) + 1) as u32;
        let mask = u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0);
        (self.next() & mask).min(max)
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Returns a number from 0 to `end - 1`, skewed to the small ones: 0 is about as likely as the
    /// next two together, and so on.
    pub(crate) fn skewed(&mut self, end: u64) -> u64 {
        let bits = self.below(u64::from(u64::BITS - end.leading_zeros()) + 1);
        self.below(1 << bits).min(end - 1)
    }
}
