//! Several limits as one.

use core::fmt;
use core::marker::PhantomData;

use super::member::Member;
use super::members::{DebtMembers, Members, Visitor, through_members};
use super::order::Order;
use crate::clock::{Clock, SystemClock, Tick};
use crate::compose::error::ComposeError;
use crate::store::View;

/// Several limits as one: a request takes from all of them, or from none.
///
/// ```
/// use tollgate::compose::All;
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let requests = Limiter::token_bucket(Quota::per_day(60))?;
/// let pages = Limiter::token_bucket(Quota::per_day(900))?;
/// let printer = All::new((&requests, &pages))?;
///
/// let mut granted = printer.try_acquire_each([1, 80])?; // one request of 80 pages
/// assert_eq!((requests.available(), pages.available()), (59, 820));
/// granted.settle([1, 65])?; // it took 65
/// assert_eq!(pages.available(), 835);
/// # Ok(())
/// # }
/// ```
///
/// The [members](Members) may be of different types, as a tuple, or of one type, as an array or a
/// `Vec`. A member is a limiter, a reference to one, a key of a table, a `Concurrency`, or another
/// composition.
///
/// # All or nothing
///
/// A request first checks all members. If one would deny, the request is denied, and nothing is
/// written. Otherwise it takes from one member after the other. A member can still deny then, if
/// another caller took its permits in between. The request has lost a race: it
/// [rolls back](crate::traits::GiveBackLimiter::roll_back_at) what it took, in reverse order, reads
/// the clock again and starts over. After three lost races it is denied.
///
/// - **Bound:** a request takes from a member only what that member grants, so no member exceeds
///   its own bound. Two things can exceed it: a [charge](Self::charge), and giving permits back
///   while a caller waits with a reservation. [`undo`](super::AllGranted::undo) ignores such
///   callers, and [`reserve`](Self::reserve) lists the other cases.
/// - **Denials:** a denied request takes nothing. The exception is a lost race in which a window
///   ended, a quota changed, or other callers reserved or [charged](crate::Limiter::charge) more
///   than a member had. Then that member's permits stay taken. A lost race can also
///   consume permits of a `Sharded` member, because they can't return to a shard
///   that another thread has changed: in each of at most four attempts of a try, fewer permits than
///   were requested of that member.
/// - **Other callers:** until a lost race is rolled back, other callers may be denied because of
///   permits that the request does not keep.
/// - **Progress:** if compositions compete for the last permits, one of them is granted, because
///   all take from their limits in the order of their addresses. This order is fixed when a
///   composition is built, so pass a limit that others also use by reference.
///
/// # A limit that appears twice
///
/// Its costs are added up: `All::new((&a, &a))` takes two permits of `a` for each request. A key of
/// a `Keyed` that appears twice is recognized too. A word of your own whose place has a
/// [hash](crate::store::Place::with_hash) is not: a request takes from it twice, and rolls the
/// first part back if the second is denied.
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
    /// [`ComposeError`] if there are no members or more than [`MAX_MEMBERS`](super::MAX_MEMBERS),
    /// if their clocks [differ](Clock::identity), or if more than one can't
    /// undo.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), tollgate::error::ComposeError> {
    /// let bucket = TokenBucket::new(Quota::per_second(10))?;
    /// let (one, other) = (ManualClock::new(), ManualClock::new());
    /// let limits = [Limiter::with_clock(bucket, one), Limiter::with_clock(bucket, other)];
    /// let error = All::new(limits).unwrap_err();
    /// assert_eq!(error.to_string(), "clock of member 1 must be the same as that of member 0");
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(members: M) -> Result<Self, ComposeError> {
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
        let now = (0..self.members()).find_map(|member| self.members.visit(member, Now)?);
        // Concurrency limits alone need no clock.
        now.unwrap_or(Tick::ZERO)
    }
}

impl<M: Members<C>, C> All<M, C> {
    /// Returns a view whose methods use this tick and read no clock.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limits = All::new([Limiter::token_bucket(Quota::per_hour(5))?])?;
    /// let view = limits.at(limits.now());
    /// let _ = view.try_acquire_n(1)?;
    /// assert_eq!(view.available(), 4);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub const fn at(&self, now: Tick) -> View<&Self> {
        View::new(self, now)
    }

    /// Returns the members, as they were passed to [`new`](Self::new).
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), tollgate::error::ComposeError> {
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

    /// Returns the members, as they were passed to [`new`](Self::new), without the composition.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), tollgate::error::ComposeError> {
    /// let all = All::new([Limiter::token_bucket(Quota::per_minute(60))?])?;
    /// let [requests] = all.into_inner();
    /// assert_eq!(requests.available(), 60);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn into_inner(self) -> M {
        self.members
    }

    /// Returns this composition with its members wrapped in others, which must have the same
    /// places.
    #[cfg(feature = "std")]
    pub(super) const fn with_members<N>(&self, members: N) -> All<N, C> {
        All {
            members,
            order: self.order,
            clock: PhantomData,
        }
    }

    /// Returns the number of members. Each member of an inner composition counts.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Concurrency, Limiter, Quota};
    ///
    /// # fn main() -> Result<(), tollgate::error::ComposeError> {
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
    through_members!(self => self.members);

    #[inline(always)]
    fn visit<V: Visitor<C>>(&self, index: usize, visitor: V) -> Option<V::Output> {
        self.members.visit(index, visitor)
    }
}

impl<M: DebtMembers<C>, C> DebtMembers<C> for All<M, C> {}
impl<M: super::ReserveMembers<C>, C> super::ReserveMembers<C> for All<M, C> {}
