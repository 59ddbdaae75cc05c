//! Keys that are put into a table which no other thread uses yet.

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
    /// How many keys are in it.
    pub(super) keys: u64,
    /// How many were, or came, and have given way.
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

    /// Puts a key into the table, or gives it this content, if it is there already. Where there is
    /// no room, the key that is first to leave gives way.
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

    /// Takes a key out, if it is there.
    pub(super) fn leave_out(&mut self, probe_seq: &ProbeSeq) {
        if let Lookup::Live(at, held) = self.table.look(probe_seq).find(probe_seq.tag()) {
            self.write(at, held, SlotState::RELEASED);
            self.keys = self.keys.saturating_sub(1);
        }
    }

    fn write(&self, at: SlotIndex, held: SlotState, next: SlotState) {
        self.table.write_unshared(at, held, next);
    }

    /// A key that is where another one may be, and has been put where else it may be: what is there
    /// now is left over.
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
