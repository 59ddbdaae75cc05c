//! Where a key may be.
//!
//! Two lines are a pair. A key has two pairs, and in each a home line and its neighbour:
//!
//! ```text
//!            first pair                 second pair
//!  ┌──────────────┬──────────────┐   ┌──────────────┬──────────────┐
//!  │ home (1)     │ neighbour (3)│   │ neighbour (4)│ home (2)     │
//!  └──────────────┴──────────────┘   └──────────────┴──────────────┘
//! ```

use core::num::NonZeroU64;

use super::slot::TAG_SHIFT;

/// The pairs of the smallest table: what of a hash is in no tag, says in which pair of so many a key is.
pub(super) const LEAST_PAIRS: u64 = 256;
/// How many bits of a hash count: a tag's, and those that say in which of the least pairs it is.
pub(super) const HASH_BITS: u32 = 60;

/// A key's place in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    /// The tag, where a slot has it.
    pub(super) tag: u64,
    /// The home line of the first pair.
    pub(super) first: usize,
    /// That of the second.
    pub(super) second: usize,
}

impl Spot {
    /// That of a key with this hash, in a table of so many pairs.
    #[inline(always)]
    pub(super) fn of(hash: u64, pairs: NonZeroU64) -> Self {
        let tag = hash << TAG_SHIFT;
        let first = scale(hash << (u64::BITS - HASH_BITS), pairs.get());
        let second = Self::other(first, tag, pairs);
        Self {
            tag,
            first: Self::home(first, hash),
            second: match second == first {
                // There is one pair.
                true => Self::home(first, !hash),
                false => Self::home(second, hash >> 1),
            },
        }
    }

    /// The second pair of a key, by the first.
    #[inline(always)]
    fn other(first: u64, tag: u64, pairs: NonZeroU64) -> u64 {
        let second = first + Self::distance(tag, pairs);
        match second >= pairs.get() {
            true => second - pairs.get(),
            false => second,
        }
    }

    /// How far the second pair is from the first.
    #[inline(always)]
    fn distance(tag: u64, pairs: NonZeroU64) -> u64 {
        let others = pairs.get() - 1;
        // As far as it can be told, in no relation to the first pair.
        scale(tag.wrapping_mul(0x9E37_79B9_7F4A_7C15), others) + others.min(1)
    }

    /// The home line in a pair, by the last bit.
    #[inline(always)]
    fn home(pair: u64, bit: u64) -> usize {
        (pair << 1 | bit & 1) as usize
    }

    /// The slot of a line where a key is looked for first; of the first line, or the second.
    #[inline(always)]
    pub(super) const fn preferred(&self, second: bool) -> usize {
        (self.tag >> (TAG_SHIFT + 2 + 2 * second as u32) & 3) as usize
    }

    /// The lines where it may be, in the key's own order, and whether each is of the second pair.
    pub(super) fn lines(&self) -> [Option<(usize, bool)>; 4] {
        let (third, fourth) = (self.first ^ 1, self.second ^ 1);
        let is_one_pair = third == self.second;
        [
            Some((self.first, false)),
            Some((self.second, true)),
            (!is_one_pair).then_some((third, false)),
            (!is_one_pair).then_some((fourth, true)),
        ]
    }

    /// The hash of the key that is in this line, with this tag, in the second of its pairs or in the first.
    pub(super) fn hash(line: usize, tag: u64, second: bool, pairs: NonZeroU64) -> Option<u64> {
        let pair = line as u64 >> 1;
        let first = match second {
            false => pair,
            true => match pair.checked_sub(Self::distance(tag, pairs)) {
                Some(first) => first,
                None => (pair + pairs.get()).checked_sub(Self::distance(tag, pairs))?,
            },
        };
        let low = tag >> TAG_SHIFT;
        let highs = 1_u64 << (HASH_BITS - (u64::BITS - TAG_SHIFT));
        // A pair is no larger than what has the same high bits, but may lie across a border: there are two to be
        // tried, or more in a model's small table.
        let border = |pair: u64| {
            let high = u128::from(pair) * u128::from(highs) / u128::from(pairs.get());
            (high as u64).min(highs - 1)
        };
        let highs = border(first)..=border(first.saturating_add(1));
        let mut hashes = highs.map(|high| high << (u64::BITS - TAG_SHIFT) | low);
        hashes.find(|hash| scale(hash << (u64::BITS - HASH_BITS), pairs.get()) == first)
    }
}

/// `below` times a fraction of 2^64.
#[inline(always)]
fn scale(fraction: u64, below: u64) -> u64 {
    ((u128::from(fraction) * u128::from(below)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use super::{HASH_BITS, Spot};

    #[test]
    fn a_hash_is_known_by_the_place() {
        let mut hash = 1_u64;
        for pairs in [256, 257, 300, 511, 512, 1000, 65_537, 11_641_532, 1 << 40] {
            let pairs = NonZeroU64::new(pairs).expect("not zero");
            for turn in 0..2000 {
                hash = hash
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(turn);
                let known = hash & ((1 << HASH_BITS) - 1);
                let spot = Spot::of(hash, pairs);
                for (line, second) in spot.lines().into_iter().flatten() {
                    let found = Spot::hash(line, spot.tag, second, pairs);
                    assert_eq!(found, Some(known), "{pairs} {line} {second}");
                }
            }
        }
    }
}
