//! The members of a composition: the traits, and their forms for one limit and for pointers.

#[cfg(feature = "std")]
use std::boxed::Box;
#[cfg(feature = "std")]
use std::sync::Arc;

use super::held::Held;
use super::member::Member;

/// An operation on one member of a composition, of any type, and on its name. If the name does not
/// matter, [`Members::with`] is shorter.
///
/// ```
/// use tollgate::compose::{All, Member, Members, Named, Visitor};
/// use tollgate::{Concurrency, Limiter, Quota, Tick};
///
/// /// Reads a member's name and how many permits it has.
/// struct Status(Tick);
///
/// impl<C> Visitor<C> for Status {
///     type Output = (Option<&'static str>, u64);
///
///     fn visit<M>(self, member: &M, name: Option<&'static str>) -> Self::Output
///     where
///         M: Member<C> + ?Sized,
///     {
///         (name, member.available_at(self.0))
///     }
/// }
///
/// # fn main() -> Result<(), tollgate::error::ComposeError> {
/// let rate = Named::new("rate", Limiter::token_bucket(Quota::per_hour(100))?);
/// let limits = All::new((rate, Concurrency::new(8)?))?;
/// let now = limits.now();
/// assert_eq!(limits.visit(0, Status(now)), Some((Some("rate"), 100)));
/// assert_eq!(limits.visit(1, Status(now)), Some((None, 8)));
/// assert_eq!(limits.visit(2, Status(now)), None);
/// # Ok(())
/// # }
/// ```
pub trait Visitor<C> {
    /// What the operation returns.
    type Output;

    /// Runs the operation on a member. `name` is the member's [name](super::Named), if it has one.
    fn visit<M: Member<C> + ?Sized>(self, member: &M, name: Option<&'static str>) -> Self::Output;
}

/// Calls a function with a member.
struct With<F>(F);

impl<C, T, F: FnOnce(&dyn Member<C>) -> T> Visitor<C> for With<F> {
    type Output = T;

    #[inline(always)]
    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> T {
        (self.0)(&member)
    }
}

/// The members of a composition: a limit, or a tuple, an array or a `Vec` of members, or another
/// composition. `C` is the clock that they share.
///
/// Members are numbered from 0, and those of an inner composition take its place: in `(a, (b, c))`,
/// `c` is member 2.
///
/// ```
/// use tollgate::compose::Members;
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), tollgate::error::ComposeError> {
/// let limit = Limiter::token_bucket(Quota::per_second(1))?;
/// assert_eq!((&limit, [&limit, &limit]).count(), 3);
/// # Ok(())
/// # }
/// ```
pub trait Members<C> {
    /// Storage for one grant of each member.
    type Grants;

    /// The number of members if the type determines it. `None` for a `Vec`.
    const COUNT: Option<usize>;

    /// How many kinds of members there are: the elements of an array or a `Vec` are of one kind.
    const KINDS: usize = 1;

    /// Returns how many members there are.
    fn count(&self) -> usize;

    /// Visits a member, or returns `None` if there is none with this number.
    fn visit<V: Visitor<C>>(&self, index: usize, visitor: V) -> Option<V::Output>;

    /// Calls a function with a member, or returns `None` if there is none with this number.
    ///
    /// ```
    /// use tollgate::compose::{All, Members};
    /// use tollgate::{Concurrency, Limiter, Quota};
    ///
    /// # fn main() -> Result<(), tollgate::error::ComposeError> {
    /// let rate = Limiter::token_bucket(Quota::per_hour(100))?;
    /// let limits = All::new((rate, Concurrency::new(8)?))?;
    /// let now = limits.now();
    /// let each = [0, 1, 2].map(|index| limits.with(index, |member| member.available_at(now)));
    /// assert_eq!(each, [Some(100), Some(8), None]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    fn with<T>(&self, index: usize, act: impl FnOnce(&dyn Member<C>) -> T) -> Option<T> {
        self.visit(index, With(act))
    }

    /// Returns storage that holds no grant yet.
    fn no_grants(&self) -> Self::Grants;

    /// Returns where a grant is stored, by a number below that of the members. Which member's grant
    /// is where, the composition decides. `None` if there is no such place.
    fn grant_mut<'g>(
        &self,
        grants: &'g mut Self::Grants,
        index: usize,
    ) -> Option<&'g mut Option<Held>>;

    /// Returns the same place as [`grant_mut`](Self::grant_mut), to read it.
    fn grant<'g>(&self, grants: &'g Self::Grants, index: usize) -> Option<&'g Held>;
}

/// Members that can all go into debt.
///
/// ```
/// use tollgate::clock::SystemClock;
/// use tollgate::compose::{All, DebtMembers};
///
/// fn record<M: DebtMembers<SystemClock>>(limits: &All<M>, costs: &[u64]) {
///     limits.charge_each(costs).expect("a cost for each member");
/// }
/// ```
pub trait DebtMembers<C>: Members<C> {}

/// Members that can be [reserved](super::All::reserve) together: limiters, adjustable limiters
/// and keys of tables, with a [`TokenBucket`](crate::TokenBucket) or a [`Gcra`](crate::Gcra).
///
/// A reservation takes from all members at one later tick, and earlier callers must not get these
/// permits. Other limits can't do this:
///
/// - A window counts a caller with an older tick in the window that another caller has begun, so
///   callers would take the later window's permits early.
/// - A [`LeakyBucket`](crate::LeakyBucket) as a queue delays its grants, so its permits would not
///   be due at that tick. [`AnyAlgorithm`](crate::AnyAlgorithm) may be any of these.
/// - A `Concurrency` does not know when a caller will leave.
/// - [`OrElse`](super::OrElse) takes from one of two limits, and which one is known only at that
///   tick.
///
/// ```compile_fail,E0277
/// use tollgate::compose::All;
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let second = Limiter::token_bucket(Quota::per_second(10))?;
/// let day = Limiter::sliding_window(Quota::per_day(1000))?;
/// let limits = All::new((second, day))?;
/// let reserved = limits.reserve(1)?; // error: the window can't be reserved with others
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be reserved together with other limits",
    note = "only limits with a token bucket or a GCRA can: see `ReserveMembers`"
)]
pub trait ReserveMembers<C>: DebtMembers<C> {}

/// Implements all methods of [`Members`] except `visit` by those of the members inside.
macro_rules! through_members {
    ($self:ident => $members:expr) => {
        type Grants = M::Grants;
        const COUNT: Option<usize> = M::COUNT;
        const KINDS: usize = M::KINDS;

        #[inline(always)]
        fn count(&$self) -> usize {
            $members.count()
        }

        #[inline(always)]
        fn no_grants(&$self) -> M::Grants {
            $members.no_grants()
        }

        #[inline(always)]
        fn grant_mut<'g>(
            &$self,
            grants: &'g mut M::Grants,
            index: usize,
        ) -> Option<&'g mut Option<$crate::compose::Held>> {
            $members.grant_mut(grants, index)
        }

        #[inline(always)]
        fn grant<'g>(
            &$self,
            grants: &'g M::Grants,
            index: usize,
        ) -> Option<&'g $crate::compose::Held> {
            $members.grant(grants, index)
        }
    };
}
pub(crate) use through_members;

/// Implements [`Members`] for one limit.
macro_rules! one_member {
    (owes [$($parameters:tt)*] $clock:ty, $limit:ty) => {
        impl<$($parameters)*> $crate::compose::DebtMembers<$clock> for $limit {}

        $crate::compose::members::one_member!([$($parameters)*] $clock, $limit);
    };
    ([$($parameters:tt)*] $clock:ty, $limit:ty) => {
        impl<$($parameters)*> $crate::compose::Members<$clock> for $limit {
            type Grants = Option<$crate::compose::Held>;
            const COUNT: Option<usize> = Some(1);

            #[inline(always)]
            fn count(&self) -> usize {
                1
            }

            #[inline(always)]
            fn visit<V: $crate::compose::Visitor<$clock>>(
                &self,
                index: usize,
                visitor: V,
            ) -> Option<V::Output> {
                // No closure, because it would not always be inlined.
                match index {
                    0 => Some(visitor.visit(self, None)),
                    _ => None,
                }
            }

            #[inline(always)]
            fn no_grants(&self) -> Self::Grants {
                None
            }

            #[inline(always)]
            fn grant_mut<'g>(
                &self,
                grants: &'g mut Self::Grants,
                index: usize,
            ) -> Option<&'g mut Option<$crate::compose::Held>> {
                (index == 0).then_some(grants)
            }

            #[inline(always)]
            fn grant<'g>(
                &self,
                grants: &'g Self::Grants,
                index: usize,
            ) -> Option<&'g $crate::compose::Held> {
                grants.as_ref().filter(|_| index == 0)
            }
        }
    };
}
pub(crate) use one_member;

/// Implements [`Members`] for a pointer to members.
macro_rules! behind {
    ($pointer:ty) => {
        impl<C, M: DebtMembers<C> + ?Sized> DebtMembers<C> for $pointer {}

        impl<C, M: ReserveMembers<C> + ?Sized> ReserveMembers<C> for $pointer {}

        impl<C, M: Members<C> + ?Sized> Members<C> for $pointer {
            through_members!(self => (**self));

            #[inline(always)]
            fn visit<V: Visitor<C>>(&self, index: usize, visitor: V) -> Option<V::Output> {
                (**self).visit(index, visitor)
            }
        }
    };
}

behind!(&M);
#[cfg(feature = "std")]
behind!(Box<M>);
#[cfg(feature = "std")]
behind!(Arc<M>);
