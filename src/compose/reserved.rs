use core::fmt;
use core::ops::Deref;
use core::time::Duration;

use super::all::All;
use super::granted::AllGranted;
use super::members::{Members, ReserveMembers};
use super::visits::Why;
use crate::clock::{Clock, Tick};

/// Permits of all members of a composition, which may be used once they are [due](Self::due).
///
/// It says when the permits are due, and does not wait for them. Dropping it keeps them taken;
/// [`cancel`](Self::cancel) gives them back as far as possible. To wait instead, use a `Line`.
///
/// ```
/// use std::time::Duration;
/// use tollgate::compose::All;
/// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new();
/// let bucket = TokenBucket::new(Quota::per_second(1).burst(5))?;
/// let [slow, fast] = [(); 2].map(|()| Limiter::with_clock(bucket, clock.clone()));
/// let limits = All::new((&slow, &fast))?;
/// let _ = limits.try_acquire_each([5, 1])?;
///
/// let reserved = limits.reserve(2)?;
/// assert_eq!(reserved.time_left(), Duration::from_secs(2));
/// assert_eq!(fast.available(), 1); // in 2 s it will be full, and have 3 left
/// assert_eq!(reserved.cancel(), 4); // 2 to each
/// assert_eq!(fast.available(), 4);
/// # Ok(())
/// # }
/// ```
#[must_use = "the permits are taken, and should be used when they are due, or cancelled"]
pub struct AllReserved<R: Deref<Target = All<M, C>>, M: Members<C>, C> {
    all: R,
    grants: M::Grants,
    due: Tick,
}

impl<R: Deref<Target = All<M, C>>, M: Members<C>, C> AllReserved<R, M, C> {
    pub(super) fn new(all: R, (grants, due): (M::Grants, Tick)) -> Self {
        Self { all, grants, due }
    }

    /// Returns the tick from which the permits may be used: the same for all members.
    pub const fn due(&self) -> Tick {
        self.due
    }

    /// Returns the grant, to use, settle or undo it when it is due. Before that, give the permits
    /// back with [`cancel`](Self::cancel).
    pub fn into_granted(mut self) -> AllGranted<R, M, C> {
        for position in 0..self.all.order.len() {
            let grant = self.all.members.grant_mut(&mut self.grants, position);
            if let Some(held) = grant.and_then(Option::as_mut) {
                held.granted = held.granted.again().with_mark_after();
            }
        }
        AllGranted::new(self.all, self.grants)
    }
}

impl<R: Deref<Target = All<M, C>>, M: ReserveMembers<C>, C> AllReserved<R, M, C> {
    /// Gives the permits back at the tick `now`.
    pub fn cancel_at(mut self, now: Tick) -> u64 {
        self.all.give_back(&mut self.grants, now, Why::Cancelled)
    }
}

impl<R: Deref<Target = All<M, C>>, M: ReserveMembers<C>, C: Clock> AllReserved<R, M, C> {
    /// Returns whether the permits may be used now.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.time_left().is_zero()
    }

    /// Returns how long it is until the permits may be used.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        self.due.saturating_since(self.all.now())
    }

    /// Gives the permits back to each member from which no caller has taken since. Such a member
    /// then grants as if there had been no reservation. Returns how many permits came back, over
    /// all members, without those that the clock has refilled.
    ///
    /// A member from which another caller has taken since gets nothing back, because that caller
    /// may already have been told when its permits are due.
    pub fn cancel(self) -> u64 {
        let now = self.all.now();
        self.cancel_at(now)
    }
}

impl<R: Deref<Target = All<M, C>>, M: Members<C>, C> fmt::Debug for AllReserved<R, M, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let due = self.due;
        f.debug_struct("AllReserved")
            .field("due", &due)
            .finish_non_exhaustive()
    }
}
