//! How a key gets and loses an override: see [`overrides`](super::overrides).
//!
//! A thread that sets an override first stores it, then passes a fence. Then it moves the key's
//! slot to the override, by an exchange, and releases claims for the key. A thread that claims a
//! slot passes a fence after its claim, and looks for an override after that. So either this thread
//! finds the override, or the first one finds the claim and releases it.

use super::core::Core;
use super::overrides::OWN;
use super::plans::InForce;
use super::probe_seq::ProbeSeq;
use super::slot::SlotState;
use super::stats::Event;
use super::table::SlotIndex;
use crate::algorithm::{ChangeQuota, Settings};
use crate::clock::Tick;
use crate::limiter_error::LimiterError;
use crate::sync::{Ordering, fence, inject_fault};

impl<A: ChangeQuota + Settings + Clone> Core<A> {
    /// Gives a key an algorithm of its own.
    pub(super) fn set_own(
        &self,
        probe_seq: &ProbeSeq,
        algorithm: A,
        now: Tick,
    ) -> Result<(), LimiterError> {
        let overrides = self.plans.overrides().ok_or(LimiterError::NoOverrides)?;
        let (hash, max) = (probe_seq.hash(), overrides.max());
        overrides.change(|owners| {
            let in_use = LimiterError::OverridesInUse { max };
            if owners.len() >= max && !owners.contains_key(&hash) {
                return Err(in_use);
            }
            let version = overrides.put(hash, &algorithm).ok_or(in_use)?;
            owners.insert(hash, algorithm);
            self.move_to(InForce::new(OWN, version), probe_seq, now);
            overrides.vacate_but(hash, Some(version));
            Ok(())
        })
    }

    /// Removes a key's own algorithm, and returns whether it had one. The key continues in this
    /// plan, or in the first plan if this one does not exist.
    pub(super) fn unset_own(&self, probe_seq: &ProbeSeq, plan: u8, now: Tick) -> bool {
        let Some(overrides) = self.plans.overrides() else {
            return false;
        };
        let hash = probe_seq.hash();
        overrides.change(|owners| {
            if owners.remove(&hash).is_none() {
                return false;
            }
            overrides.leave(hash);
            let plan = self.plans.get(plan).map_or(0, |_| plan);
            // No quota changes while the lock is held.
            let version = self.plans.version();
            self.move_to(InForce::new(plan, version), probe_seq, now);
            overrides.vacate_but(hash, None);
            true
        })
    }

    /// Returns a key's own algorithm.
    pub(super) fn own(&self, probe_seq: &ProbeSeq) -> Option<A> {
        let overrides = self.plans.overrides()?;
        overrides.change(|owners| owners.get(&probe_seq.hash()).cloned())
    }

    /// Moves the key's slot to this algorithm, and releases claims for the key. The caller holds
    /// the lock of the overrides.
    fn move_to(&self, to: InForce, probe_seq: &ProbeSeq, now: Tick) {
        // ORDERING: SeqCst. It pairs with the fence of `confirm_unique`. If a thread claims a slot
        // that is found free here, its fence comes later, so it sees the override that was put or
        // marked before. If its fence came earlier, its claim is found here and released.
        // Model: keyed_overrides::a_key_inserted_meanwhile_has_the_new_algorithm
        fence(Ordering::SeqCst);
        for (bucket, second) in probe_seq.all_buckets() {
            for (at, held) in self.table.slots_of(bucket) {
                self.move_slot(to, probe_seq, (SlotIndex { second, ..at }, held), now);
            }
        }
    }

    fn move_slot(
        &self,
        to: InForce,
        probe_seq: &ProbeSeq,
        (at, mut held): (SlotIndex, SlotState),
        now: Tick,
    ) {
        while held.is_of(probe_seq.tag(), at.second) {
            let done = if held.is_live() {
                match self.plans.moved(held, probe_seq.hash(), to, now) {
                    Some(_) if inject_fault!(LeavesTheSlot) => return,
                    Some(next) => self.table.migrate(at, held, next),
                    // Unreachable: a slot's algorithm stays until the slot has been moved.
                    None => {
                        let done = self.table.release(at, held);
                        done.map(|()| self.events.count(Event::Removed))
                    }
                }
            } else if inject_fault!(SparesClaimsOfTheKey) {
                return;
            } else {
                self.table.release(at, held)
            };
            match done {
                Ok(()) => return,
                Err(seen) => held = seen,
            }
        }
    }
}
