use super::member::Member;
use super::members::{DebtMembers, Members, ReserveMembers, Visitor, through_members};

/// A member with a name, which denials show. Members of an inner composition that have no name get
/// the name of the composition.
///
/// ```
/// use tollgate::compose::{All, Named};
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), tollgate::error::ComposeError> {
/// let requests = Limiter::token_bucket(Quota::per_minute(60))?;
/// let tokens = Limiter::token_bucket(Quota::per_minute(90_000))?;
/// let model = All::new((Named::new("requests", requests), Named::new("tokens", tokens)))?;
/// let denied = model.try_acquire_each([1, 100_000]).unwrap_err();
/// assert_eq!(denied.name(), Some("tokens"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Named<M> {
    name: &'static str,
    members: M,
}

impl<M> Named<M> {
    /// Gives a member a name.
    #[must_use]
    pub const fn new(name: &'static str, members: M) -> Self {
        Self { name, members }
    }

    /// Returns the name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the member.
    pub const fn inner(&self) -> &M {
        &self.members
    }
}

/// Passes the name on to a visitor.
struct Naming<V> {
    visitor: V,
    name: &'static str,
}

impl<C, V: Visitor<C>> Visitor<C> for Naming<V> {
    type Output = V::Output;

    #[inline(always)]
    fn visit<M: Member<C> + ?Sized>(self, member: &M, name: Option<&'static str>) -> V::Output {
        self.visitor.visit(member, Some(name.unwrap_or(self.name)))
    }
}

impl<C, M: Members<C>> Members<C> for Named<M> {
    through_members!(self => self.members);

    #[inline(always)]
    fn visit<V: Visitor<C>>(&self, index: usize, visitor: V) -> Option<V::Output> {
        let name = self.name;
        self.members.visit(index, Naming { visitor, name })
    }
}

impl<C, M: DebtMembers<C>> DebtMembers<C> for Named<M> {}

impl<C, M: ReserveMembers<C>> ReserveMembers<C> for Named<M> {}
