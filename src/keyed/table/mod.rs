//! The table: buckets of slots, in memory that is allocated once. This file loads slots;
//! `transitions.rs` changes them. The only other change is [`FoundSlot::decide_in_place`], for the
//! first attempts of a decision.

mod transitions;

use core::num::NonZeroU64;

use super::probe_seq::ProbeSeq;
use super::slot::SlotState;
use crate::sync::{AtomicU128, Buckets, FastPair, Ordering, SLOTS, prefetch};

/// The position of a slot: its bucket, and its index in the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotIndex {
    pub(super) bucket: usize,
    pub(super) index: usize,
    /// Whether the bucket is in the key's second pair.
    pub(super) second: bool,
}

#[derive(Debug)]
pub(super) struct Table {
    buckets: Buckets,
    count: NonZeroU64,
    fast_pair: Option<FastPair>,
}

impl Table {
    /// Creates `pairs` pairs of empty buckets, or returns `None` if there is not enough memory.
    pub(super) fn new(pairs: NonZeroU64) -> Option<Self> {
        let count = pairs.checked_mul(NonZeroU64::MIN.saturating_add(1))?;
        let buckets = Buckets::zeroed(usize::try_from(count.get()).ok()?)?;
        Some(Self {
            buckets,
            count,
            fast_pair: FastPair::there(),
        })
    }

    /// Creates an empty table of the same size.
    pub(super) fn like(other: &Self) -> Option<Self> {
        Self::new(NonZeroU64::new(other.count.get() / 2)?)
    }

    #[inline(always)]
    pub(super) const fn buckets(&self) -> NonZeroU64 {
        self.count
    }

    /// Returns the number of slots.
    pub(super) fn slots(&self) -> usize {
        self.buckets.len() * SLOTS
    }

    /// Returns the number of buckets.
    pub(super) fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Returns the 128-bit instructions that first attempts need, if the processor has them.
    #[inline(always)]
    pub(super) const fn fast_pair(&self) -> Option<FastPair> {
        self.fast_pair
    }

    #[inline(always)]
    pub(super) fn probe_seq(&self, hash: u64) -> ProbeSeq {
        ProbeSeq::of(hash, self.count)
    }

    /// Prefetches a bucket.
    #[inline(always)]
    pub(super) fn fetch(&self, bucket: usize) {
        prefetch(self.buckets.as_ptr().wrapping_add(bucket));
    }

    #[inline(always)]
    fn slot(&self, at: SlotIndex) -> Option<&AtomicU128> {
        self.buckets.get(at.bucket)?.slots.get(at.index)
    }

    #[inline(always)]
    pub(super) fn load(&self, at: SlotIndex) -> SlotState {
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

    /// Finds the live slot of a key in its primary buckets. The slot must have exactly this label,
    /// except for the bit of the second pair.
    #[inline(always)]
    pub(super) fn find(
        &self,
        fast_pair: FastPair,
        probe_seq: &ProbeSeq,
        label: u64,
    ) -> Option<FoundSlot<'_>> {
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
            let slot = slots.get((turn ^ preferred) % SLOTS)?;
            // ORDERING: Acquire. Like `load`.
            // Model: keyed::two_decide_on_a_key
            let held = SlotState::of_bits(fast_pair.load(slot, Ordering::Acquire));
            if held.label() == label {
                return Some(FoundSlot {
                    slot,
                    held,
                    fast_pair,
                });
            }
            turn += 1;
        }
        None
    }

    /// Loads this slot.
    #[inline(always)]
    pub(super) fn found(&self, fast_pair: FastPair, at: SlotIndex) -> Option<FoundSlot<'_>> {
        let slot = self.slot(at)?;
        // ORDERING: Acquire. Like `load`. Model: keyed::two_decide_on_a_key
        let held = SlotState::of_bits(fast_pair.load(slot, Ordering::Acquire));
        Some(FoundSlot {
            slot,
            held,
            fast_pair,
        })
    }

    /// Iterates over all slots, loading each in turn.
    pub(super) fn all(&self) -> impl Iterator<Item = (SlotIndex, SlotState)> + '_ {
        (0..self.len()).flat_map(move |bucket| self.slots_of(bucket))
    }

    /// Iterates over the slots of a bucket.
    pub(super) fn slots_of(
        &self,
        bucket: usize,
    ) -> impl Iterator<Item = (SlotIndex, SlotState)> + '_ {
        (0..SLOTS).map(move |index| {
            let at = SlotIndex {
                bucket,
                index,
                second: false,
            };
            (at, self.load(at))
        })
    }

    /// Exchanges the whole slot. Only `transitions.rs` calls it.
    #[cfg_attr(any(tollgate_loom, tollgate_shuttle), track_caller)]
    fn exchange(&self, at: SlotIndex, held: SlotState, next: SlotState) -> Result<(), SlotState> {
        let Some(slot) = self.slot(at) else {
            return Err(SlotState::RELEASED);
        };
        // ORDERING: AcqRel. Release publishes what the thread knew when it decided: the horizon,
        // and which version is current. Acquire pairs with the Release of earlier exchanges of the
        // slot, also on failure, like `load`. Each transition says what it publishes.
        // Model: keyed_quota::weaker_orderings_are_found
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let (old, new) = (held.bits(), next.bits());
        let exchanged = match self.fast_pair {
            Some(fast_pair) => fast_pair.compare_exchange(slot, old, new, success, failure),
            None => slot.compare_exchange(old, new, success, failure),
        };
        exchanged.map(|_| ()).map_err(SlotState::of_bits)
    }
}

/// A live slot, and its content when it was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundSlot<'t> {
    slot: &'t AtomicU128,
    pub(super) held: SlotState,
    fast_pair: FastPair,
}

impl FoundSlot<'_> {
    /// Replaces the slot's content by `next`, which has another word and may be protected. If the
    /// slot has changed since it was found, returns its present content as the error.
    #[inline(always)]
    pub(super) fn decide_in_place(self, next: SlotState) -> Result<(), SlotState> {
        // ORDERING: Relaxed. It publishes nothing. As a read-modify-write it continues the release
        // sequence of the content that it replaces, so a thread that loads the new content still
        // sees what was published with the old one. On failure Acquire, like `load`.
        // Model: keyed::two_decide_on_a_key
        let (success, failure) = (Ordering::Relaxed, Ordering::Acquire);
        let (old, new) = (self.held.bits(), next.bits());
        let exchanged = self
            .fast_pair
            .compare_exchange(self.slot, old, new, success, failure);
        exchanged.map(|_| ()).map_err(SlotState::of_bits)
    }
}
