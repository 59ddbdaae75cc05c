//! Members of a type that is known only at run time.

use core::fmt;
use std::boxed::Box;

use super::member::Member;
use super::members::one_member;
use crate::clock::SystemClock;

/// A member of any type, chosen at run time. A composition of these can do everything but reserve.
/// A member that can't go into debt is not charged: [`All::charge`](super::All::charge) returns how
/// many permits were recorded.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::compose::{All, BoxMember, Named};
/// use tollgate::{AnyAlgorithm, Concurrency, Limiter, Quota};
///
/// /// Reads one limit of a configuration.
/// fn limit(kind: &str, value: &str) -> Result<BoxMember<'static>, Box<dyn std::error::Error>> {
///     Ok(match kind {
///         "rate" => Box::new(Limiter::new(value.parse::<AnyAlgorithm>()?)),
///         "inside" => Box::new(Arc::new(Concurrency::new(value.parse()?)?)),
///         _ => return Err(format!("kind is {kind}, but must be rate or inside").into()),
///     })
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let configured = [
///     ("tenant", "rate", "token-bucket 100/s burst 500"),
///     ("daily", "rate", "sliding-window 90000/day"),
///     ("inside", "inside", "8"),
/// ];
/// let members = configured.map(|(name, kind, value)| Ok(Named::new(name, limit(kind, value)?)));
/// let members: Result<Vec<_>, Box<dyn std::error::Error>> = members.into_iter().collect();
/// let limits = All::new(members?)?;
///
/// let mut granted = limits.try_acquire_each([300, 300, 1])?;
/// granted.settle([250, 250, 1])?;
/// let denied = limits.try_acquire_each([0, 90_000, 1]).unwrap_err();
/// assert_eq!(denied.name(), Some("daily"));
/// # Ok(())
/// # }
/// ```
pub type BoxMember<'m, C = SystemClock> = Box<dyn Member<C> + Send + Sync + 'm>;

one_member!(owes ['m, C] C, dyn Member<C> + Send + Sync + 'm);

/// Shows where the limit's state is.
impl<C> fmt::Debug for dyn Member<C> + Send + Sync + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Member").field(&self.place()).finish()
    }
}
