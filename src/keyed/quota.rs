//! Changes the quota of all keys at once, with the [history](super::changes) of such changes.

use super::changes::{Changes, PARTS, PlanChange};
use super::core::Core;
use super::limiter::Keyed;
use super::slot::{SlotKind, SlotState};
use super::table::SlotIndex;
use crate::adjustable::Keep;
use crate::algorithm::{ChangeQuota, Settings};
use crate::clock::{Clock, Tick};
use crate::limiter_error::LimiterError;
use crate::quota::Quota;
use crate::sync::{Ordering, fence, inject_fault};

impl<A: ChangeQuota + Settings + Clone, C: Clock, S> Keyed<A, C, S> {
    /// Changes the quota of all keys at once. In a table with several plans, it changes that of
    /// plan 0. A key with an [algorithm of its own](super::Key::set_override) keeps that. `keep`
    /// says what happens to the permits that a key has. The call visits one of 30 parts of the
    /// table. Any other key is converted when it is next used, with the same result as if it were
    /// converted now.
    ///
    /// Each key changes as an [`Adjustable`](crate::Adjustable) limiter does. After the first
    /// change, decisions cost a few nanoseconds more. A decision that is made during the change may
    /// still use the old quota.
    ///
    /// With [`Keep::AsIs`] and a larger burst, no key in the table is idle until the larger burst
    /// has filled, so new keys find no idle slots. With [`Keep::Scaled`], idle keys stay idle.
    ///
    /// ```
    /// use tollgate::Keep;
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(100), 1000)?;
    /// limiter.try_acquire_n("alice", 60)?;
    /// limiter.set_quota(Quota::per_hour(1000), Keep::AsIs)?;
    /// assert_eq!(limiter.key("alice").available(), 40);
    /// assert_eq!(limiter.key("bob").available(), 1000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimiterError`] if the quota can't be represented: then nothing has changed.
    pub fn set_quota(&self, quota: Quota, keep: Keep) -> Result<(), LimiterError> {
        self.set_plan_quota_at(0, quota, keep, self.clock.now())
    }

    /// Changes the quota of one plan, as [`set_quota`](Self::set_quota) does. The plan is given by
    /// its [position](Self::plan_named).
    ///
    /// ```
    /// use tollgate::{FixedWindow, Keep, Keyed, ManualClock, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let plans = [FixedWindow::new(Quota::per_day(10))?, FixedWindow::new(Quota::per_day(500))?];
    /// let limiter = Keyed::with_plans(plans, 1000, ManualClock::new())?;
    /// limiter.set_plan_quota(1, Quota::per_day(2000), Keep::AsIs)?;
    /// assert_eq!(limiter.plan_quota(1)?, Quota::per_day(2000));
    /// assert_eq!(limiter.quota(), Quota::per_day(10));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimiterError`] if the quota can't be represented, or the plan does not exist: then nothing
    /// has changed.
    pub fn set_plan_quota(
        &self,
        plan: usize,
        quota: Quota,
        keep: Keep,
    ) -> Result<(), LimiterError> {
        self.set_plan_quota_at(plan, quota, keep, self.clock.now())
    }
}

impl<A: ChangeQuota + Settings + Clone, C, S> Keyed<A, C, S> {
    /// Changes the quota of one plan, as [`set_plan_quota`](Self::set_plan_quota) does, at this
    /// tick.
    ///
    /// # Errors
    ///
    /// [`LimiterError`] if the quota can't be represented, or the plan does not exist: then nothing
    /// has changed.
    pub fn set_plan_quota_at(
        &self,
        plan: usize,
        quota: Quota,
        keep: Keep,
        now: Tick,
    ) -> Result<(), LimiterError> {
        let set = || self.core.set_quota(plan, quota, keep, now);
        let alone = !inject_fault!(ChangesQuotasMeanwhile); // FAULT
        match self.core.plans.overrides() {
            // Hold this lock too: `remove_override` holds it while it moves a key from its override
            // to a plan, and the version must not change meanwhile.
            Some(overrides) if alone => overrides.change(|_| set()),
            _ => set(),
        }
    }

    /// Returns the current quota. In a table with several plans, this is that of plan 0.
    ///
    /// ```
    /// use tollgate::Keep;
    /// use tollgate::{Keyed, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Keyed::token_bucket(Quota::per_hour(100), 1000)?;
    /// limiter.set_quota(Quota::per_hour(7), Keep::Scaled)?;
    /// assert_eq!(limiter.quota(), Quota::per_hour(7));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn quota(&self) -> Quota {
        // Plan 0 always exists.
        let first = self.plan_quota(0);
        first.unwrap_or_else(|_| self.core.plans.first().quota())
    }

    /// Returns the current quota of one plan, given by its [position](Self::plan_named).
    ///
    /// # Errors
    ///
    /// [`LimiterError::NoSuchPlan`] if the plan does not exist.
    pub fn plan_quota(&self, plan: usize) -> Result<Quota, LimiterError> {
        Ok(self.core.algorithm(plan)?.quota())
    }
}

impl<A: ChangeQuota + Settings + Clone> Core<A> {
    pub(super) fn set_quota(
        &self,
        plan: usize,
        quota: Quota,
        keep: Keep,
        at: Tick,
    ) -> Result<(), LimiterError> {
        let all = || Changes::new(self.plans.all());
        let changes = self.plans.changes().get_or_init(all);
        changes.change(|latest| {
            let Some(algorithm) = latest.get_mut(plan) else {
                return Err(self.no_such(plan));
            };
            // Nothing would change: the quota is current already, and permits are kept.
            if keep != Keep::Fresh && algorithm.quota() == quota {
                return Ok(());
            }
            *algorithm = algorithm.with_quota(quota)?;
            let version = self.plans.version();
            self.sweep(version);
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
            Ok(())
        })
    }

    /// Returns the current algorithm of a plan.
    pub(super) fn algorithm(&self, plan: usize) -> Result<A, LimiterError> {
        let algorithm = match self.plans.changes().get() {
            Some(changes) => changes.change(|latest| latest.get(plan).cloned()),
            None => self.plans.all().nth(plan).cloned(),
        };
        algorithm.ok_or_else(|| self.no_such(plan))
    }

    fn no_such(&self, plan: usize) -> LimiterError {
        let plans = self.plans.count();
        LimiterError::NoSuchPlan { plan, plans }
    }

    /// Migrates one part of the table to this version, the current one. Successive versions take
    /// the parts in turn.
    fn sweep(&self, version: u64) {
        // ORDERING: SeqCst. It pairs with the fence of `confirm_unique`. If a thread claims a slot
        // that is found free here, its fence comes later, so it reads this version or a later one.
        // If its fence came earlier, its claim is found here and released.
        // Model: keyed_quota::a_thread_late_by_many_changes_mixes_nothing
        fence(Ordering::SeqCst);
        let (part, buckets) = (u128::from(version % PARTS), self.table.len() as u128);
        let border = |part: u128| (part * buckets / u128::from(PARTS)) as usize;
        for bucket in border(part)..border(part + 1) {
            for (at, held) in self.table.slots_of(bucket) {
                self.migrate_or_release(version, at, held);
            }
        }
    }

    /// Migrates a live slot to this version. Releases a claim, since its owner may have read an
    /// older version.
    fn migrate_or_release(&self, version: u64, at: SlotIndex, mut held: SlotState) {
        loop {
            let done = match held.state() {
                SlotKind::Free => return,
                SlotKind::Pending => self.table.release(at, held),
                SlotKind::Live | SlotKind::Banned => match self.plans.migrated(held, version) {
                    Some(new) if new != held => self.table.migrate(at, held, new),
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
