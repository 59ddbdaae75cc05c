//! Changes the quota of a plan, which is that of all its keys at once.

use super::limiter::Keyed;
use crate::adjustable::Keep;
use crate::algorithm::{ChangeQuota, Settings};
use crate::clock::{Clock, Tick};
use crate::limiter_error::LimiterError;
use crate::quota::Quota;

impl<A: ChangeQuota + Settings + Clone, C: Clock, S> Keyed<A, C, S> {
    /// Changes the quota of all keys at once. In a table with several plans, it changes that of
    /// plan 0. A key with an [override](super::Key::set_override) keeps that. `keep`
    /// says what happens to the permits that a key has. The call visits one of 30 parts of the
    /// table. Any other key is converted when it is next used, with the same result as if it were
    /// converted now.
    ///
    /// Each key changes as an [`Adjustable`](crate::Adjustable) limiter does. After the first
    /// change, decisions cost a few nanoseconds more. A decision that is made during the change may
    /// still use the old quota.
    ///
    /// With [`Keep::AsIs`] and a larger burst, no key in the table is idle until the larger burst
    /// has filled, so new keys find no idle slots. With [`Keep::Used`] and [`Keep::Scaled`], idle
    /// keys stay idle.
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
        self.keys.set_quota(plan, quota, keep, now)
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
        first.unwrap_or_else(|_| self.keys.plans().first().quota())
    }

    /// Returns the current quota of one plan, given by its [position](Self::plan_named).
    ///
    /// # Errors
    ///
    /// [`LimiterError::NoSuchPlan`] if the plan does not exist.
    pub fn plan_quota(&self, plan: usize) -> Result<Quota, LimiterError> {
        Ok(self.keys.plans().algorithm(plan)?.quota())
    }
}
