//! Several limits as one.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
#[cfg(feature = "std")]
use std::sync::Arc;

use super::denied::AllDenied;
use super::granted::AllGranted;
use super::member::Member;
use super::members::{DebtMembers, Members, Visitor};
use super::order::Order;
use crate::clock::{Clock, SystemClock, Tick};
use crate::outcome::Granted;
use crate::quota::ConfigError;
use crate::sync::inject_fault;

/// How often a request looks again after another caller was faster.
const ROUNDS: u32 = 3;

/// Several limits as one: a request takes from all of them, or from none.
///
/// ```
/// use tollgate::compose::All;
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let requests = Limiter::token_bucket(Quota::per_minute(60))?;
/// let tokens = Limiter::token_bucket(Quota::per_minute(90_000))?;
/// let model = All::new((&requests, &tokens))?;
///
/// let granted = model.try_acquire_each([1, 800])?; // one request of 800 tokens
/// assert_eq!((requests.available(), tokens.available()), (59, 89_200));
/// granted.settle([1, 650]); // it took 650
/// assert_eq!(tokens.available(), 89_350);
/// # Ok(())
/// # }
/// ```
///
/// The [members](Members) may be of different types, as a tuple, or of one type, as an array or a
/// `Vec`. A member is a limiter, a reference to one, a key of a table, a
/// [`Concurrency`](crate::Concurrency), or another composition.
///
/// # All or nothing
///
/// A request first looks at all members. If one would deny, the request is denied, and nothing was
/// written. Otherwise it takes from one member after the other. If a member denies after all,
/// because another caller was faster, everything that was taken is [undone](crate::Limiter::undo)
/// in reverse order, and the request looks again, up to three times. It reads the clock once, and
/// again after a lost race.
///
/// - No member ever grants more than its own bound allows.
/// - A denied request leaves every member as it was.
/// - While one request is between taking and undoing, another may be denied although there would be
///   room for it. It may also be denied by a member from which the first one takes nothing in the
///   end.
/// - Members are taken from in one order, that of their addresses. So if compositions of the same
///   limits compete for the last permits, one of them is granted.
///
/// # A limit that appears twice
///
/// Its costs are added up: `All::new((&a, &a))` takes two permits of `a` for each request. Keys of
/// a table are the same if table and key are. (Two keys of a `KeyedMap` are never recognized as the
/// same. They are taken from one after the other.)
pub struct All<M, C = SystemClock> {
    pub(super) members: M,
    pub(super) order: Order,
    clock: PhantomData<fn() -> C>,
}

/// Looks whether a member would grant.
struct Check {
    n: u64,
    now: Tick,
    member: usize,
}

impl<C> Visitor<C> for Check {
    type Output = Result<(), AllDenied>;

    #[inline(always)]
    fn visit<M: Member<C> + ?Sized>(self, member: &M, name: Option<&'static str>) -> Self::Output {
        let checked = member.check(self.n, self.now);
        checked.map_err(|denied| AllDenied::of(self.member, name, denied))
    }
}

/// Takes from a member.
struct Take {
    n: u64,
    now: Tick,
    member: usize,
}

impl<C> Visitor<C> for Take {
    type Output = Result<Granted, AllDenied>;

    #[inline(always)]
    fn visit<M: Member<C> + ?Sized>(self, member: &M, name: Option<&'static str>) -> Self::Output {
        let taken = member.take(self.n, self.now);
        taken.map_err(|denied| AllDenied::of(self.member, name, denied))
    }
}

/// Gives a grant back.
pub(super) struct GiveBack {
    pub(super) granted: Granted,
    pub(super) now: Tick,
}

impl<C> Visitor<C> for GiveBack {
    type Output = u64;

    #[inline]
    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> u64 {
        member.give_back(self.granted, self.now)
    }
}

/// Counts what a member has.
struct Available(Tick);

impl<C> Visitor<C> for Available {
    type Output = u64;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> u64 {
        member.available_at(self.0)
    }
}

/// Takes from a member unconditionally.
struct Charge {
    n: u64,
    now: Tick,
}

impl<C> Visitor<C> for Charge {
    type Output = u64;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> u64 {
        member.charge_to(self.n, self.now).n()
    }
}

/// Reads a member's clock.
struct Now;

impl<C: Clock> Visitor<C> for Now {
    type Output = Option<Tick>;

    #[inline(always)]
    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> Option<Tick> {
        member.clock().map(Clock::now)
    }
}

impl<M: Members<C>, C: Clock> All<M, C> {
    /// Composes limits.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if there are no members or more than [`MAX_MEMBERS`](super::MAX_MEMBERS), if
    /// their clocks [differ](Clock::identity), if none has a clock, or if more than one can't undo.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let bucket = TokenBucket::new(Quota::per_second(10))?;
    /// let (one, other) = (ManualClock::new(), ManualClock::new());
    /// let limits = [Limiter::with_clock(bucket, one), Limiter::with_clock(bucket, other)];
    /// let error = All::new(limits).unwrap_err();
    /// assert_eq!(error.to_string(), "clock of member 1 is not that of member 0, but must be");
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(members: M) -> Result<Self, ConfigError> {
        Ok(Self {
            order: Order::of(&members)?,
            members,
            clock: PhantomData,
        })
    }

    /// Reads the members' clock.
    #[inline]
    pub fn now(&self) -> Tick {
        let first = self.members.visit(0, Now).flatten();
        first.unwrap_or_else(|| self.now_of_another())
    }

    /// Reads the clock of the first member that has one.
    fn now_of_another(&self) -> Tick {
        let clocks = (0..self.members()).filter_map(|member| self.members.visit(member, Now)?);
        // A composition has a member with a clock.
        clocks.into_iter().next().unwrap_or(Tick::ZERO)
    }

    /// Takes one permit of each member.
    ///
    /// # Errors
    ///
    /// [`AllDenied`] if a member denies. In that case nothing is taken.
    #[inline]
    pub fn try_acquire(&self) -> Result<AllGranted<&Self, M, C>, AllDenied> {
        self.try_acquire_n(1)
    }

    /// Takes `n` permits of each member.
    ///
    /// # Errors
    ///
    /// [`AllDenied`] if a member denies. In that case nothing is taken.
    #[inline]
    pub fn try_acquire_n(&self, n: u64) -> Result<AllGranted<&Self, M, C>, AllDenied> {
        let grants = self.take(|_| n, self.now(), |_| self.now())?;
        Ok(AllGranted::new(self, grants))
    }

    /// Takes the permits of each member that its cost says.
    ///
    /// # Errors
    ///
    /// [`AllDenied`] if a member denies, or if there is not one cost for each member. In that case
    /// nothing is taken.
    #[inline]
    pub fn try_acquire_each(
        &self,
        costs: impl AsRef<[u64]>,
    ) -> Result<AllGranted<&Self, M, C>, AllDenied> {
        let grants = self.take_each(costs.as_ref(), self.now(), |_| self.now())?;
        Ok(AllGranted::new(self, grants))
    }

    /// Returns what [`try_acquire_n`](Self::try_acquire_n) would answer. Takes nothing.
    ///
    /// # Errors
    ///
    /// The [`AllDenied`] that the request would get.
    pub fn check_n(&self, n: u64) -> Result<(), AllDenied> {
        self.check_n_at(n, self.now())
    }

    /// Returns how many requests for one permit of each member are available. Takes none.
    pub fn available(&self) -> u64 {
        self.available_at(self.now())
    }

    /// Returns how long until all members would grant `n` permits, if no other caller takes any.
    /// `None` if they never will, or if the wait is not known.
    pub fn time_until(&self, n: u64) -> Option<Duration> {
        match self.check_n(n) {
            Ok(()) => Some(Duration::ZERO),
            Err(denied) => denied.retry_after(),
        }
    }
}

#[cfg(feature = "std")]
impl<M: Members<C>, C: Clock> All<M, C> {
    /// Takes the permits of each member that its cost says, with a grant that keeps the composition
    /// alive and can move to other threads and tasks.
    ///
    /// # Errors
    ///
    /// The same as for [`try_acquire_each`](Self::try_acquire_each).
    pub fn try_acquire_each_owned(
        self: &Arc<Self>,
        costs: impl AsRef<[u64]>,
    ) -> Result<AllGranted<Arc<Self>, M, C>, AllDenied> {
        let grants = self.take_each(costs.as_ref(), self.now(), |_| self.now())?;
        Ok(AllGranted::new(Arc::clone(self), grants))
    }
}

impl<M: DebtMembers<C>, C: Clock> All<M, C> {
    /// Takes the permits of each member that its cost says unconditionally: members may go into
    /// debt. Returns how many permits were recorded, over all members.
    ///
    /// # Errors
    ///
    /// [`AllDenied::CostsLength`] if there is not one cost for each member.
    pub fn charge_each(&self, costs: impl AsRef<[u64]>) -> Result<u64, AllDenied> {
        let (costs, now) = (self.checked(costs.as_ref())?, self.now());
        let charged = self.order.limits().filter_map(|member| {
            let n = self.order.sum(member, |member| cost_of(costs, member));
            self.members.visit(member, Charge { n, now })
        });
        Ok(charged.fold(0, u64::saturating_add))
    }
}

impl<M: Members<C>, C> All<M, C> {
    /// Returns the members.
    pub const fn inner(&self) -> &M {
        &self.members
    }

    /// Returns how many members there are. Those of inner compositions count one by one.
    pub const fn members(&self) -> usize {
        self.order.members()
    }

    /// Takes `n` permits of each member at this tick.
    ///
    /// # Errors
    ///
    /// [`AllDenied`] if a member denies. In that case nothing is taken.
    #[inline]
    pub fn try_acquire_n_at(
        &self,
        n: u64,
        now: Tick,
    ) -> Result<AllGranted<&Self, M, C>, AllDenied> {
        let grants = self.take(|_| n, now, |now| now)?;
        Ok(AllGranted::new(self, grants))
    }

    /// Takes the permits of each member that its cost says, at this tick.
    ///
    /// # Errors
    ///
    /// [`AllDenied`] if a member denies, or if there is not one cost for each member. In that case
    /// nothing is taken.
    #[inline]
    pub fn try_acquire_each_at(
        &self,
        costs: impl AsRef<[u64]>,
        now: Tick,
    ) -> Result<AllGranted<&Self, M, C>, AllDenied> {
        let grants = self.take_each(costs.as_ref(), now, |now| now)?;
        Ok(AllGranted::new(self, grants))
    }

    /// Returns what [`try_acquire_n_at`](Self::try_acquire_n_at) would answer. Takes nothing.
    ///
    /// # Errors
    ///
    /// The [`AllDenied`] that the request would get.
    pub fn check_n_at(&self, n: u64, now: Tick) -> Result<(), AllDenied> {
        self.look(0, &|_| n, now)
    }

    /// Returns what [`try_acquire_each_at`](Self::try_acquire_each_at) would answer. Takes nothing.
    ///
    /// # Errors
    ///
    /// The [`AllDenied`] that the request would get.
    pub fn check_each_at(&self, costs: impl AsRef<[u64]>, now: Tick) -> Result<(), AllDenied> {
        let costs = self.checked(costs.as_ref())?;
        self.look(0, &|member| cost_of(costs, member), now)
    }

    /// Returns how many requests for one permit of each member are available at this tick.
    pub fn available_at(&self, now: Tick) -> u64 {
        let available = self.order.limits().filter_map(|member| {
            let times = self.order.sum(member, |_| 1).max(1);
            Some(self.members.visit(member, Available(now))? / times)
        });
        available.min().unwrap_or(0)
    }

    fn take_each(
        &self,
        costs: &[u64],
        now: Tick,
        later: impl Fn(Tick) -> Tick,
    ) -> Result<M::Grants, AllDenied> {
        let costs = self.checked(costs)?;
        self.take(|member| cost_of(costs, member), now, later)
    }

    /// Returns the costs if there is one for each member.
    #[inline]
    pub(super) const fn checked<'c>(&self, costs: &'c [u64]) -> Result<&'c [u64], AllDenied> {
        match costs.len() == self.members() {
            true => Ok(costs),
            false => Err(AllDenied::CostsLength {
                costs: costs.len(),
                members: self.members(),
            }),
        }
    }

    /// Takes from all members, or from none. `later` reads the clock again after a lost race.
    #[inline]
    fn take(
        &self,
        cost: impl Fn(usize) -> u64,
        now: Tick,
        later: impl Fn(Tick) -> Tick,
    ) -> Result<M::Grants, AllDenied> {
        let (mut rounds, mut now) = (ROUNDS, now);
        loop {
            if !inject_fault!(TakesWithoutALook) {
                // The first member answers for itself when it is taken from: nothing is taken yet.
                self.look(1, &cost, now)?;
            }
            let mut grants = self.members.no_grants();
            let Err((place, denied)) = self.take_in_order(&mut grants, &cost, now) else {
                return Ok(grants);
            };
            if place == 0 {
                return Err(denied);
            }
            now = later(now).max(now);
            if !inject_fault!(ForgetsToUndo) {
                self.give_back(&mut grants, now);
            }
            rounds -= 1;
            if rounds == 0 {
                return Err(denied);
            }
        }
    }

    /// Takes from one member after the other, until one denies. Returns that denial with its place
    /// in the order.
    #[inline(always)]
    fn take_in_order(
        &self,
        grants: &mut M::Grants,
        cost: &impl Fn(usize) -> u64,
        now: Tick,
    ) -> Result<(), (usize, AllDenied)> {
        for place in 0..self.order.len() {
            let member = self.order.get(place);
            let n = self.order.sum(member, cost);
            match self.members.visit(member, Take { n, now, member }) {
                Some(Ok(granted)) => {
                    if let Some(slot) = self.members.slot(grants, member) {
                        *slot = Some(granted);
                    }
                }
                Some(Err(denied)) => return Err((place, denied)),
                None => {}
            }
        }
        Ok(())
    }

    /// Looks at the members from this place of the order on. If one denies, looks at all, for the
    /// longest denial.
    #[inline(always)]
    fn look(&self, from: usize, cost: &impl Fn(usize) -> u64, now: Tick) -> Result<(), AllDenied> {
        let mut longest: Option<AllDenied> = None;
        let check = |place, longest: &mut Option<AllDenied>| {
            let member = self.order.get(place);
            let n = self.order.sum(member, cost);
            if let Some(Err(denied)) = self.members.visit(member, Check { n, now, member }) {
                *longest = Some(longest.map_or(denied, |longest| longest.longer(denied)));
            }
        };
        for place in from..self.order.len() {
            check(place, &mut longest);
        }
        if longest.is_some() {
            for place in 0..from {
                check(place, &mut longest);
            }
        }
        longest.map_or(Ok(()), Err)
    }

    /// Gives all grants back, the last one first. Returns how many permits came back.
    #[cold]
    pub(super) fn give_back(&self, grants: &mut M::Grants, now: Tick) -> u64 {
        let mut back: u64 = 0;
        for member in self.order.limits().rev() {
            let granted = self.members.slot(grants, member).and_then(Option::take);
            if let Some(granted) = granted {
                let n = self.members.visit(member, GiveBack { granted, now });
                back = back.saturating_add(n.unwrap_or(0));
                if inject_fault!(UndoesOne) {
                    break;
                }
            }
        }
        back
    }
}

#[inline(always)]
pub(super) fn cost_of(costs: &[u64], member: usize) -> u64 {
    costs.get(member).copied().unwrap_or(0)
}

impl<M: fmt::Debug, C> fmt::Debug for All<M, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("All").field(&self.members).finish()
    }
}

/// The members of a composition are members of the composition that holds it.
impl<M: Members<C>, C> Members<C> for All<M, C> {
    type Grants = M::Grants;
    const COUNT: Option<usize> = M::COUNT;

    #[inline(always)]
    fn count(&self) -> usize {
        self.members.count()
    }

    #[inline(always)]
    fn visit<V: Visitor<C>>(&self, index: usize, visitor: V) -> Option<V::Output> {
        self.members.visit(index, visitor)
    }

    #[inline(always)]
    fn no_grants(&self) -> M::Grants {
        self.members.no_grants()
    }

    #[inline(always)]
    fn slot<'g>(&self, grants: &'g mut M::Grants, index: usize) -> Option<&'g mut Option<Granted>> {
        self.members.slot(grants, index)
    }

    #[inline(always)]
    fn grant<'g>(&self, grants: &'g M::Grants, index: usize) -> Option<&'g Granted> {
        self.members.grant(grants, index)
    }
}

impl<M: super::SettleMembers<C>, C> super::SettleMembers<C> for All<M, C> {}
impl<M: DebtMembers<C>, C> DebtMembers<C> for All<M, C> {}
