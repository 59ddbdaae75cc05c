use core::time::Duration;
use std::string::String;
use std::vec::Vec;

/// The result of [`Keyed::restore`](crate::Keyed::restore): what happened to the keys of the
/// snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Restored {
    /// How many keys are in the table.
    pub keys: u64,
    /// How many keys were left out because they had become idle by the time of the restore.
    pub idle: u64,
    /// How many keys were dropped because the table has no room for all: those that would be
    /// evicted first. Each may have one more burst.
    pub no_room: u64,
    /// The time since the snapshot that the restore counted.
    pub elapsed: Duration,
    /// What happened to each plan of the snapshot, in its order.
    pub plans: Vec<RestoredPlan>,
    /// What happened to keys with overrides.
    pub overrides: RestoredOverrides,
}

/// Counts the keys of a snapshot that had an override
/// ([`set_override`](crate::keyed::Key::set_override)) or have one in the table, including idle
/// keys. A restore sets no overrides: a key continues with the algorithm that the table has for it.
///
/// ```
/// use tollgate::{Keyed, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut limiter = Keyed::token_bucket(Quota::per_hour(5), 1000)?.with_overrides(10)?;
/// limiter.key("alice").set_quota(Quota::per_hour(100))?;
/// limiter.try_acquire_n("alice", 60)?;
/// let mut bytes = Vec::new();
/// limiter.snapshot(&mut bytes)?;
///
/// let restored = limiter.restore(&mut bytes.as_slice())?;
/// assert_eq!((restored.overrides.same, restored.overrides.missing), (1, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct RestoredOverrides {
    /// How many have the same override as before: they continue unchanged.
    pub same: u64,
    /// How many have another override: they were carried over to it.
    pub changed: u64,
    /// How many no longer have an override: they were carried over to the first plan.
    pub missing: u64,
    /// How many had none before and have one now: they were carried over to it.
    pub new: u64,
}

/// What happened to a plan of a snapshot.
///
/// ```
/// use tollgate::keyed::PlanMatch;
/// use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let [free, paid] = [200, 1000].map(|n| TokenBucket::new(Quota::per_hour(n)));
/// let plans = [("free", free?), ("paid", paid?)];
/// let limiter = Keyed::with_named_plans(plans, 1000, ManualClock::new())?;
/// limiter.key("alice").with_plan(1).try_acquire()?;
/// let mut bytes = Vec::new();
/// limiter.snapshot(&mut bytes)?;
///
/// // In the next process, which has another order.
/// let [free, paid] = plans;
/// let mut limiter = Keyed::with_named_plans([paid, free], 1000, ManualClock::new())?;
/// let restored = limiter.restore(&mut bytes.as_slice())?;
/// let paid = &restored.plans[1];
/// assert_eq!((paid.name.as_deref(), paid.found), (Some("paid"), PlanMatch::Same));
/// assert_eq!((paid.plan, paid.keys), (0, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RestoredPlan {
    /// The plan's name in the snapshot, if it has one.
    pub name: Option<String>,
    /// The position in the table of the plan in which the keys continue.
    pub plan: usize,
    /// How that plan compares with the one in the snapshot.
    pub found: PlanMatch,
    /// How many keys of this plan the snapshot has, including idle ones.
    pub keys: u64,
}

/// Says whether a table has a plan of a snapshot, in a [`RestoredPlan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlanMatch {
    /// The table has the plan, with the same quota: its keys continue unchanged.
    Same,
    /// The table has the plan, but with another quota or algorithm: its keys were carried over
    /// ([`ChangeQuota::carry_over`](crate::algorithm::ChangeQuota::carry_over)). Plans without
    /// names are matched by position, so this plan may have been meant for other keys.
    Changed,
    /// The table does not have the plan: its keys were carried over to the first plan.
    Missing,
}
