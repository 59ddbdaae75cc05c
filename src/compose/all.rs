//! Several limits as one.

use core::fmt;
use core::marker::PhantomData;

use super::member::Member;
use super::members::{DebtMembers, Members, Visitor, through_members};
use super::order::Order;
use crate::clock::{Clock, SystemClock, Tick};
use crate::quota::ConfigError;

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
/// let mut granted = model.try_acquire_each([1, 800])?; // one request of 800 tokens
/// assert_eq!((requests.available(), tokens.available()), (59, 89_200));
/// granted.settle([1, 650])?; // it took 650
/// assert_eq!(tokens.available(), 89_350);
/// # Ok(())
/// # }
/// ```
///
/// The [members](Members) may be of different types, as a tuple, or of one type, as an array or a
/// `Vec`. A member is a limiter, a reference to one, a key of a table, a
/// `Concurrency`, or another composition.
///
/// # All or nothing
///
/// A request first looks at all members. If one would deny, the request is denied, and nothing was
/// written. Otherwise it takes from one member after the other. If a member denies after all,
/// because another caller was faster, everything that was taken is
/// [rolled back](crate::traits::GiveBackLimiter::roll_back_at) in reverse order, and the request
/// looks again, up to three times. It reads the clock once, and again after a lost race.
///
/// - No member ever grants more than its own bound allows. But [undoing](super::AllGranted::undo)
///   a grant disregards callers that wait for a member with a reservation, as
///   [`Limiter::undo`](crate::Limiter::undo) does.
/// - A denied request leaves every member as it was. After a lost race, the permits of a member
///   stay taken if other callers have reserved, or [charged](crate::Limiter::charge) into debt,
///   more than the member has: its state does not tell debt from a reservation.
/// - While a request is between taking and undoing, other callers see its permits as taken. So they
///   may be denied, although the request keeps nothing in the end.
/// - Compositions take from the same limits in the same order, that of the addresses. So if they
///   compete for the last permits, one of them is granted. The order is settled when a composition
///   is built: pass limits that others use too by reference.
///
/// # A limit that appears twice
///
/// Its costs are added up: `All::new((&a, &a))` takes two permits of `a` for each request. A key of
/// a `Keyed` that appears twice is recognized too. A key of a `KeyedMap` is not: a request takes
/// from it twice, and if only the second part is denied, undoes the first.
pub struct All<M, C = SystemClock> {
    pub(super) members: M,
    pub(super) order: Order,
    clock: PhantomData<fn() -> C>,
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

    /// Reads the members' clock, for the methods that take the time as an argument.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limits = All::new([Limiter::token_bucket(Quota::per_hour(5))?])?;
    /// let now = limits.now();
    /// let _ = limits.try_acquire_n_at(1, now)?;
    /// assert_eq!(limits.available_at(now), 4);
    /// # Ok(())
    /// # }
    /// ```
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
}

impl<M: Members<C>, C> All<M, C> {
    /// Returns the members, as they were passed to [`new`](Self::new).
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let requests = Limiter::token_bucket(Quota::per_minute(60))?;
    /// let tokens = Limiter::token_bucket(Quota::per_minute(90_000))?;
    /// let model = All::new((requests, tokens))?;
    /// let (_, tokens) = model.inner();
    /// assert_eq!(tokens.available(), 90_000);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn inner(&self) -> &M {
        &self.members
    }

    /// Returns this composition with its members behind others, which must be in the same places.
    #[cfg(feature = "std")]
    pub(super) const fn with_members<N>(&self, members: N) -> All<N, C> {
        All {
            members,
            order: self.order,
            clock: PhantomData,
        }
    }

    /// Returns how many members there are. Each member of an inner composition counts.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Concurrency, Limiter, Quota};
    ///
    /// # fn main() -> Result<(), tollgate::ConfigError> {
    /// let second = Limiter::token_bucket(Quota::per_second(10))?;
    /// let day = Limiter::token_bucket(Quota::per_day(1000))?;
    /// let rates = All::new((second, day))?;
    /// assert_eq!(All::new((rates, Concurrency::new(8)?))?.members(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn members(&self) -> usize {
        self.order.members()
    }
}

impl<M: fmt::Debug, C> fmt::Debug for All<M, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("All").field(&self.members).finish()
    }
}

/// The members of a composition are members of the composition that holds it.
impl<M: Members<C>, C> Members<C> for All<M, C> {
    through_members!();

    #[inline(always)]
    fn visit<V: Visitor<C>>(&self, index: usize, visitor: V) -> Option<V::Output> {
        self.members.visit(index, visitor)
    }
}

impl<M: super::SettleMembers<C>, C> super::SettleMembers<C> for All<M, C> {}
impl<M: DebtMembers<C>, C> DebtMembers<C> for All<M, C> {}
impl<M: super::ReserveMembers<C>, C> super::ReserveMembers<C> for All<M, C> {}
