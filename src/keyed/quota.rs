//! Changes the quota of all keys at once: see [`changes`](super::changes).

use super::changes::{Changes, PARTS, PlanChange};
use super::core::Core;
use super::slot::{SlotKind, SlotState};
use super::table::SlotIndex;
use crate::adjustable::Keep;
use crate::algorithm::{ChangeQuota, Settings};
use crate::clock::Tick;
use crate::limiter_error::LimiterError;
use crate::quota::{Quota, QuotaError};
use crate::sync::{Ordering, fence, inject_fault};

impl<A: ChangeQuota + Settings + Clone> Core<A> {
    /// Changes the quota of a plan, and returns whether there is such a plan.
    pub(super) fn set_quota(
        &self,
        plan: usize,
        quota: Quota,
        keep: Keep,
        at: Tick,
    ) -> Result<bool, QuotaError> {
        match self.plans.overrides() {
            // Hold this lock too: `unset_own` holds it while it moves a key from its override to a
            // plan, and the version must not change meanwhile.
            Some(overrides) if !inject_fault!(ChangesQuotasMeanwhile) => {
                overrides.change(|_| self.set_quota_of(plan, quota, keep, at))
            }
            _ => self.set_quota_of(plan, quota, keep, at),
        }
    }

    fn set_quota_of(
        &self,
        plan: usize,
        quota: Quota,
        keep: Keep,
        at: Tick,
    ) -> Result<bool, QuotaError> {
        let all = || Changes::new(self.plans.all());
        let changes = self.plans.changes().get_or_init(all);
        changes.change(|latest| {
            let Some(algorithm) = latest.get_mut(plan) else {
                return Ok(false);
            };
            // Nothing would change: the quota is current already, and permits are kept.
            if keep != Keep::Fresh && algorithm.quota() == quota {
                return Ok(true);
            }
            *algorithm = algorithm.with_quota(quota)?;
            let version = self.plans.version();
            if !inject_fault!(SweepsNothing) {
                self.sweep(plan, version);
            }
            // The version does not recur: 2^64 changes take centuries.
            let version = version.wrapping_add(1);
            for (index, algorithm) in (0..).zip(latest) {
                let change = PlanChange {
                    algorithm: algorithm.clone(),
                    at,
                    keep: (index == plan).then_some(keep),
                };
                changes.write(index, version, &change);
            }
            self.plans.bring(version);
            Ok(true)
        })
    }

    pub(super) fn quota(&self, plan: usize) -> Result<Quota, LimiterError> {
        self.algorithm(plan).map(|algorithm| algorithm.quota())
    }

    /// Returns the current algorithm of a plan.
    pub(super) fn algorithm(&self, plan: usize) -> Result<A, LimiterError> {
        let algorithm = match self.plans.changes().get() {
            Some(changes) => changes.change(|latest| latest.get(plan).cloned()),
            None => self.plans.all().nth(plan).cloned(),
        };
        algorithm.ok_or_else(|| self.no_such(plan))
    }

    /// Returns the quota of plan 0, which always exists.
    pub(super) fn quota_of_the_first(&self) -> Quota {
        self.quota(0).unwrap_or_else(|_| self.plans.first().quota())
    }

    pub(super) fn no_such(&self, plan: usize) -> LimiterError {
        let plans = self.plans.count();
        LimiterError::NoSuchPlan { plan, plans }
    }

    /// Migrates one part of the table to this version, the current one. Successive versions take
    /// the parts in turn.
    fn sweep(&self, plan: usize, version: u64) {
        // ORDERING: SeqCst. It pairs with the fence of `confirm_unique`. If a thread claims a slot
        // that is found free here, its fence comes later, so it reads this version or a later one.
        // If its fence came earlier, its claim is found here and released.
        // Model: keyed_quota::a_thread_late_by_many_changes_mixes_nothing
        fence(Ordering::SeqCst);
        let (part, buckets) = (u128::from(version % PARTS), self.table.len() as u128);
        let border = |part: u128| (part * buckets / u128::from(PARTS)) as usize;
        for bucket in border(part)..border(part + 1) {
            for (at, held) in self.table.slots_of(bucket) {
                self.migrate_or_release(plan, version, at, held);
            }
        }
    }

    /// Migrates a live slot to this version. Releases a claim, since its owner may have read an
    /// older version.
    fn migrate_or_release(&self, plan: usize, version: u64, at: SlotIndex, mut held: SlotState) {
        loop {
            let is_spared =
                held.is_live() && usize::from(held.plan()) != plan && inject_fault!(SweepsOnePlan);
            let done = match held.state() {
                SlotKind::Free => return,
                SlotKind::Pending if inject_fault!(SparesClaims) => return,
                SlotKind::Pending => self.table.release(at, held),
                SlotKind::Live | SlotKind::Banned => match self.plans.migrated(held, version) {
                    Some(new) if new != held && !is_spared => self.table.migrate(at, held, new),
                    // The slot has this version already. (`migrated` does not return `None` here:
                    // no version becomes outdated while the caller holds the lock.)
                    _ => return,
                },
            };
            match done {
                Ok(()) => return,
                Err(seen) => held = seen,
            }
        }
    }
}
