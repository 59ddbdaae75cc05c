use core::fmt;
use core::ops::Deref;
use core::time::Duration;

use super::all::All;
use super::granted::AllGranted;
use super::members::{Members, ReserveMembers};
use super::slot::Slot;
use super::visits::Why;
use crate::clock::{Clock, Tick};

/// Permits of all members of a composition, which may be used once they are [due](Self::due).
///
/// Dropping it keeps the permits taken. [`cancel`](Self::cancel) gives them back as far as
/// possible. It says when to go, and does not wait. To wait in line for several limits, use a
/// `Line`.
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
/// let reserved = limits.reserve_n(2)?;
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
    pub(super) const fn new(all: R, grants: M::Grants, due: Tick) -> Self {
        Self { all, grants, due }
    }

    /// Returns the tick from which the permits may be used: the same for all members.
    pub const fn due(&self) -> Tick {
        self.due
    }

    /// Returns the grant, to settle or undo it. Use the permits, or give them back, when they are
    /// due; to give them back before, [cancel](Self::cancel) the reservation.
    pub fn into_granted(mut self) -> AllGranted<R, M, C> {
        for member in self.all.order.limits() {
            let slot = self.all.members.slot(&mut self.grants, member);
            if let Some(held) = slot.and_then(Slot::held_mut) {
                held.granted = held.granted.again().with_mark_after();
            }
        }
        AllGranted::new(self.all, self.grants)
    }
}

impl<R: Deref<Target = All<M, C>>, M: ReserveMembers<C>, C> AllReserved<R, M, C> {
    /// [`cancel`](Self::cancel) at the tick `now`.
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

    /// Gives the permits back to each member whose last permits they are, together with those that
    /// the reservation skipped. Returns how many permits came back, over all members, less those
    /// that the clock has refilled.
    ///
    /// If another caller took permits of a member since, this member gives nothing back: that
    /// caller may have been told when to go.
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
