//! A probe: the contents of all slots where a key may be.

use super::probe_seq::ProbeSeq;
use super::slot::SlotState;
use super::table::{SlotIndex, Table};
use crate::sync::{FastPair, SLOTS, inject_fault};

/// A key's primary buckets and their neighbors. The slots are numbered in probe order
/// ([`probe_seq`](super::probe_seq)), and in a bucket by their index.
#[derive(Debug)]
pub(super) struct Probe {
    primary: [ProbedBucket; 2],
    neighbors: Option<[ProbedBucket; 2]>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ProbedBucket {
    bucket: usize,
    second: bool,
    /// The index in the bucket at which the key's search for it, or for a free slot, begins.
    preferred: usize,
    held: [SlotState; SLOTS],
}

/// The result of looking for a key.
pub(super) enum Lookup {
    Live(SlotIndex, SlotState),
    Pending(SlotIndex, SlotState),
    Nothing,
}

/// If the first bucket has more free slots than this, a key goes there, however many the second
/// has.
const FEW: u32 = (SLOTS - SLOTS / 2) as u32;

impl Table {
    /// Loads the slots where a key may be. It skips the neighbors if a slot of the primary buckets
    /// has never been used: a key goes to a neighbor only if all slots of its primary buckets are
    /// taken, and a slot that was used once never becomes unused.
    #[inline(always)]
    pub(super) fn look(&self, probe_seq: &ProbeSeq) -> Probe {
        let primary = self.look_at_pair(probe_seq, [probe_seq.first(), probe_seq.second()]);
        let [first, second] = &primary;
        let neighbors = match first.has_never_used() || second.has_never_used() {
            true => None,
            false => self.look_at_neighbors(probe_seq),
        };
        Probe { primary, neighbors }
    }

    #[inline(never)]
    fn look_at_neighbors(&self, probe_seq: &ProbeSeq) -> Option<[ProbedBucket; 2]> {
        let (_, neighbors) = probe_seq.buckets();
        Some(self.look_at_pair(probe_seq, neighbors?))
    }

    #[inline(always)]
    fn look_at_pair(&self, probe_seq: &ProbeSeq, [first, second]: [usize; 2]) -> [ProbedBucket; 2] {
        [
            self.look_at(first, probe_seq.preferred(false), false),
            self.look_at(second, probe_seq.preferred(true), true),
        ]
    }

    /// Loads the labels of the primary buckets. Returns `None` on a processor where that takes as
    /// long as loading whole slots.
    #[inline(always)]
    pub(super) fn look_at_labels(&self, probe_seq: &ProbeSeq) -> Option<PairLabels> {
        self.labels_of(probe_seq, [probe_seq.first(), probe_seq.second()])
    }

    /// Loads the labels of the neighbors.
    #[inline(always)]
    pub(super) fn look_at_labels_of_neighbors(&self, probe_seq: &ProbeSeq) -> Option<PairLabels> {
        let (_, neighbors) = probe_seq.buckets();
        self.labels_of(probe_seq, neighbors?)
    }

    /// Returns whether the labels show that no slot belongs to the key. Returns `false` if labels
    /// can't be loaded alone.
    #[inline(always)]
    pub(super) fn has_none_of(&self, probe_seq: &ProbeSeq) -> bool {
        let has_none = |labels: PairLabels| labels.may_be_of(probe_seq.tag()) == [0; 2];
        self.look_at_labels(probe_seq).is_some_and(has_none)
            && self
                .look_at_labels_of_neighbors(probe_seq)
                .is_some_and(has_none)
    }

    #[inline(always)]
    fn labels_of(&self, probe_seq: &ProbeSeq, buckets: [usize; 2]) -> Option<PairLabels> {
        let fast_pair = self.fast_pair().filter(|_| FastPair::LOADS_HALVES)?;
        let [first, second] = buckets;
        Some(PairLabels {
            buckets,
            preferred: [probe_seq.preferred(false), probe_seq.preferred(true)],
            labels: [
                self.load_labels(fast_pair, first)?,
                self.load_labels(fast_pair, second)?,
            ],
        })
    }

    #[inline(always)]
    fn look_at(&self, bucket: usize, preferred: usize, second: bool) -> ProbedBucket {
        ProbedBucket {
            bucket,
            second,
            preferred,
            held: self.load_bucket(bucket),
        }
    }
}

/// The labels of a key's primary buckets, or of their neighbors.
#[derive(Debug)]
pub(super) struct PairLabels {
    buckets: [usize; 2],
    preferred: [usize; 2],
    labels: [[u64; SLOTS]; 2],
}

impl PairLabels {
    /// Returns the first slot or claim that may belong to the key with this tag. If there is none,
    /// the key is not in these buckets.
    #[inline(always)]
    pub(super) fn first_that_may_be_of(&self, tag: u64) -> Option<SlotIndex> {
        let [first, second] = self.may_be_of(tag);
        if first | second == 0 {
            return None;
        }
        let [first_bucket, second_bucket] = self.buckets;
        let (bucket, bits) = match first {
            0 => (second_bucket, second),
            _ => (first_bucket, first),
        };
        Some(SlotIndex {
            bucket,
            index: bits.trailing_zeros() as usize,
            second: first == 0,
        })
    }

    /// Returns a free slot, chosen as by [`Probe::free`], if a slot of these buckets was never
    /// used. Otherwise the key may be in the neighbors, and this returns `None`.
    #[inline(always)]
    pub(super) fn free_of_never_used(&self) -> Option<(SlotIndex, SlotState)> {
        if !self.has_never_used() {
            return None;
        }
        let [free, others] = self.bits(|held, _| held.is_free());
        let second = !is_emptier(free, others);
        let (pair, bits) = match second {
            false => (0, free),
            true => (1, others),
        };
        let index = first_of(bits, *self.preferred.get(pair)?)?;
        let at = SlotIndex {
            bucket: *self.buckets.get(pair)?,
            index,
            second,
        };
        let label = *self.labels.get(pair)?.get(index)?;
        Some((at, SlotState::of_label(label)))
    }

    /// Returns whether the labels show that this claim is the key's only slot. `self` must have the
    /// labels of the primary buckets.
    #[inline(always)]
    pub(super) fn are_of_no_other(
        &self,
        tag: u64,
        claim: SlotIndex,
        neighbors: impl FnOnce() -> Option<Self>,
    ) -> bool {
        self.may_be_of(tag) == self.bits_of_claim(claim)
            && (self.has_never_used()
                || neighbors().is_some_and(|neighbors| {
                    neighbors.may_be_of(tag) == neighbors.bits_of_claim(claim)
                }))
    }

    /// Returns the slots that may belong to the key with this tag. All other slots certainly do
    /// not.
    #[inline(always)]
    fn may_be_of(&self, tag: u64) -> [u32; 2] {
        self.bits(|held, second| held.may_be_of(tag, second))
    }

    /// Returns the bit of the claim, if it is in one of these buckets.
    #[inline(always)]
    fn bits_of_claim(&self, claim: SlotIndex) -> [u32; 2] {
        let [first, second] = self.buckets;
        let of = |bucket, second| {
            u32::from(claim.bucket == bucket && claim.second == second) << claim.index
        };
        [of(first, false), of(second, true)]
    }

    #[inline(always)]
    fn has_never_used(&self) -> bool {
        let [first, second] = self.bits(|held, _| is_never_used(held));
        first | second != 0
    }

    /// Returns the slots whose labels satisfy `holds`: for each bucket, one bit for each slot.
    #[inline(always)]
    fn bits(&self, holds: impl Fn(SlotState, bool) -> bool) -> [u32; 2] {
        let [first, second] = &self.labels;
        let of = |labels: &[u64; SLOTS], second| {
            bits_of(labels, |label| holds(SlotState::of_label(*label), second))
        };
        [of(first, false), of(second, true)]
    }
}

/// Returns the slots of a bucket that satisfy `is`, one bit each.
#[inline(always)]
fn bits_of<T>(slots: &[T; SLOTS], is: impl Fn(&T) -> bool) -> u32 {
    let (mut bits, mut bit) = (0, 1);
    for slot in slots {
        bits |= bit * u32::from(is(slot));
        bit <<= 1;
    }
    bits
}

/// Returns the first of these slots, in the order of a search that begins at the preferred one.
#[inline(always)]
fn first_of(bits: u32, preferred: usize) -> Option<usize> {
    let mut in_turn = (0..SLOTS).map(|turn| (turn ^ preferred) % SLOTS);
    in_turn.find(|index| bits >> index & 1 != 0)
}

/// Returns whether a key goes to the first of two buckets, given their free slots.
#[inline(always)]
const fn is_emptier(free: u32, others: u32) -> bool {
    free.count_ones() > FEW || free.count_ones() >= others.count_ones()
}

#[inline(always)]
fn is_never_used(held: SlotState) -> bool {
    let by_free = held.is_free() && inject_fault!(SkipsByFree); // FAULT
    held.label() == SlotState::NEVER_USED.label() || by_free
}

impl Probe {
    /// Iterates over all slots, in the order of their numbers.
    pub(super) fn slots(&self) -> impl Iterator<Item = (SlotIndex, SlotState)> + '_ {
        self.buckets().flat_map(ProbedBucket::slots)
    }

    /// Passes all slots to `see`, each with its number.
    #[inline(always)]
    pub(super) fn each(&self, mut see: impl FnMut(usize, SlotState)) {
        let [first, second] = &self.primary;
        first.each(0, &mut see);
        second.each(SLOTS, &mut see);
        if let Some([first, second]) = &self.neighbors {
            first.each(2 * SLOTS, &mut see);
            second.each(3 * SLOTS, &mut see);
        }
    }

    /// Returns whether each slot has a key that is not banned: none is free or claimed.
    #[inline(always)]
    pub(super) fn is_full_of_keys(&self) -> bool {
        let mut all = SlotState::of_label(!0);
        self.each(|_, held| all = SlotState::of_label(all.label() & held.label()));
        all.is_live_and_not_banned()
    }

    /// Returns the slot with the lowest number that satisfies `holds`.
    #[inline(always)]
    pub(super) fn first(
        &self,
        holds: impl Fn(SlotState) -> bool,
    ) -> Option<(SlotIndex, SlotState)> {
        let (mut bits, mut bit) = (0_u32, 1);
        self.each(|_, held| {
            bits |= u32::from(holds(held)) * bit;
            bit <<= 1;
        });
        match bits {
            0 => None,
            _ => self.nth(bits.trailing_zeros() as usize),
        }
    }

    /// Returns the slot with this number.
    pub(super) fn nth(&self, number: usize) -> Option<(SlotIndex, SlotState)> {
        let bucket = self.buckets().nth(number / SLOTS)?;
        let index = number % SLOTS;
        Some((bucket.at(index), *bucket.held.get(index)?))
    }

    fn buckets(&self) -> impl Iterator<Item = &ProbedBucket> {
        let neighbors: &[_] = self.neighbors.as_ref().map_or(&[], |buckets| buckets);
        self.primary.iter().chain(neighbors)
    }

    /// Passes the slots of the key with this tag to `see`, in the order of their numbers, until it
    /// returns `Some`.
    #[inline(always)]
    pub(super) fn each_of<T>(
        &self,
        tag: u64,
        mut see: impl FnMut(SlotIndex, SlotState) -> Option<T>,
    ) -> Option<T> {
        let [first, second] = &self.primary;
        if let Some(seen) = first
            .each_of(tag, &mut see)
            .or_else(|| second.each_of(tag, &mut see))
        {
            return Some(seen);
        }
        let [first, second] = self.neighbors.as_ref()?;
        first
            .each_of(tag, &mut see)
            .or_else(|| second.each_of(tag, &mut see))
    }

    /// Finds the slot of the key with this tag, or a claim for it.
    #[inline(always)]
    pub(super) fn find(&self, tag: u64) -> Lookup {
        let mut pending = None;
        let live = self.each_of(tag, |at, held| {
            if held.is_live() {
                return Some(Lookup::Live(at, held));
            }
            pending = pending.or(Some((at, held)));
            None
        });
        live.unwrap_or(match pending {
            Some((at, held)) => Lookup::Pending(at, held),
            None => Lookup::Nothing,
        })
    }

    /// Applies `of` to the primary buckets, and to the neighbors if that returns `None`.
    fn in_turn<T>(&self, of: impl Fn(&[ProbedBucket; 2]) -> Option<T>) -> Option<T> {
        of(&self.primary).or_else(|| of(self.neighbors.as_ref()?))
    }

    /// Returns a free slot: of a primary bucket if possible, and of the bucket that has more free
    /// slots. The first bucket is preferred if it is almost empty.
    pub(super) fn free(&self) -> Option<(SlotIndex, SlotState)> {
        self.in_turn(|[first, second]| {
            let (free, others) = (first.free_bits(), second.free_bits());
            if free | others == 0 {
                return None;
            }
            match is_emptier(free, others) {
                true => first.first_of(free),
                false => second.first_of(others),
            }
        })
    }

    /// Returns the slot of a key that `is_idle`: of a primary bucket if possible, and of the bucket
    /// that has more idle keys.
    pub(super) fn idle(
        &self,
        is_idle: impl Fn(SlotState) -> bool,
    ) -> Option<(SlotIndex, SlotState)> {
        self.in_turn(|[first, second]| {
            let (idle, others) = (first.idle_bits(&is_idle), second.idle_bits(&is_idle));
            match idle.count_ones() >= others.count_ones() {
                true => first.first_of(idle),
                false => second.first_of(others),
            }
        })
    }
}

impl ProbedBucket {
    #[inline(always)]
    fn each_of<T>(
        &self,
        tag: u64,
        see: &mut impl FnMut(SlotIndex, SlotState) -> Option<T>,
    ) -> Option<T> {
        let mut index = 0;
        while let Some(held) = self.held.get(index) {
            if held.is_of(tag, self.second) {
                if let Some(seen) = see(self.at(index), *held) {
                    return Some(seen);
                }
            }
            index += 1;
        }
        None
    }

    #[inline(always)]
    fn each(&self, before: usize, see: &mut impl FnMut(usize, SlotState)) {
        for (index, held) in self.held.iter().enumerate() {
            see(before + index, *held);
        }
    }

    fn slots(&self) -> impl Iterator<Item = (SlotIndex, SlotState)> + '_ {
        let slots = self.held.iter().enumerate();
        slots.map(|(index, held)| (self.at(index), *held))
    }

    const fn at(&self, index: usize) -> SlotIndex {
        SlotIndex {
            bucket: self.bucket,
            index,
            second: self.second,
        }
    }

    /// Returns whether a slot has never been used.
    #[inline(always)]
    fn has_never_used(&self) -> bool {
        bits_of(&self.held, |held| is_never_used(*held)) != 0
    }

    /// Returns the free slots.
    #[inline(always)]
    fn free_bits(&self) -> u32 {
        bits_of(&self.held, |held| held.is_free())
    }

    /// Returns the first of these slots.
    #[inline(always)]
    fn first_of(&self, bits: u32) -> Option<(SlotIndex, SlotState)> {
        let index = first_of(bits, self.preferred)?;
        Some((self.at(index), *self.held.get(index)?))
    }

    /// Returns the slots of keys that are idle.
    #[inline(always)]
    fn idle_bits(&self, is_idle: impl Fn(SlotState) -> bool) -> u32 {
        bits_of(&self.held, |held| held.is_live() && is_idle(*held))
    }
}
