//! Another quota for all keys at once: see [`changes`](super::changes).

use super::changes::{Change, Changes, PARTS};
use super::core::Core;
use super::plans::Plan;
use super::slot::Content;
use super::table::At;
use crate::adjustable::Keep;
use crate::algorithm::{Requota, Settings};
use crate::clock::Tick;
use crate::primitive::{Ordering, fence, mistake};
use crate::quota::{ConfigError, Quota};

impl<A: Requota + Settings + Clone> Core<A> {
    pub(super) fn set_quota(
        &self,
        index: u8,
        quota: Quota,
        keep: Keep,
        at: Tick,
    ) -> Result<(), ConfigError> {
        let Some(plan) = self.plans.get(index) else {
            let (plan, plans) = (index.into(), self.plans.count());
            return Err(ConfigError::NoSuchPlan { plan, plans });
        };
        self.plans.one_at_a_time(|| {
            let latest = changes_of(plan).change(|latest| latest.clone());
            // What is in force already goes on as it is.
            if keep != Keep::Fresh && latest.quota() == quota {
                return Ok(());
            }
            let latest = latest.with_quota(quota)?;
            changes_of(plan).change(|before| *before = latest);
            let version = self.plans.version();
            if !mistake!(SweepsNothing) {
                self.sweep(index, version);
            }
            // It does not come again: 2^64 changes take centuries.
            let version = version.wrapping_add(1);
            for (each, plan) in self.plans.all().enumerate() {
                let keep = (each == usize::from(index)).then_some(keep);
                let changes = changes_of(plan);
                let algorithm = changes.change(|latest| latest.clone());
                changes.write(
                    version,
                    &Change {
                        algorithm,
                        at,
                        keep,
                    },
                );
            }
            self.plans.bring(version);
            Ok(())
        })
    }

    pub(super) fn quota(&self, index: u8) -> Result<Quota, ConfigError> {
        let Some(plan) = self.plans.get(index) else {
            let (plan, plans) = (index.into(), self.plans.count());
            return Err(ConfigError::NoSuchPlan { plan, plans });
        };
        match plan.changes().get() {
            Some(changes) => Ok(changes.change(|latest| latest.quota())),
            None => Ok(plan.first().quota()),
        }
    }

    /// Brings a part of the table up to this version, which is in force: the keys of all plans, of which one is changed.
    fn sweep(&self, index: u8, version: u64) {
        // ORDERING: SeqCst. It pairs with the fence of `alone_since`: who claims a slot that is free here finds this
        // version or a later one in force.
        // Model: loom-tests/tests/keyed_quota.rs::who_is_late_by_many_changes_mixes_nothing
        fence(Ordering::SeqCst);
        let (part, lines) = ((version % PARTS) as u128, self.table.len() as u128);
        let border = |part: u128| (part * lines / u128::from(PARTS)) as usize;
        for line in border(part)..border(part + 1) {
            for (at, held) in self.table.slots_of(line) {
                if held.plan() != index && mistake!(SweepsOnePlan) {
                    continue;
                }
                self.bring_up(version, at, held);
            }
        }
    }

    /// Brings a slot up to this version, and ends a claim, which may have looked at an older one.
    fn bring_up(&self, version: u64, at: At, mut held: Content) {
        loop {
            let next = if held.is_pending() && mistake!(SparesClaims) {
                return;
            } else if held.is_pending() {
                Content::GIVEN_UP
            } else if held.is_live() {
                match self.plans.brought(held, held.plan(), version, Tick::ZERO) {
                    Some(word) => held.with_word(word).with_version(version),
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

/// What a plan has become, of which there is nothing until one of them is changed for the first time.
fn changes_of<A: Requota + Settings + Clone>(plan: &Plan<A>) -> &Changes<A> {
    plan.changes().get_or_init(|| Changes::new(plan.first()))
}
