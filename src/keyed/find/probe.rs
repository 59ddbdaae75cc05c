//! A probe: the contents of the slots where a key may be, or their labels alone.

use super::probe_seq::ProbeSeq;
use super::slot::SlotState;
use super::table::{SlotIndex, Table};
use crate::sync::{FastPair, SLOTS, inject_fault};

/// A key's primary buckets and their neighbors. The slots are numbered in probe order
/// ([`probe_seq`](super::probe_seq)), and in a bucket by their index.
#[derive(Debug)]
pub(crate) struct Probe {
    primary: Pair<SlotState>,
    neighbors: Option<Pair<SlotState>>,
}

/// The labels of a key's primary buckets, or of their neighbors.
pub(crate) type PairLabels = Pair<u64>;

/// A key's primary buckets, or their neighbors: of each slot its content or its label.
#[derive(Debug)]
pub(crate) struct Pair<T> {
    buckets: [usize; 2],
    /// The index in each bucket at which the key's search for it, or for a free slot, begins.
    preferred: [usize; 2],
    held: [[T; SLOTS]; 2],
}

/// The result of looking for a key.
pub(crate) enum Lookup {
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
    pub(crate) fn look(&self, probe_seq: &ProbeSeq) -> Probe {
        let primary = self.look_at(probe_seq, [probe_seq.first(), probe_seq.second()]);
        let neighbors = match primary.has_never_used() {
            true => None,
            false => self.look_at_neighbors(probe_seq),
        };
        Probe { primary, neighbors }
    }

    #[inline(never)]
    fn look_at_neighbors(&self, probe_seq: &ProbeSeq) -> Option<Pair<SlotState>> {
        let neighbors = probe_seq.neighbors()?;
        Some(self.look_at(probe_seq, neighbors))
    }

    #[inline(always)]
    fn look_at(&self, probe_seq: &ProbeSeq, buckets: [usize; 2]) -> Pair<SlotState> {
        let [first, second] = buckets;
        let held = [self.load_bucket(first), self.load_bucket(second)];
        Pair::of(probe_seq, buckets, held)
    }

    /// Loads the labels of the primary buckets. Returns `None` on a processor where that takes as
    /// long as loading whole slots.
    #[inline(always)]
    pub(crate) fn look_at_labels(&self, probe_seq: &ProbeSeq) -> Option<PairLabels> {
        self.labels_of(probe_seq, [probe_seq.first(), probe_seq.second()])
    }

    #[inline(always)]
    fn labels_of(&self, probe_seq: &ProbeSeq, buckets: [usize; 2]) -> Option<PairLabels> {
        let fast_pair = self.fast_pair().filter(|_| FastPair::LOADS_HALVES)?;
        let [first, second] = buckets;
        let held = [
            self.load_labels(fast_pair, first)?,
            self.load_labels(fast_pair, second)?,
        ];
        Some(Pair::of(probe_seq, buckets, held))
    }

    /// Loads the labels of the neighbors.
    #[inline(always)]
    fn look_at_labels_of_neighbors(&self, probe_seq: &ProbeSeq) -> Option<PairLabels> {
        self.labels_of(probe_seq, probe_seq.neighbors()?)
    }

    /// Returns whether the labels show that no slot belongs to the key. Returns `false` if labels
    /// can't be loaded alone.
    #[inline(always)]
    pub(crate) fn has_none_of(&self, probe_seq: &ProbeSeq) -> bool {
        let has_none = |labels: PairLabels| labels.may_be_of(probe_seq.tag()) == [0; 2];
        self.look_at_labels(probe_seq).is_some_and(has_none)
            && self
                .look_at_labels_of_neighbors(probe_seq)
                .is_some_and(has_none)
    }

    /// Returns whether the labels show that no slot belongs to the key, except this claim.
    #[inline(always)]
    pub(crate) fn has_only(&self, probe_seq: &ProbeSeq, claim: SlotIndex) -> bool {
        let labels = self.look_at_labels(probe_seq);
        labels.is_some_and(|labels| {
            let neighbors = || self.look_at_labels_of_neighbors(probe_seq);
            labels.are_of_no_other(probe_seq.tag(), claim, neighbors)
        })
    }
}

impl PairLabels {
    /// Returns the first slot or claim that may belong to the key with this tag. If there is none,
    /// the key is not in these buckets.
    #[inline(always)]
    pub(crate) fn first_that_may_be_of(&self, tag: u64) -> Option<SlotIndex> {
        let [first, second] = self.may_be_of(tag);
        if first | second == 0 {
            return None;
        }
        let bits = if first == 0 { second } else { first };
        Some(self.at(first == 0, bits.trailing_zeros() as usize))
    }

    /// Returns a free slot, chosen as by [`Probe::free`], if a slot of these buckets was never
    /// used. Otherwise the key may be in the neighbors, and this returns `None`.
    #[inline(always)]
    pub(crate) fn free_of_never_used(&self) -> Option<(SlotIndex, SlotState)> {
        match self.has_never_used() {
            true => self.free(),
            false => None,
        }
    }

    /// Returns the slots that may belong to the key with this tag. All other slots certainly do
    /// not.
    #[inline(always)]
    fn may_be_of(&self, tag: u64) -> [u32; 2] {
        self.bits(|held, second| held.may_be_of(tag, second))
    }

    /// Returns whether the labels show that this claim is the key's only slot. `self` must have the
    /// labels of the primary buckets.
    #[inline(always)]
    fn are_of_no_other(
        &self,
        tag: u64,
        claim: SlotIndex,
        neighbors: impl FnOnce() -> Option<Self>,
    ) -> bool {
        self.may_be_of(tag) == self.bits_at(claim)
            && (self.has_never_used()
                || neighbors()
                    .is_some_and(|neighbors| neighbors.may_be_of(tag) == neighbors.bits_at(claim)))
    }

    /// Returns the bit of this slot, if it is in one of these buckets.
    #[inline(always)]
    fn bits_at(&self, at: SlotIndex) -> [u32; 2] {
        let [first, second] = self.buckets;
        let buckets = [(first, false), (second, true)];
        buckets.map(|bucket| u32::from((at.bucket, at.second) == bucket) << at.index)
    }
}

impl<T: Copy + Into<SlotState>> Pair<T> {
    #[inline(always)]
    fn of(probe_seq: &ProbeSeq, buckets: [usize; 2], held: [[T; SLOTS]; 2]) -> Self {
        Self {
            buckets,
            preferred: [probe_seq.preferred(false), probe_seq.preferred(true)],
            held,
        }
    }

    #[inline(always)]
    fn at(&self, second: bool, index: usize) -> SlotIndex {
        SlotIndex {
            bucket: one_of_two(&self.buckets, second),
            index,
            second,
        }
    }

    #[inline(always)]
    fn slot(&self, second: bool, index: usize) -> Option<(SlotIndex, SlotState)> {
        let [first_held, second_held] = &self.held;
        let held = if second { second_held } else { first_held };
        Some((self.at(second, index), (*held.get(index)?).into()))
    }

    /// Returns the slots that satisfy `is`: for each bucket, one bit for each slot.
    #[inline(always)]
    fn bits(&self, is: impl Fn(SlotState, bool) -> bool) -> [u32; 2] {
        let of_bucket = |held: &[T; SLOTS], second| {
            let (mut bits, mut bit) = (0, 1);
            for held in held {
                bits |= bit * u32::from(is((*held).into(), second));
                bit <<= 1;
            }
            bits
        };
        let [first, second] = &self.held;
        [of_bucket(first, false), of_bucket(second, true)]
    }

    /// Returns the first of these slots of a bucket, in the order of a search that begins at the
    /// preferred one.
    #[inline(always)]
    fn first_of(&self, second: bool, bits: u32) -> Option<(SlotIndex, SlotState)> {
        let preferred = one_of_two(&self.preferred, second);
        let mut in_turn = (0..SLOTS).map(|turn| (turn ^ preferred) % SLOTS);
        self.slot(second, in_turn.find(|index| bits >> index & 1 != 0)?)
    }

    /// Returns a free slot, if there is one, of the bucket that has more of them. The first bucket
    /// is preferred if it is almost empty.
    #[inline(always)]
    fn free(&self) -> Option<(SlotIndex, SlotState)> {
        let [free, others] = self.bits(|held, _| held.is_free());
        let is_first = free.count_ones() > FEW || free.count_ones() >= others.count_ones();
        self.first_of(!is_first, if is_first { free } else { others })
    }

    #[inline(always)]
    fn has_never_used(&self) -> bool {
        let [first, second] = self.bits(|held, _| {
            let by_free = held.is_free() && inject_fault!(SkipsByFree); // FAULT
            held.label() == SlotState::NEVER_USED.label() || by_free
        });
        first | second != 0
    }
}

#[inline(always)]
const fn one_of_two(two: &[usize; 2], second: bool) -> usize {
    let [one, other] = *two;
    if second { other } else { one }
}

impl Pair<SlotState> {
    /// Returns the slot of a key that `is_idle`, of the bucket that has more idle keys.
    fn idle(&self, is_idle: &impl Fn(SlotState) -> bool) -> Option<(SlotIndex, SlotState)> {
        let [idle, others] = self.bits(|held, _| held.is_live() && is_idle(held));
        let is_first = idle.count_ones() >= others.count_ones();
        self.first_of(!is_first, if is_first { idle } else { others })
    }

    #[inline(always)]
    fn each(&self, before: usize, see: &mut impl FnMut(usize, SlotState)) {
        for (number, held) in (before..).zip(self.held.as_flattened()) {
            see(number, *held);
        }
    }

    #[inline(always)]
    fn slots(&self) -> impl Iterator<Item = (SlotIndex, SlotState)> + '_ {
        (0..2 * SLOTS).filter_map(|number| self.slot(number >= SLOTS, number % SLOTS))
    }
}

impl Probe {
    /// Iterates over all slots, in the order of their numbers.
    #[inline(always)]
    pub(crate) fn slots(&self) -> impl Iterator<Item = (SlotIndex, SlotState)> + '_ {
        let pairs = core::iter::once(&self.primary).chain(&self.neighbors);
        pairs.flat_map(Pair::slots)
    }

    /// Passes all slots to `see`, each with its number.
    #[inline(always)]
    pub(crate) fn each(&self, mut see: impl FnMut(usize, SlotState)) {
        self.primary.each(0, &mut see);
        if let Some(neighbors) = &self.neighbors {
            neighbors.each(2 * SLOTS, &mut see);
        }
    }

    /// Returns the slot with this number.
    pub(crate) fn nth(&self, number: usize) -> Option<(SlotIndex, SlotState)> {
        let pair = match number / (2 * SLOTS) {
            0 => &self.primary,
            _ => self.neighbors.as_ref()?,
        };
        pair.slot(number % (2 * SLOTS) >= SLOTS, number % SLOTS)
    }

    /// Returns whether each slot has a key that is not banned: none is free or claimed.
    #[inline(always)]
    pub(crate) fn is_full_of_keys(&self) -> bool {
        let mut all = SlotState::from(!0);
        self.each(|_, held| all = SlotState::from(all.label() & held.label()));
        all.is_live_and_not_banned()
    }

    /// Finds the slot of the key with this tag, or the first claim for it.
    #[inline(always)]
    pub(crate) fn find(&self, tag: u64) -> Lookup {
        let mut pending = None;
        for (at, held) in self.all_of(tag) {
            if held.is_live() {
                return Lookup::Live(at, held);
            }
            pending = pending.or(Some(Lookup::Pending(at, held)));
        }
        pending.unwrap_or(Lookup::Nothing)
    }

    /// Iterates over the slots of the key with this tag, in the order of their numbers.
    #[inline(always)]
    pub(crate) fn all_of(&self, tag: u64) -> impl Iterator<Item = (SlotIndex, SlotState)> + '_ {
        self.slots()
            .filter(move |(at, held)| held.is_of(tag, at.second))
    }

    /// Applies `find` to the primary buckets, and to the neighbors if that returns `None`.
    fn in_turn<T>(&self, find: impl Fn(&Pair<SlotState>) -> Option<T>) -> Option<T> {
        find(&self.primary).or_else(|| find(self.neighbors.as_ref()?))
    }

    /// Returns a free slot: of a primary bucket if possible, and of the bucket that has more free
    /// slots. The first bucket is preferred if it is almost empty.
    pub(crate) fn free(&self) -> Option<(SlotIndex, SlotState)> {
        self.in_turn(Pair::free)
    }

    /// Returns the slot of a key that `is_idle`: of a primary bucket if possible, and of the bucket
    /// that has more idle keys.
    pub(crate) fn idle(
        &self,
        is_idle: impl Fn(SlotState) -> bool,
    ) -> Option<(SlotIndex, SlotState)> {
        self.in_turn(|pair| pair.idle(&is_idle))
    }
}
