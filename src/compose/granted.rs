use core::fmt;
use core::mem;
use core::ops::Deref;
use core::time::Duration;

use super::all::All;
use super::denied::AllDenied;
use super::member::Member;
use super::members::Members;
use super::protocol::cost_of;
use super::visits::Why;
use crate::clock::{Clock, Tick};
use crate::outcome::{GrantInfo, Settled};

/// A granted request to a composition: every member granted its part.
///
/// Dropping it keeps the permits taken, and leaves each `Concurrency` among the members. `R` is the
/// reference to the composition: `&All`, or `Arc<All>` or [`Within<All>`] for a grant that outlives
/// the caller's scope.
///
/// ```
/// use tollgate::compose::All;
/// use tollgate::{Concurrency, Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (rate, inside) = (Limiter::token_bucket(Quota::per_hour(100))?, Concurrency::new(2)?);
/// let limits = All::new((&rate, &inside))?;
/// {
///     let granted = limits.try_acquire()?;
///     assert_eq!(granted.remaining(), 1);
///     assert_eq!(inside.inside(), 1);
/// }
/// assert_eq!((rate.available(), inside.inside()), (99, 0));
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping the grant leaves the composition's concurrency limits"]
pub struct AllGranted<R: Deref<Target = All<M, C>>, M: Members<C>, C> {
    all: R,
    grants: M::Grants,
}

/// The reference to a composition that its own grant contains. [`All::into_acquired_each`] returns
/// such a grant.
#[derive(Debug)]
pub struct Within<A>(pub(super) A);

impl<A> Deref for Within<A> {
    type Target = A;

    #[inline(always)]
    fn deref(&self) -> &A {
        &self.0
    }
}

impl<M: Members<C>, C: Clock> All<M, C> {
    /// Takes `costs[0]` permits from member 0, and so on. The grant contains the composition, so it
    /// can be returned from where the composition was made.
    ///
    /// ```
    /// use tollgate::compose::{All, AllDenied, AllGranted, Within};
    /// use tollgate::keyed::Key;
    /// use tollgate::clock::SystemClock;
    /// use tollgate::{Keyed, Quota, TokenBucket};
    ///
    /// type Users = Keyed<TokenBucket>;
    /// type Pair<'k> = [Key<&'k Users>; 2];
    /// type Granted<'k> = AllGranted<Within<All<Pair<'k>>>, Pair<'k>, SystemClock>;
    ///
    /// fn both<'k>(users: &'k Users, names: [&str; 2]) -> Result<Granted<'k>, AllDenied> {
    ///     let all = All::new(names.map(|name| users.key(name))).expect("two limits");
    ///     all.into_acquired_each([1, 2]).map_err(|(denied, _)| denied)
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let users = Users::token_bucket(Quota::per_hour(5), 1000)?;
    /// let granted = both(&users, ["alice", "bob"])?;
    /// assert_eq!(users.key("bob").available(), 3);
    /// granted.undo();
    /// assert_eq!(users.key("bob").available(), 5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`try_acquire_each`](Self::try_acquire_each), with the composition.
    #[inline]
    #[expect(
        clippy::result_large_err,
        reason = "a box would allocate for each denial"
    )]
    pub fn into_acquired_each(
        self,
        costs: impl AsRef<[u64]>,
    ) -> Result<AllGranted<Within<Self>, M, C>, (AllDenied, Self)> {
        match self.take_each(costs.as_ref(), self.now(), |_| self.now()) {
            Ok(grants) => Ok(AllGranted::new(Within(self), grants)),
            Err(denied) => Err((denied, self)),
        }
    }
}

impl<R: Deref<Target = All<M, C>>, M: Members<C>, C> AllGranted<R, M, C> {
    #[inline(always)]
    pub(super) fn new(all: R, grants: M::Grants) -> Self {
        Self { all, grants }
    }

    /// Returns the composition.
    pub fn composition(&self) -> &All<M, C> {
        &self.all
    }

    /// Returns what a member granted, by its number. A limit that appears twice has one grant,
    /// under its first number.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let requests = Limiter::token_bucket(Quota::per_hour(60))?;
    /// let tokens = Limiter::token_bucket(Quota::per_hour(90_000))?;
    /// let model = All::new((requests, tokens))?;
    /// let granted = model.try_acquire_each([1, 800])?;
    /// let remaining = |member| Some(granted.member(member)?.remaining());
    /// assert_eq!((remaining(0), remaining(1), remaining(2)), (Some(59), Some(89_200), None));
    /// assert_eq!((granted.tightest(), granted.remaining()), (0, 59));
    /// # Ok(())
    /// # }
    /// ```
    pub fn member(&self, member: usize) -> Option<GrantInfo> {
        let position = self.all.order.position_of(member)?;
        let held = self.all.members.grant(&self.grants, position)?;
        Some(held.granted.info())
    }

    /// Returns all grants, with their members' numbers.
    fn each(&self) -> impl Iterator<Item = (usize, GrantInfo)> {
        (0..self.all.members()).filter_map(|member| Some((member, self.member(member)?)))
    }

    /// Returns how many permits each member had left, with the members' numbers.
    fn each_remaining(&self) -> impl Iterator<Item = (usize, u64)> {
        let members = &self.all.members;
        (0..self.all.members()).filter_map(|member| {
            let held = members.grant(&self.grants, self.all.order.position_of(member)?)?;
            let remaining = members.with(member, |member| member.remaining(held))?;
            Some((member, remaining))
        })
    }

    /// Returns how many permits were taken, over all members.
    pub fn n(&self) -> u64 {
        let taken = self.each().map(|(_, granted)| granted.n());
        taken.fold(0, u64::saturating_add)
    }

    /// Returns the number of the member with the fewest permits left.
    pub fn tightest(&self) -> usize {
        let tightest = self
            .each_remaining()
            .min_by_key(|(_, remaining)| *remaining);
        tightest.map_or(0, |(member, _)| member)
    }

    /// Returns how many permits the member with the fewest has left.
    pub fn remaining(&self) -> u64 {
        let remaining = self.each_remaining().map(|(_, remaining)| remaining);
        remaining.min().unwrap_or(0)
    }

    /// Returns how long it takes until all members are idle, if no caller takes more.
    pub fn reset_after(&self) -> Duration {
        let times = self.each().map(|(_, granted)| granted.reset_after());
        times.max().unwrap_or(Duration::ZERO)
    }

    /// Returns how long after its request the caller must wait before it uses the permits: the
    /// longest [`delay`](crate::Granted::delay) of the members. Only a
    /// [queue](crate::LeakyBucket::queue) delays; the other members count the permits at the tick
    /// of the request. No method of a composition or a `Line` sleeps for this delay.
    pub fn delay(&self) -> Duration {
        let delays = self.each().map(|(_, granted)| granted.delay());
        delays.max().unwrap_or(Duration::ZERO)
    }

    /// Leaves each `Concurrency` among the members now. The rest of the grant can still be undone
    /// and settled.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Concurrency, Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (tokens, inside) = (Limiter::token_bucket(Quota::per_hour(900))?, Concurrency::new(2)?);
    /// let model = All::new((&tokens, &inside))?;
    /// let mut granted = model.try_acquire_each([800, 1])?;
    /// granted.leave(); // the call is over, its bill comes later
    /// assert_eq!((tokens.available(), inside.inside()), (100, 0));
    /// granted.settle([650, 1])?;
    /// assert_eq!((tokens.available(), inside.inside()), (250, 0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn leave(&mut self) {
        for position in 0..self.all.order.len() {
            let grant = self.all.members.grant_mut(&mut self.grants, position);
            // Taken first: if a waker panics, the holder has left.
            let Some(held) = grant.and_then(Option::take) else {
                continue;
            };
            let leave = |member: &dyn Member<C>| member.leave(&held);
            if self.all.members.with(self.all.order.get(position), leave) != Some(true) {
                if let Some(grant) = self.all.members.grant_mut(&mut self.grants, position) {
                    *grant = Some(held);
                }
            }
        }
    }
}

/// Ends the use of all grants, beginning with one member. If a member or a waker panics, dropping
/// it continues with the next member.
struct LeaveFrom<'g, M: Members<C>, C> {
    position: usize,
    all: &'g All<M, C>,
    grants: &'g M::Grants,
}

impl<M: Members<C>, C> LeaveFrom<'_, M, C> {
    #[inline(always)]
    fn run(&mut self) {
        while self.position < self.all.order.len() {
            let position = self.position;
            self.position += 1;
            if let Some(held) = self.all.members.grant(self.grants, position) {
                let leave = |member: &dyn Member<C>| member.leave(held);
                self.all.members.with(self.all.order.get(position), leave);
            }
        }
    }
}

impl<M: Members<C>, C> Drop for LeaveFrom<'_, M, C> {
    #[cold]
    fn drop(&mut self) {
        self.run();
    }
}

impl<R: Deref<Target = All<M, C>>, M: Members<C>, C: Clock> AllGranted<R, M, C> {
    /// Gives the permits back to all members, as far as each can take them back: see
    /// [`Limiter::undo`](crate::Limiter::undo). Returns how many came back, over all members. A
    /// `SlidingLog` and `Leases` take nothing back.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let requests = Limiter::token_bucket(Quota::per_hour(60))?;
    /// let tokens = Limiter::token_bucket(Quota::per_day(9_000))?;
    /// let model = All::new((&requests, &tokens))?;
    /// let granted = model.try_acquire_each([1, 800])?;
    /// assert_eq!(granted.undo(), 801);
    /// assert_eq!((requests.available(), tokens.available()), (60, 9_000));
    /// # Ok(())
    /// # }
    /// ```
    pub fn undo(mut self) -> u64 {
        self.undo_each()
    }

    /// Gives the permits back as [`undo`](Self::undo) does, and keeps the composition. Undoing or
    /// settling the grant again changes nothing.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tokens = Limiter::token_bucket(Quota::per_hour(900))?;
    /// let model = All::new([&tokens])?;
    /// let mut granted = model.try_acquire_n(800)?;
    /// assert_eq!(granted.undo_each(), 800);
    /// assert_eq!(granted.undo_each(), 0);
    /// assert_eq!(tokens.available(), 900);
    /// # Ok(())
    /// # }
    /// ```
    pub fn undo_each(&mut self) -> u64 {
        let now = self.all.now();
        self.all.give_back(&mut self.grants, now, Why::Undone)
    }

    /// Returns the costs if there is one for each member.
    pub(super) fn checked<'c>(&self, costs: &'c [u64]) -> Result<&'c [u64], AllDenied> {
        self.all.checked(costs)
    }

    /// Corrects the estimates when the costs are known: see
    /// [`Limiter::settle`](crate::Limiter::settle). Returns what came back and what was charged,
    /// over all members. Leaves each `Concurrency`. A `SlidingLog` and `Leases` keep what they
    /// granted, and are not charged. A grant is settled once: settling or undoing it again changes
    /// nothing.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tokens = Limiter::token_bucket(Quota::per_hour(90_000))?;
    /// let day = Limiter::fixed_window(Quota::per_day(1_000_000))?;
    /// let model = All::new((tokens, day))?;
    /// let mut granted = model.try_acquire_n(2_000)?;
    /// let error = granted.settle([1_200]).unwrap_err();
    /// assert_eq!(error.to_string(), "number of costs is 1, but must be 2: one for each member");
    /// let settled = granted.settle([1_200, 1_200])?;
    /// assert_eq!(settled.returned, 1_600); // 800 to each
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`AllDenied::CostsLength`] if there is not one cost for each member. The grant is unchanged.
    pub fn settle(&mut self, costs: impl AsRef<[u64]>) -> Result<Settled, AllDenied> {
        let now = self.all.now();
        self.settle_at(costs, now)
    }
}

impl<R: Deref<Target = All<M, C>>, M: Members<C>, C> AllGranted<R, M, C> {
    /// Gives the permits back at this tick.
    pub fn undo_at(mut self, now: Tick) -> u64 {
        self.all.give_back(&mut self.grants, now, Why::Undone)
    }

    /// Corrects the estimates at this tick.
    ///
    /// # Errors
    ///
    /// The same as for [`settle`](Self::settle).
    pub fn settle_at(&mut self, costs: impl AsRef<[u64]>, now: Tick) -> Result<Settled, AllDenied> {
        let costs = self.all.checked(costs.as_ref())?;
        let mut sum = Settled::charged(0);
        let all = &*self.all;
        for (position, member) in all.order.limits().enumerate() {
            let grant = all.members.grant_mut(&mut self.grants, position);
            let Some(held) = grant.and_then(Option::take) else {
                continue;
            };
            let actual = all.order.sum(member, |member| cost_of(costs, member));
            let correct = |member: &dyn Member<C>| member.correct(held, actual, now);
            if let Some(settled) = all.members.with(member, correct) {
                sum = sum.plus(settled);
            }
        }
        Ok(sum)
    }
}

impl<R: Deref<Target = All<M, C>>, M: Members<C>, C> Drop for AllGranted<R, M, C> {
    #[inline]
    fn drop(&mut self) {
        if !self.all.order.leaves() {
            return;
        }
        let mut leave = LeaveFrom {
            position: 0,
            all: &*self.all,
            grants: &self.grants,
        };
        leave.run();
        mem::forget(leave);
    }
}

impl<R: Deref<Target = All<M, C>>, M: Members<C>, C> fmt::Debug for AllGranted<R, M, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.each()).finish()
    }
}
