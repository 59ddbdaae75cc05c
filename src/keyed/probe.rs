//! What is in the slots where a key may be, looked at once.

use super::probe_seq::ProbeSeq;
use super::slot::SlotState;
use super::table::{SlotIndex, Table};
use crate::sync::{SLOTS, inject_fault};

/// A key's primary buckets and their neighbours, in its own order.
#[derive(Debug)]
pub(super) struct Probe {
    primary: [ProbedBucket; 2],
    neighbours: Option<[ProbedBucket; 2]>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ProbedBucket {
    bucket: usize,
    second: bool,
    /// Which of its slots the key prefers.
    preferred: usize,
    held: [SlotState; SLOTS],
}

/// What a look for a key finds.
pub(super) enum Lookup {
    Live(SlotIndex, SlotState),
    Pending(SlotIndex, SlotState),
    Nothing,
}

/// A bucket with fewer slots taken is as good as any.
const FEW: usize = SLOTS / 2;

impl Table {
    /// Looks at the slots where a key may be. At the neighbours only if there is no slot in the
    /// primary buckets that was never used: the thread that put the key into a neighbour found none
    /// there, and they don't come back.
    #[inline]
    pub(super) fn look(&self, probe_seq: &ProbeSeq) -> Probe {
        let primary = self.look_at_pair(probe_seq, [probe_seq.first(), probe_seq.second()]);
        let [first, second] = &primary;
        let neighbours = match first.has_never_used() || second.has_never_used() {
            true => None,
            false => self.look_at_neighbours(probe_seq),
        };
        Probe {
            primary,
            neighbours,
        }
    }

    #[inline(never)]
    fn look_at_neighbours(&self, probe_seq: &ProbeSeq) -> Option<[ProbedBucket; 2]> {
        let (_, neighbours) = probe_seq.buckets();
        Some(self.look_at_pair(probe_seq, neighbours?))
    }

    #[inline(always)]
    fn look_at_pair(&self, probe_seq: &ProbeSeq, [first, second]: [usize; 2]) -> [ProbedBucket; 2] {
        [
            self.look_at(first, probe_seq.preferred(false), false),
            self.look_at(second, probe_seq.preferred(true), true),
        ]
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

impl Probe {
    /// All slots, in the key's own order.
    pub(super) fn slots(&self) -> impl Iterator<Item = (SlotIndex, SlotState)> + '_ {
        self.buckets().flat_map(ProbedBucket::slots)
    }

    fn buckets(&self) -> impl Iterator<Item = &ProbedBucket> {
        let neighbours: &[_] = self.neighbours.as_ref().map_or(&[], |buckets| buckets);
        self.primary.iter().chain(neighbours)
    }

    /// Where the key is, or is to be.
    #[inline]
    pub(super) fn find(&self, tag: u64) -> Lookup {
        let mut pending = None;
        for bucket in self.buckets() {
            for (place, held) in bucket.held.iter().enumerate() {
                if held.is_of(tag, bucket.second) {
                    let at = bucket.at(place);
                    if held.is_live() {
                        return Lookup::Live(at, *held);
                    }
                    pending = pending.or(Some((at, *held)));
                }
            }
        }
        pending.map_or(Lookup::Nothing, |(at, held)| Lookup::Pending(at, held))
    }

    /// What one pair of buckets has, else the other: the primary buckets come first.
    fn in_turn<T>(&self, of: impl Fn(&[ProbedBucket; 2]) -> Option<T>) -> Option<T> {
        of(&self.primary).or_else(|| of(self.neighbours.as_ref()?))
    }

    /// A slot that is nobody's: in a primary bucket, if there is one, in the bucket where fewer are
    /// taken, or in the first where hardly any is.
    pub(super) fn free(&self) -> Option<(SlotIndex, SlotState)> {
        self.in_turn(|[first, second]| {
            let (taken, others) = (first.taken(), second.taken());
            let (bucket, other) = match taken < FEW || taken <= others {
                true => (first, second),
                false => (second, first),
            };
            bucket.free().or_else(|| other.free())
        })
    }

    /// A slot whose key leaves, of those that `is_idle`: in a primary bucket, if there is one, in
    /// the bucket where more are.
    pub(super) fn idle(
        &self,
        is_idle: impl Fn(SlotState) -> bool,
    ) -> Option<(SlotIndex, SlotState)> {
        self.in_turn(|[first, second]| {
            let (first, second) = (first.idle(&is_idle), second.idle(&is_idle));
            match first.0 >= second.0 {
                true => first.1,
                false => second.1,
            }
        })
    }
}

impl ProbedBucket {
    fn slots(&self) -> impl Iterator<Item = (SlotIndex, SlotState)> + '_ {
        let slots = self.held.iter().enumerate();
        slots.map(|(place, held)| (self.at(place), *held))
    }

    /// The same, beginning where the key is looked for first.
    fn as_preferred(&self) -> impl Iterator<Item = (SlotIndex, SlotState)> + '_ {
        (0..SLOTS).filter_map(|turn| {
            let place = (turn ^ self.preferred) % SLOTS;
            Some((self.at(place), *self.held.get(place)?))
        })
    }

    const fn at(&self, place: usize) -> SlotIndex {
        SlotIndex {
            bucket: self.bucket,
            place,
            second: self.second,
        }
    }

    /// Whether a slot has never been used.
    #[inline(always)]
    fn has_never_used(&self) -> bool {
        let never_used = |held: &SlotState| {
            *held == SlotState::NEVER_USED || (inject_fault!(SkipsByFree) && held.is_free())
        };
        self.held.iter().any(never_used)
    }

    /// How many slots are taken.
    fn taken(&self) -> usize {
        self.held.iter().filter(|held| !held.is_free()).count()
    }

    /// One that is not.
    fn free(&self) -> Option<(SlotIndex, SlotState)> {
        self.as_preferred().find(|(_, held)| held.is_free())
    }

    /// How many slots have a key that `is_idle`, and one of them.
    fn idle(&self, is_idle: impl Fn(SlotState) -> bool) -> (usize, Option<(SlotIndex, SlotState)>) {
        let idle = |(_, held): &(SlotIndex, SlotState)| held.is_live() && is_idle(*held);
        let mut idle = self.as_preferred().filter(idle);
        let first = idle.next();
        (usize::from(first.is_some()) + idle.count(), first)
    }
}
