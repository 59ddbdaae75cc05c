//! Inserts keys into a table that no other thread uses yet.

use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::keyed::leaving::{By, FirstToLeave};
use crate::keyed::plans::Plans;
use crate::keyed::probe::{Lookup, Probe};
use crate::keyed::probe_seq::ProbeSeq;
use crate::keyed::slot::SlotState;
use crate::keyed::table::{SlotIndex, Table};

/// A table that is being filled.
pub(super) struct Fill<'p, A> {
    pub(super) table: Table,
    plans: &'p Plans<A>,
    now: Tick,
    /// The number of keys in the table.
    pub(super) keys: u64,
    /// The number of keys that found no room, or were replaced by others.
    pub(super) no_room: u64,
    /// How many of these were protected.
    pub(super) no_room_protected: u64,
}

impl<'p, A: Algorithm> Fill<'p, A> {
    pub(super) const fn new(table: Table, plans: &'p Plans<A>, now: Tick) -> Self {
        Self {
            table,
            plans,
            now,
            keys: 0,
            no_room: 0,
            no_room_protected: 0,
        }
    }

    /// Inserts a key, or replaces its content if it is there already. If there is no room, drops
    /// the key that would be evicted first, which may be the new one.
    pub(super) fn put(&mut self, probe_seq: &ProbeSeq, of: impl Fn(bool) -> SlotState) {
        let seen = self.table.look(probe_seq);
        if let Lookup::Live(at, held) = seen.find(probe_seq.tag()) {
            self.write(at, held, of(at.second));
        } else if let Some((at, held)) = seen.free() {
            self.write(at, held, of(at.second));
            self.keys = self.keys.saturating_add(1);
        } else if let Some((at, held)) = self.moved_on(&seen) {
            self.write(at, held, of(at.second));
            self.keys = self.keys.saturating_add(1);
        } else {
            self.no_room = self.no_room.saturating_add(1);
            let version = self.plans.version();
            let mut first = FirstToLeave::new(By {
                plans: self.plans,
                version,
                now: self.now,
            });
            let new = of(false);
            let idle_at = |held| self.plans.idle_at(held, version, self.now);
            first.consider(None, new, idle_at(new));
            seen.slots()
                .for_each(|(at, held)| first.consider(Some(at), held, idle_at(held)));
            if let Some((at, held)) = first.found() {
                let protected = u64::from(held.is_protected());
                self.no_room_protected = self.no_room_protected.saturating_add(protected);
                if let Some(at) = at {
                    self.write(at, held, of(at.second));
                }
            }
        }
    }

    /// Removes a key, if it is there.
    pub(super) fn leave_out(&mut self, probe_seq: &ProbeSeq) {
        if let Lookup::Live(at, held) = self.table.look(probe_seq).find(probe_seq.tag()) {
            self.write(at, held, SlotState::RELEASED);
            self.keys = self.keys.saturating_sub(1);
        }
    }

    fn write(&self, at: SlotIndex, held: SlotState, next: SlotState) {
        self.table.write_unshared(at, held, next);
    }

    /// Makes room by moving a key from one of these slots to a free slot elsewhere in its probe
    /// sequence. Returns the slot that the key left, which still holds its old content.
    fn moved_on(&self, seen: &Probe) -> Option<(SlotIndex, SlotState)> {
        let mut slots = seen.slots();
        slots.find_map(|(at, held)| {
            let buckets = self.table.buckets();
            let probe_seq = ProbeSeq::found(at.bucket, held.tag(), held.is_second(), buckets)?;
            let (next, free) = self.table.look(&probe_seq).free()?;
            self.write(next, free, held.with_second(next.second));
            Some((at, held))
        })
    }
}
