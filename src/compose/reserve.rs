//! Reserves from all limits of a composition at once.

use core::mem;
use core::time::Duration;
#[cfg(feature = "std")]
use std::sync::Arc;

use super::all::All;
use super::denied::AllDenied;
use super::members::ReserveMembers;
use super::protocol::{Cost, ROUNDS, cost_of};
use super::reserved::AllReserved;
use super::undo::UndoOnPanic;
use super::verbs::clock_forms;
use super::visits::{Check, TakeAsOf, Why};
use crate::clock::{Clock, Tick};
use crate::outcome::Denied;
use crate::store::View;

clock_forms! {
    [ReserveMembers<C>]
    /// Reserves `n` permits of each member. They may be used when the reservation is
    /// [due](AllReserved::due), which is the first tick at which all members would grant them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let limiter = |quota| Ok::<_, tollgate::error::ComposeError>(
    ///     Limiter::with_clock(TokenBucket::new(quota)?, clock.clone())
    /// );
    /// let user = limiter(Quota::per_second(1).burst(5))?;
    /// let tenant = limiter(Quota::per_second(10))?;
    /// let limits = All::new((&user, &tenant))?;
    ///
    /// assert!(limits.reserve(5)?.is_due());
    /// let reserved = limits.reserve(3)?; // the user has them in 3 s, and the tenant now
    /// assert_eq!(reserved.time_left(), Duration::from_secs(3));
    ///
    /// clock.advance(Duration::from_secs(3));
    /// assert!(reserved.is_due());
    /// assert_eq!(reserved.into_granted().settle([2, 3])?.returned, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Other callers
    ///
    /// Every member counts the permits at the due tick, so using them then is within its bound.
    /// Until then, a member that was ready sooner grants less to other callers: even a full bucket
    /// may deny until shortly before that tick. [`reserve_within`](Self::reserve_within) limits
    /// how long, and [`cancel`](AllReserved::cancel) ends it.
    ///
    /// A member does not know that permits are reserved together with other members. If other
    /// permits of that member are given back before the due tick, callers may use them in addition
    /// to the reserved ones, and so exceed the bound by at most the permits given back. This holds
    /// for `undo`, `refund`, `settle`, a request that loses a race, and a cancelled reservation of
    /// that member alone. [`AllReserved::cancel`] never exceeds the bound.
    ///
    /// # Errors
    ///
    /// [`AllDenied`] if a member will never grant the permits or does not say when, or after three
    /// lost races. In each case nothing is taken. But after a lost race, the permits of a member
    /// stay taken if other callers took from it since: it takes back only the last ones.
    fn reserve(n: u64) -> Result<AllReserved<&Self, M, C>, AllDenied>;

    /// Reserves `costs[0]` permits of member 0, and so on. See [`reserve`](Self::reserve).
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let requests = Limiter::token_bucket(Quota::per_hour(60))?;
    /// let tokens = Limiter::token_bucket(Quota::per_hour(90_000))?;
    /// let model = All::new((&requests, &tokens))?;
    /// let _ = model.try_acquire_each([1, 90_000])?;
    /// let reserved = model.reserve_each([1, 9_000])?;
    /// assert_eq!(reserved.time_left().as_secs().div_ceil(60), 6);
    /// assert_eq!(reserved.cancel(), 9_001);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`reserve`](Self::reserve), and [`AllDenied::CostsLength`] if there is
    /// not one cost for each member.
    fn reserve_each(costs: impl AsRef<[u64]>) -> Result<AllReserved<&Self, M, C>, AllDenied>;

    /// Reserves `n` permits of each member if they are all due within `max_wait`. Otherwise takes
    /// nothing. See [`reserve`](Self::reserve).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_second(1))?;
    /// let limits = All::new([Limiter::with_clock(bucket, ManualClock::new())])?;
    /// let _ = limits.try_acquire()?;
    /// let (short, long) = (Duration::from_millis(900), Duration::from_secs(1));
    /// let denied = limits.reserve_within(1, short).unwrap_err();
    /// assert_eq!(denied.retry_after(), Some(Duration::from_millis(100))); // 100 ms too late
    /// assert!(limits.reserve_within(1, long).is_ok());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`reserve`](Self::reserve). If the permits are due later, `retry_after`
    /// says how much later.
    fn reserve_within(n: u64, max_wait: Duration) -> Result<AllReserved<&Self, M, C>, AllDenied>;

    /// Reserves `costs[0]` permits of member 0, and so on, if they are all due within `max_wait`.
    /// Otherwise takes nothing. See [`reserve_each`](Self::reserve_each).
    ///
    /// # Errors
    ///
    /// The same as for [`reserve_each`](Self::reserve_each). If the permits are due later,
    /// `retry_after` says how much later.
    fn reserve_each_within(
        costs: impl AsRef<[u64]>, max_wait: Duration
    ) -> Result<AllReserved<&Self, M, C>, AllDenied>;
}

#[cfg(feature = "std")]
impl<M: ReserveMembers<C>, C: Clock> All<M, C> {
    /// Reserves like [`reserve`](Self::reserve). The reservation keeps the composition alive
    /// and can move to other threads and tasks.
    ///
    /// # Errors
    ///
    /// The same as for [`reserve`](Self::reserve).
    pub fn reserve_owned(
        self: &Arc<Self>,
        n: u64,
    ) -> Result<AllReserved<Arc<Self>, M, C>, AllDenied> {
        let taken = self.reserve_by(|_| n, Duration::MAX, self.now())?;
        Ok(AllReserved::new(Arc::clone(self), taken))
    }

    /// Reserves like [`reserve_each`](Self::reserve_each). The reservation keeps the composition
    /// alive and can move to other threads and tasks.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::thread;
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let requests = Limiter::token_bucket(Quota::per_second(1000).burst(1))?;
    /// let tokens = Limiter::token_bucket(Quota::per_second(90_000))?;
    /// let model = Arc::new(All::new((requests, tokens))?);
    /// let first = model.reserve_each_owned([1, 800])?;
    /// let second = model.reserve_each_owned([1, 800])?;
    /// assert!(second.due() > first.due());
    /// let work = thread::spawn(move || {
    ///     thread::sleep(second.time_left());
    ///     second.into_granted().settle([1, 650])
    /// });
    /// let settled = work.join().expect("no panic")?;
    /// assert!(settled.returned <= 150);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`reserve_each`](Self::reserve_each).
    pub fn reserve_each_owned(
        self: &Arc<Self>,
        costs: impl AsRef<[u64]>,
    ) -> Result<AllReserved<Arc<Self>, M, C>, AllDenied> {
        let costs = self.checked(costs.as_ref())?;
        let cost = |member| cost_of(costs, member);
        let taken = self.reserve_by(cost, Duration::MAX, self.now())?;
        Ok(AllReserved::new(Arc::clone(self), taken))
    }
}

/// A composition reserves at one tick.
impl<'a, M: ReserveMembers<C>, C> View<&'a All<M, C>> {
    /// Reserves `n` permits of each member, as [`All::reserve`] does.
    ///
    /// # Errors
    ///
    /// The same as for [`All::reserve`].
    pub fn reserve(&self, n: u64) -> Result<AllReserved<&'a All<M, C>, M, C>, AllDenied> {
        self.reserve_within(n, Duration::MAX)
    }

    /// Reserves `n` permits of each member if they are all due within `max_wait`, as
    /// [`All::reserve_within`] does.
    ///
    /// # Errors
    ///
    /// The same as for [`All::reserve_within`].
    pub fn reserve_within(
        &self,
        n: u64,
        max_wait: Duration,
    ) -> Result<AllReserved<&'a All<M, C>, M, C>, AllDenied> {
        let taken = self.store.reserve_by(|_| n, max_wait, self.now)?;
        Ok(AllReserved::new(self.store, taken))
    }

    /// Reserves `costs[0]` permits of member 0, and so on, as [`All::reserve_each`] does.
    ///
    /// # Errors
    ///
    /// The same as for [`All::reserve_each`].
    pub fn reserve_each(
        &self,
        costs: impl AsRef<[u64]>,
    ) -> Result<AllReserved<&'a All<M, C>, M, C>, AllDenied> {
        self.reserve_each_within(costs, Duration::MAX)
    }

    /// Reserves `costs[0]` permits of member 0, and so on, if they are all due within `max_wait`,
    /// as [`All::reserve_each_within`] does.
    ///
    /// # Errors
    ///
    /// The same as for [`All::reserve_each_within`].
    pub fn reserve_each_within(
        &self,
        costs: impl AsRef<[u64]>,
        max_wait: Duration,
    ) -> Result<AllReserved<&'a All<M, C>, M, C>, AllDenied> {
        let costs = self.store.checked(costs.as_ref())?;
        let cost = |member| cost_of(costs, member);
        let taken = self.store.reserve_by(cost, max_wait, self.now)?;
        Ok(AllReserved::new(self.store, taken))
    }
}

impl<M: ReserveMembers<C>, C> All<M, C> {
    /// Reserves from all members at the first tick at which all would grant, if that is within
    /// `max_wait`. Looks again after a lost race.
    fn reserve_by(
        &self,
        cost: impl Cost,
        max_wait: Duration,
        now: Tick,
    ) -> Result<(M::Grants, Tick), AllDenied> {
        let latest = now.saturating_add(max_wait);
        let mut rounds = ROUNDS;
        loop {
            let due = self.counted(self.due_by(latest, cost, now))?;
            let mut grants = self.members.no_grants();
            let undo = UndoOnPanic::new(self, &mut grants, now, Why::Cancelled);
            match self.take_as_of(undo.grants, cost, due, now) {
                Ok(()) => {
                    mem::forget(undo);
                    return Ok((grants, due));
                }
                Err(denied) if rounds <= 1 => return self.counted(Err(denied)),
                // Another caller won the race. Dropping `undo` gives back what was taken.
                Err(_) => {}
            }
            rounds -= 1;
        }
    }

    /// Returns the first tick at which all members would grant, if that is `latest` or sooner.
    fn due_by(&self, latest: Tick, cost: impl Cost, now: Tick) -> Result<Tick, AllDenied> {
        let mut due = now;
        let (mut last, mut refused): (Option<AllDenied>, Option<AllDenied>) = (None, None);
        for member in self.order.limits() {
            let n = self.order.sum(member, cost);
            let looked = self.members.visit(member, Check { n, now, member });
            let Some(Err(denied)) = looked else {
                continue;
            };
            match denied.denied() {
                // A bucket that grants at a tick grants at each later one, as long as no other
                // caller takes from it.
                Some(Denied::Later { retry_after, .. }) => {
                    due = due.max(now.saturating_add(retry_after));
                    last = Some(last.map_or(denied, |last| last.longer(denied)));
                }
                _ => refused = Some(refused.map_or(denied, |other| other.longer(denied))),
            }
        }
        match (refused, last) {
            (Some(refused), _) => Err(refused),
            (None, Some(last)) if due > latest => {
                Err(last.too_late_by(due.saturating_since(latest)))
            }
            _ => Ok(due),
        }
    }

    /// Takes from one member after the other at the tick `due`, until one denies.
    fn take_as_of(
        &self,
        grants: &mut M::Grants,
        cost: impl Cost,
        due: Tick,
        now: Tick,
    ) -> Result<(), AllDenied> {
        for (position, member) in self.order.limits().enumerate() {
            let n = self.order.sum(member, cost);
            let take = TakeAsOf {
                n,
                due,
                now,
                member,
            };
            let Some(grant) = self.members.grant_mut(grants, position) else {
                return Err(AllDenied::of(member, None, Denied::busy(n)));
            };
            if let Some(taken) = self.members.visit(member, take) {
                *grant = Some(taken?);
            }
        }
        Ok(())
    }
}
