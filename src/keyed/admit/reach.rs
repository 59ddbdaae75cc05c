//! How a change of a quota or an override reaches the keys in the table.
//!
//! A thread that makes a change first stores the algorithm, then passes a fence. Then it moves live
//! slots to the algorithm, each by an exchange, and releases claims. A thread that claims a slot
//! passes a fence after its claim, and reads the version and the override after that. So either
//! this thread finds the change, or the first one finds the claim and releases it.

use super::Keys;
use crate::adjustable::Keep;
use crate::algorithm::{Algorithm, ChangeQuota, Settings};
use crate::clock::Tick;
use crate::keyed::find::{Probe, ProbeSeq, SlotIndex, SlotState};
use crate::keyed::plans::{AlgorithmId, PARTS};
use crate::limiter_error::LimiterError;
use crate::quota::Quota;
use crate::sync::{Ordering, fence};

impl<A: ChangeQuota + Settings + Clone> Keys<A> {
    /// Changes the quota of a plan at this tick. One part of the table is migrated.
    pub(crate) fn set_quota(
        &self,
        plan: usize,
        quota: Quota,
        keep: Keep,
        at: Tick,
    ) -> Result<(), LimiterError> {
        let sweep = |version| self.sweep(version);
        self.plans.set_quota(plan, quota, (keep, at), sweep)
    }

    /// Gives a key an override.
    pub(crate) fn set_override(
        &self,
        probe_seq: &ProbeSeq,
        algorithm: A,
        now: Tick,
    ) -> Result<(), LimiterError> {
        let reach = |to| self.move_to(to, probe_seq, now);
        self.plans.set_override(probe_seq.hash(), algorithm, reach)
    }

    /// Removes a key's override, and returns whether it had one. The key continues in this plan.
    pub(crate) fn remove_override(&self, probe_seq: &ProbeSeq, plan: u8, now: Tick) -> bool {
        let reach = |to| self.move_to(to, probe_seq, now);
        self.plans.remove_override(probe_seq.hash(), plan, reach)
    }
}

impl<A: Algorithm> Keys<A> {
    /// Migrates one part of the table to this version, the current one. Successive versions take
    /// the parts in turn.
    fn sweep(&self, version: u64) {
        let (part, buckets) = (u128::from(version % PARTS), self.table.buckets() as u128);
        let border = |part: u128| (part * buckets / u128::from(PARTS)) as usize;
        let slots = self.table.in_buckets(border(part)..border(part + 1));
        let next = |held| self.plans.migrated(held, version);
        self.reach(slots, |_, held| !held.is_free(), next);
    }

    /// Moves the key's slot to this algorithm. The caller holds the lock of the overrides.
    fn move_to(&self, to: AlgorithmId, probe_seq: &ProbeSeq, now: Tick) {
        let its = |at: SlotIndex, held: SlotState| held.is_of(probe_seq.tag(), at.is_second());
        let next = |held| self.plans.moved(held, probe_seq.hash(), to, now);
        self.reach(self.table.all_of(probe_seq), its, next);
    }

    /// Replaces live slots that `are` of the change by `next`. Releases claims, since their owners
    /// may have read the algorithm before the change.
    fn reach(
        &self,
        slots: impl Iterator<Item = (SlotIndex, SlotState)>,
        are: impl Fn(SlotIndex, SlotState) -> bool,
        next: impl Fn(SlotState) -> Option<SlotState>,
    ) {
        // ORDERING: SeqCst. It pairs with the fence of `confirm`. If a thread claims a slot that is
        // found free here, its fence comes later, so it reads this version or a later one, and the
        // override that was put or marked before. If its fence came earlier, its claim is found
        // here and released.
        // Model: keyed_quota::a_thread_late_by_many_changes_mixes_nothing,
        // keyed_overrides::a_key_inserted_meanwhile_has_the_new_algorithm
        fence(Ordering::SeqCst);
        for (at, mut held) in slots {
            while are(at, held) {
                let done = match held.is_pending() {
                    true => self.table.release(at, held),
                    false => match next(held) {
                        Some(next) if next != held => self.table.migrate(at, held, next),
                        // The slot has this algorithm already. (`next` does not return `None`: the
                        // caller's lock keeps the slot's algorithm from becoming outdated.)
                        _ => break,
                    },
                };
                match done {
                    Ok(()) => break,
                    Err(seen) => held = seen,
                }
            }
        }
    }

    /// Migrates all live slots to the current version if there is no free slot. Without free slots
    /// each new key examines them all, and would otherwise convert their words each time. Returns
    /// whether any slot changed.
    pub(crate) fn migrate_all(&self, probe: &Probe) -> bool {
        // Read after the slots, so that none of them has a later version.
        let version = self.plans.version();
        if version == 0 || probe.free().is_some() {
            return false;
        }
        let live = probe.slots().filter(|(_, held)| held.is_live());
        let migrated = live.filter(|(at, held)| match self.plans.migrated(*held, version) {
            Some(next) if next != *held => self.table.migrate(*at, *held, next).is_ok(),
            _ => false,
        });
        migrated.count() > 0
    }
}
