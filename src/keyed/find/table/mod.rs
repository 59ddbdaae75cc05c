//! The table: buckets of slots, in memory that is allocated once. This file loads slots;
//! `transitions.rs` changes them.

mod transitions;

use core::num::NonZeroU64;
use core::ops::Range;

use super::probe_seq::{LEAST_PAIRS, ProbeSeq};
use super::slot::SlotState;
use crate::limiter_error::LimiterError;
use crate::sync::{AtomicU128, Buckets, FastPair, IS_MODEL, Ordering, SLOTS, prefetch};

/// Slots for every 100 keys of the capacity.
const SLOTS_IN_100_KEYS: u128 = 149;
/// The largest capacity whose slots can be addressed.
const MAX_CAPACITY: usize = usize::MAX >> 6;

/// The position of a slot: its bucket, and its index in the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotIndex {
    pub(super) bucket: usize,
    pub(super) index: usize,
    /// Whether the bucket is in the key's second pair.
    pub(super) second: bool,
}

impl SlotIndex {
    /// Returns whether the bucket is in the key's second pair.
    #[inline(always)]
    pub(crate) const fn is_second(self) -> bool {
        self.second
    }
}

#[derive(Debug)]
pub(crate) struct Table {
    buckets: Buckets,
    count: NonZeroU64,
    fast_pair: Option<FastPair>,
}

impl Table {
    /// Creates an empty table for this number of keys.
    pub(crate) fn with_capacity(capacity: usize) -> Result<Self, LimiterError> {
        let max = MAX_CAPACITY;
        let pairs = match capacity {
            0 => return Err(LimiterError::ZeroCapacity),
            n if n > max => return Err(LimiterError::CapacityTooLarge { capacity, max }),
            // Under a model checker, as small as possible.
            n if IS_MODEL => n.div_ceil(2) as u64,
            n => {
                let slots = n as u128 * SLOTS_IN_100_KEYS / 100;
                (slots.div_ceil(2 * SLOTS as u128) as u64).max(LEAST_PAIRS)
            }
        };
        Self::of_pairs(pairs).ok_or(LimiterError::CapacityTooLarge { capacity, max })
    }

    /// Creates `pairs` pairs of empty buckets, or returns `None` if there is not enough memory.
    fn of_pairs(pairs: u64) -> Option<Self> {
        let count = NonZeroU64::new(pairs.checked_mul(2)?)?;
        let buckets = Buckets::zeroed(usize::try_from(count.get()).ok()?)?;
        Some(Self {
            buckets,
            count,
            fast_pair: FastPair::there(),
        })
    }

    /// Creates an empty table of the same size, or returns `None` if there is not enough memory.
    pub(crate) fn like(&self) -> Option<Self> {
        Self::of_pairs(self.count.get() / 2)
    }

    /// Returns the number of slots.
    pub(crate) fn slots(&self) -> usize {
        self.buckets() * SLOTS
    }

    /// Returns the number of buckets.
    pub(crate) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// Returns the 128-bit instructions that a decision in place needs, if the processor has them.
    #[inline(always)]
    pub(super) const fn fast_pair(&self) -> Option<FastPair> {
        self.fast_pair
    }

    #[inline(always)]
    pub(crate) const fn probe_seq(&self, hash: u64) -> ProbeSeq {
        ProbeSeq::of(hash, self.count)
    }

    /// Returns the probe sequence of the key in this slot, or `None` if no key can be there.
    pub(crate) fn probe_seq_in(&self, at: SlotIndex, held: SlotState) -> Option<ProbeSeq> {
        ProbeSeq::found(at.bucket, held.tag(), held.is_second(), self.count)
    }

    /// Returns the probe sequence of a hash, and prefetches its primary buckets, which are needed
    /// soon.
    #[inline(always)]
    pub(crate) fn fetch(&self, hash: u64) -> ProbeSeq {
        let probe_seq = self.probe_seq(hash);
        self.prefetch(probe_seq.first());
        self.prefetch(probe_seq.second());
        probe_seq
    }

    /// Prefetches the neighbors of a key's primary buckets.
    #[inline(always)]
    pub(crate) fn prefetch_neighbors(&self, probe_seq: &ProbeSeq) {
        self.prefetch(probe_seq.first() ^ 1);
        self.prefetch(probe_seq.second() ^ 1);
    }

    #[inline(always)]
    fn prefetch(&self, bucket: usize) {
        prefetch(self.buckets.as_ptr().wrapping_add(bucket));
    }

    #[inline(always)]
    fn slot(&self, at: SlotIndex) -> Option<&AtomicU128> {
        self.buckets.get(at.bucket)?.slots.get(at.index)
    }

    #[inline(always)]
    pub(crate) fn load(&self, at: SlotIndex) -> SlotState {
        match self.slot(at) {
            Some(slot) => self.load_slot(slot),
            None => SlotState::RELEASED,
        }
    }

    /// Loads all slots of a bucket, one after the other.
    #[inline(always)]
    pub(super) fn load_bucket(&self, bucket: usize) -> [SlotState; SLOTS] {
        let Some(bucket) = self.buckets.get(bucket) else {
            return [SlotState::RELEASED; SLOTS];
        };
        let slots = bucket.slots.each_ref();
        match self.fast_pair {
            // ORDERING: Acquire. Like `load_slot`, but it checks only once how slots are loaded.
            // Model: keyed_turnover::a_late_caller_gets_no_second_burst
            Some(fast_pair) => {
                slots.map(|slot| SlotState::of_bits(fast_pair.load(slot, Ordering::Acquire)))
            }
            None => slots.map(|slot| self.load_slot(slot)),
        }
    }

    /// Loads the labels of a bucket's slots, one after the other.
    #[inline(always)]
    pub(super) fn load_labels(&self, fast_pair: FastPair, bucket: usize) -> Option<[u64; SLOTS]> {
        let slots = self.buckets.get(bucket)?.slots.each_ref();
        // ORDERING: Acquire. Like `load_slot`.
        // Model: keyed_turnover::a_late_caller_gets_no_second_burst
        Some(slots.map(|slot| fast_pair.load_low(slot, Ordering::Acquire)))
    }

    #[inline(always)]
    fn load_slot(&self, slot: &AtomicU128) -> SlotState {
        // ORDERING: Acquire. It pairs with `exchange`. A thread that sees this content also sees
        // what was published with it: the parameters of its version, and the horizon raised before
        // an eviction.
        // Model: keyed_turnover::a_late_caller_gets_no_second_burst
        let order = Ordering::Acquire;
        SlotState::of_bits(match self.fast_pair {
            Some(fast_pair) => fast_pair.load(slot, order),
            None => slot.load(order),
        })
    }

    /// Finds the live slot of a key in its primary buckets. The slot must have exactly the label of
    /// `expected`, except for the bit of the second pair. Returns `None` also if the processor
    /// can't decide in place.
    #[inline(always)]
    pub(crate) fn find(&self, probe_seq: &ProbeSeq, expected: SlotState) -> Option<FoundSlot<'_>> {
        let (fast_pair, label) = (self.fast_pair?, expected.label());
        let (first, preferred) = (probe_seq.first(), probe_seq.preferred(false));
        // No closure, because it would not always be inlined.
        if let Some(found) = self.find_in(fast_pair, first, preferred, label) {
            return Some(found);
        }
        let (second, preferred) = (probe_seq.second(), probe_seq.preferred(true));
        self.find_in(fast_pair, second, preferred, SlotState::of_second(label))
    }

    #[inline(always)]
    fn find_in(
        &self,
        fast_pair: FastPair,
        bucket: usize,
        preferred: usize,
        label: u64,
    ) -> Option<FoundSlot<'_>> {
        let slots = &self.buckets.get(bucket)?.slots;
        let mut turn = 0;
        while turn < SLOTS {
            let found = FoundSlot::load(slots.get((turn ^ preferred) % SLOTS)?, fast_pair);
            if found.held.label() == label {
                return Some(found);
            }
            turn += 1;
        }
        None
    }

    /// Loads this slot, to decide on it in place. Returns `None` if the processor can't.
    #[inline(always)]
    pub(crate) fn found(&self, at: SlotIndex) -> Option<FoundSlot<'_>> {
        let fast_pair = self.fast_pair?;
        Some(FoundSlot::load(self.slot(at)?, fast_pair))
    }

    /// Iterates over all slots, loading each in turn.
    pub(crate) fn all(&self) -> impl Iterator<Item = (SlotIndex, SlotState)> + '_ {
        (0..self.buckets()).flat_map(|bucket| self.in_bucket(bucket, false))
    }

    /// Iterates over the slots of these buckets, loading each in turn.
    pub(crate) fn in_buckets(
        &self,
        buckets: Range<usize>,
    ) -> impl Iterator<Item = (SlotIndex, SlotState)> + '_ {
        buckets.flat_map(|bucket| self.in_bucket(bucket, false))
    }

    /// Iterates over all slots where a key may be, loading each in turn.
    pub(crate) fn all_of<'t>(
        &'t self,
        probe_seq: &ProbeSeq,
    ) -> impl Iterator<Item = (SlotIndex, SlotState)> + use<'t> {
        let buckets = probe_seq.all_buckets();
        buckets.flat_map(|(bucket, second)| self.in_bucket(bucket, second))
    }

    fn in_bucket(
        &self,
        bucket: usize,
        second: bool,
    ) -> impl Iterator<Item = (SlotIndex, SlotState)> + '_ {
        (0..SLOTS).map(move |index| {
            let at = SlotIndex {
                bucket,
                index,
                second,
            };
            (at, self.load(at))
        })
    }
}

/// A slot, and its content when it was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundSlot<'t> {
    slot: &'t AtomicU128,
    held: SlotState,
    fast_pair: FastPair,
}

impl<'t> FoundSlot<'t> {
    #[inline(always)]
    fn load(slot: &'t AtomicU128, fast_pair: FastPair) -> Self {
        // ORDERING: Acquire. Like `Table::load_slot`. Model: keyed::two_decide_on_a_key
        let held = SlotState::of_bits(fast_pair.load(slot, Ordering::Acquire));
        Self {
            slot,
            held,
            fast_pair,
        }
    }

    /// Returns the slot's content when it was found.
    #[inline(always)]
    pub(crate) const fn held(&self) -> SlotState {
        self.held
    }
}
