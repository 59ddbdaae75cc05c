//! Computes where in the table a key may be.
//!
//! Two buckets form a pair. A key has two pairs, with a primary bucket and its neighbor in each.
//! The numbers are the *probe order*, in which the key's buckets are searched:
//!
//! ```text
//!            first pair                 second pair
//!  ┌──────────────┬──────────────┐   ┌──────────────┬──────────────┐
//!  │ primary (1)  │ neighbor (3)│   │ neighbor (4)│ primary (2)  │
//!  └──────────────┴──────────────┘   └──────────────┴──────────────┘
//! ```

use core::num::NonZeroU64;

use super::slot::TAG_SHIFT;

/// The number of pairs in the smallest table. The eight bits of a hash that are not in the tag
/// distinguish this number of pairs.
pub(super) const LEAST_PAIRS: u64 = 256;
/// How many bits of a hash are used: the 52 of the tag, and eight that distinguish [`LEAST_PAIRS`]
/// pairs.
const HASH_BITS: u32 = 60;

/// The sequence of buckets where a key may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProbeSeq {
    /// The key's hash, of which 60 bits are used.
    hash: u64,
    /// The number of buckets.
    buckets: NonZeroU64,
}

impl ProbeSeq {
    /// Returns the probe sequence of a hash. The number of buckets must be even.
    #[inline(always)]
    pub(super) const fn of(hash: u64, buckets: NonZeroU64) -> Self {
        Self { hash, buckets }
    }

    /// Returns the tag, in the bits where a slot has it.
    #[inline(always)]
    pub(crate) const fn tag(&self) -> u64 {
        self.hash << TAG_SHIFT
    }

    /// Returns the primary bucket of the first pair.
    #[inline(always)]
    pub(crate) fn first(&self) -> usize {
        scale(self.fraction(), self.buckets.get()) as usize
    }

    /// Returns the primary bucket of the second pair. It is practically independent of the first,
    /// except that one of the two is even and the other odd. So they differ even if both pairs are
    /// the same.
    #[inline(always)]
    pub(crate) fn second(&self) -> usize {
        // How far the second pair is from the first, as a fraction of 2^64.
        let distance = self.tag().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let other = scale(self.fraction().wrapping_add(distance), self.buckets.get());
        (other as usize & !1) | (!self.first() & 1)
    }

    /// Returns the hash as a fraction of 2^64.
    #[inline(always)]
    const fn fraction(&self) -> u64 {
        self.hash << (u64::BITS - HASH_BITS)
    }

    /// Returns the slot at which the search of a bucket begins, in the first pair or the second.
    #[inline(always)]
    pub(super) const fn preferred(&self, second: bool) -> usize {
        (self.hash >> (2 * second as u32) & 3) as usize
    }

    /// Returns the neighbors of the primary buckets. If both pairs are the same, the neighbors are
    /// the primary buckets themselves, and this returns `None`.
    #[inline(always)]
    pub(super) fn neighbors(&self) -> Option<[usize; 2]> {
        let (first, second) = (self.first(), self.second());
        (first ^ 1 != second).then_some([first ^ 1, second ^ 1])
    }

    /// Iterates over all buckets where the key may be. The flag says whether a bucket is in the
    /// second pair.
    pub(super) fn all_buckets(&self) -> impl Iterator<Item = (usize, bool)> + use<> {
        let primary = [self.first(), self.second()];
        let all = primary
            .into_iter()
            .chain(self.neighbors().into_iter().flatten());
        all.zip([false, true].into_iter().cycle())
    }

    /// Returns the probe sequence of the key that has this tag and is in this bucket. `second` says
    /// whether the bucket is in the key's second pair. Returns `None` if no key can be there.
    pub(super) fn found(
        bucket: usize,
        tag: u64,
        second: bool,
        buckets: NonZeroU64,
    ) -> Option<Self> {
        // Try all values of the bits that are not in the tag. A table has at least as many pairs as
        // there are values, so each value leads to another pair.
        let highs = 0..1_u64 << (HASH_BITS - (u64::BITS - TAG_SHIFT));
        let mut probe_seqs = highs.map(|high| {
            let hash = high << (u64::BITS - TAG_SHIFT) | tag >> TAG_SHIFT;
            Self::of(hash, buckets)
        });
        probe_seqs.find(|probe_seq| {
            let primary = if second {
                probe_seq.second()
            } else {
                probe_seq.first()
            };
            primary >> 1 == bucket >> 1
        })
    }

    /// Returns the bits of the hash that are used, which identify the key in its table.
    pub(crate) const fn hash(&self) -> u64 {
        self.hash & ((1 << HASH_BITS) - 1)
    }
}

/// Returns the tag of a hash, in the bits where a slot has it.
#[inline(always)]
pub(crate) const fn tag_of(hash: u64) -> u64 {
    hash << TAG_SHIFT
}

/// Scales a fraction of 2^64 to the range from 0 to `below`.
#[inline(always)]
fn scale(fraction: u64, below: u64) -> u64 {
    ((u128::from(fraction) * u128::from(below)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use super::{HASH_BITS, ProbeSeq};

    #[test]
    fn a_hash_follows_from_bucket_and_tag() {
        let mut hash = 1_u64;
        for pairs in [
            256_u64,
            257,
            300,
            511,
            512,
            1000,
            65_537,
            11_641_532,
            1 << 40,
        ] {
            let buckets = NonZeroU64::new(2 * pairs).expect("not zero");
            for turn in 0..2000 {
                hash = hash
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(turn);
                let known = hash & ((1 << HASH_BITS) - 1);
                let probe_seq = ProbeSeq::of(hash, buckets);
                for (bucket, second) in probe_seq.all_buckets() {
                    let found = ProbeSeq::found(bucket, probe_seq.tag(), second, buckets);
                    assert_eq!(
                        found.map(|probe_seq| probe_seq.hash()),
                        Some(known),
                        "{pairs}"
                    );
                }
            }
        }
    }
}
