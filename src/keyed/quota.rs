//! Another quota for all keys at once: see [`changes`](super::changes).

use super::changes::{Changes, PARTS, PlanChange};
use super::core::Core;
use super::slot::SlotState;
use super::table::SlotIndex;
use crate::adjustable::Keep;
use crate::algorithm::{ChangeQuota, Settings};
use crate::clock::Tick;
use crate::quota::{ConfigError, Quota};
use crate::sync::{Ordering, fence, inject_fault};

impl<A: ChangeQuota + Settings + Clone> Core<A> {
    pub(super) fn set_quota(
        &self,
        plan: usize,
        quota: Quota,
        keep: Keep,
        at: Tick,
    ) -> Result<(), ConfigError> {
        let all = || Changes::new(self.plans.all());
        let changes = self.plans.changes().get_or_init(all);
        changes.change(|latest| {
            let Some(algorithm) = latest.get_mut(plan) else {
                return Err(self.no_such(plan));
            };
            // What is in force already goes on as it is.
            if keep != Keep::Fresh && algorithm.quota() == quota {
                return Ok(());
            }
            *algorithm = algorithm.with_quota(quota)?;
            let version = self.plans.version();
            if !inject_fault!(SweepsNothing) {
                self.sweep(plan, version);
            }
            // It does not come again: 2^64 changes take centuries.
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
            Ok(())
        })
    }

    pub(super) fn quota(&self, plan: usize) -> Result<Quota, ConfigError> {
        let quota = match self.plans.changes().get() {
            Some(changes) => changes.change(|latest| latest.get(plan).map(ChangeQuota::quota)),
            None => self.plans.all().nth(plan).map(ChangeQuota::quota),
        };
        quota.ok_or_else(|| self.no_such(plan))
    }

    /// That of plan 0, which there always is.
    pub(super) fn quota_of_the_first(&self) -> Quota {
        self.quota(0).unwrap_or_else(|_| self.plans.first().quota())
    }

    fn no_such(&self, plan: usize) -> ConfigError {
        let plans = self.plans.count();
        ConfigError::NoSuchPlan { plan, plans }
    }

    /// Brings a part of the table up to this version, which is in force.
    fn sweep(&self, plan: usize, version: u64) {
        // ORDERING: SeqCst. It pairs with that of `alone_since`. Who claims a slot which is found
        // free here passes that one later, and so reads this version or a later one; who passed it
        // before is found here, and ended. Model:
        // keyed_quota::who_is_late_by_many_changes_mixes_nothing
        fence(Ordering::SeqCst);
        let (part, buckets) = (u128::from(version % PARTS), self.table.len() as u128);
        let border = |part: u128| (part * buckets / u128::from(PARTS)) as usize;
        for bucket in border(part)..border(part + 1) {
            for (at, held) in self.table.slots_of(bucket) {
                self.bring_up(plan, version, at, held);
            }
        }
    }

    /// Brings a slot up to this version, and ends a claim, which may have looked at an older one.
    fn bring_up(&self, plan: usize, version: u64, at: SlotIndex, mut held: SlotState) {
        loop {
            let next = if held.is_pending() && inject_fault!(SparesClaims) {
                return;
            } else if held.is_pending() {
                SlotState::GIVEN_UP
            } else if held.is_live()
                && !(inject_fault!(SweepsOnePlan) && usize::from(held.plan()) != plan)
            {
                match self.plans.brought_up(held, version) {
                    Some(brought) => brought,
                    // Nobody brings another version meanwhile.
                    None => return,
                }
            } else {
                return;
            };
            if next == held {
                return;
            }
            match self.table.exchange(at, held, next) {
                Ok(()) => return,
                Err(seen) => held = seen,
            }
        }
    }
}
