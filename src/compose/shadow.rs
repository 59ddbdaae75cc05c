use core::fmt;

use super::fixed::Exempt;
use super::held::Held;
use super::member::{Member, by_inner};
use super::members::{DebtMembers, one_member};
use super::or_else::OrElse;
use crate::clock::Tick;
use crate::counted::{Counted, LimiterStats};
use crate::outcome::{Charged, Denied, Settled};
use crate::store::Place;

/// A limit on trial: it decides and counts, but never denies.
///
/// If the limit has the permits, a request takes them. If not, the request takes nothing from it,
/// is granted anyway, and counts in [`would_deny`](Self::would_deny). A request that another member
/// denies counts nothing. But each attempt that lost a race counts: its permits as granted and
/// returned, or the attempt as one that the limit would have denied.
///
/// ```
/// use tollgate::compose::{All, Shadow};
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let service = Limiter::token_bucket(Quota::per_hour(100))?;
/// let tighter = Shadow::new(Limiter::token_bucket(Quota::per_hour(2))?);
/// let limits = All::new((&service, &tighter))?;
/// for _ in 0..5 {
///     limits.try_acquire()?;
/// }
/// assert_eq!((tighter.stats().granted, tighter.would_deny()), (2, 3));
/// # Ok(())
/// # }
/// ```
///
/// Give a shadow a limiter of its own, or a key of a table that only shadows use. It takes permits
/// that other users of the limit would miss, and does not count their requests.
///
/// Its grants report `u64::MAX` permits as remaining, and no delay.
pub struct Shadow<M> {
    // A request that the limit denies is exempt.
    limit: OrElse<Counted<M>, Exempt>,
}

impl<M> Shadow<M> {
    /// Puts a limit on trial.
    #[must_use]
    pub fn new(limit: M) -> Self {
        Self {
            limit: OrElse::new(Counted::new(limit), Exempt),
        }
    }

    /// Returns the limit.
    pub const fn inner(&self) -> &M {
        self.limit.first().limiter()
    }

    /// Returns how many granted requests this limit would have denied. An attempt that lost a race
    /// counts like a request.
    #[must_use]
    pub fn would_deny(&self) -> u64 {
        self.stats().denied
    }

    /// Returns what the limit decided. `denied` are the requests that it would have denied.
    #[must_use]
    pub fn stats(&self) -> LimiterStats {
        self.limit.first().stats()
    }
}

impl<M: fmt::Debug> fmt::Debug for Shadow<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shadow")
            .field("limit", self.inner())
            .field("stats", &self.stats())
            .finish()
    }
}

impl<C, M: Member<C>> Member<C> for Shadow<M> {
    by_inner!(structure self => &self.limit);
    by_inner!(settling self => &self.limit);

    fn place(&self) -> Place {
        Member::<C>::place(self.inner()).inexact()
    }

    fn check(&self, _n: u64, _now: Tick) -> Result<(), Denied> {
        Ok(())
    }

    fn take(&self, n: u64, now: Tick) -> Result<Held, Denied> {
        let mut held = Member::<C>::take(&self.limit, n, now)?;
        held.granted = held.granted.unlimited();
        Ok(held)
    }

    fn available_at(&self, _now: Tick) -> u64 {
        u64::MAX
    }
}

one_member!([C, M: Member<C>] C, Shadow<M>);

impl<C, M: Member<C> + DebtMembers<C>> DebtMembers<C> for Shadow<M> {}
