//! Another quota for all keys at once: see [`changes`](super::changes).

use super::changes::{Change, Changes, PARTS};
use super::core::Core;
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
            if !mistake!(SweepsNothing) {
                self.sweep(plan, version);
            }
            // It does not come again: 2^64 changes take centuries.
            let version = version.wrapping_add(1);
            for (index, algorithm) in (0..).zip(latest) {
                let change = Change {
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
            Some(changes) => changes.change(|latest| latest.get(plan).map(Requota::quota)),
            None => self.plans.all().nth(plan).map(Requota::quota),
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
        let (part, lines) = (u128::from(version % PARTS), self.table.len() as u128);
        let border = |part: u128| (part * lines / u128::from(PARTS)) as usize;
        for line in border(part)..border(part + 1) {
            for (at, held) in self.table.slots_of(line) {
                self.bring_up(plan, version, at, held);
            }
        }
    }

    /// Brings a slot up to this version, and ends a claim, which may have looked at an older one.
    fn bring_up(&self, plan: usize, version: u64, at: At, mut held: Content) {
        loop {
            let next = if held.is_pending() && mistake!(SparesClaims) {
                return;
            } else if held.is_pending() {
                Content::GIVEN_UP
            } else if held.is_live()
                && !(mistake!(SweepsOnePlan) && usize::from(held.plan()) != plan)
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
