//! Members of a type that is known only at run time.

use core::fmt;
use std::boxed::Box;

use super::member::Member;
use super::members::{DebtMembers, ReserveMembers, SettleMembers, one_member};
use crate::clock::SystemClock;

/// A [`Member`] whose grants can be undone and settled, for use as a trait object: see
/// [`BoxSettle`].
///
/// All such members implement it. A limit that can't settle can't be boxed as one:
///
/// ```compile_fail,E0277
/// use tollgate::compose::BoxSettle;
/// use tollgate::{Quota, SlidingLog};
///
/// # fn main() -> Result<(), tollgate::error::ComposeError> {
/// let log = SlidingLog::new(Quota::per_minute(10))?;
/// let member: BoxSettle = Box::new(log); // error: `SlidingLog` can't settle
/// # Ok(())
/// # }
/// ```
pub trait SettleMember<C>: Member<C> {}

/// A [`SettleMember`] that can also go into debt, for use as a trait object: see [`BoxDebt`].
pub trait DebtMember<C>: SettleMember<C> {}

/// A [`DebtMember`] that can also be reserved together with others, for use as a trait object: see
/// [`BoxReserve`].
pub trait ReserveMember<C>: DebtMember<C> {}

impl<C, M: Member<C> + SettleMembers<C>> SettleMember<C> for M {}

impl<C, M: SettleMember<C> + DebtMembers<C>> DebtMember<C> for M {}

impl<C, M: DebtMember<C> + ReserveMembers<C>> ReserveMember<C> for M {}

/// A member of any type. A composition of these can check and take, but not undo or settle.
///
/// ```
/// use tollgate::compose::{All, BoxMember};
/// use tollgate::{Limiter, Quota, SlidingLog};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let exact = SlidingLog::new(Quota::per_minute(10))?;
/// let service = Limiter::token_bucket(Quota::per_hour(60))?;
/// let members: Vec<BoxMember> = vec![Box::new(&exact), Box::new(&service)];
/// let limits = All::new(members)?;
/// drop(limits.try_acquire_n(4)?);
/// assert_eq!((exact.available(), service.available()), (6, 56));
/// # Ok(())
/// # }
/// ```
pub type BoxMember<'m, C = SystemClock> = Box<dyn Member<C> + Send + Sync + 'm>;

/// A member of any type that can settle. A composition of these can take, undo and settle.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::compose::{All, BoxSettle, Named};
/// use tollgate::{AnyAlgorithm, Concurrency, Limiter, Quota};
///
/// /// Reads one limit of a configuration.
/// fn limit(kind: &str, value: &str) -> Result<BoxSettle<'static>, Box<dyn std::error::Error>> {
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
pub type BoxSettle<'m, C = SystemClock> = Box<dyn SettleMember<C> + Send + Sync + 'm>;

/// A member of any type that can settle and go into debt. A composition of these can do everything
/// but reserve.
///
/// ```
/// use tollgate::compose::{All, BoxDebt};
/// use tollgate::{Limiter, Quota, Sharded};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let service = Sharded::token_bucket(Quota::per_hour(1000))?;
/// let tenant = Limiter::token_bucket(Quota::per_hour(10))?;
/// let members: [BoxDebt; 2] = [Box::new(&service), Box::new(&tenant)];
/// let limits = All::new(members)?;
/// limits.charge_each([12, 12])?;
/// assert_eq!((service.available(), tenant.charge(0).debt()), (988, 2));
/// # Ok(())
/// # }
/// ```
pub type BoxDebt<'m, C = SystemClock> = Box<dyn DebtMember<C> + Send + Sync + 'm>;

/// A member of any type that can be reserved together with others: see [`ReserveMembers`]. A
/// composition of these can do everything.
///
/// ```
/// use tollgate::compose::{All, BoxReserve};
/// use tollgate::{Keyed, Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let service = Limiter::gcra(Quota::per_hour(1000))?;
/// let tenants = Keyed::token_bucket(Quota::per_hour(10), 100)?;
/// let members: [BoxReserve; 2] = [Box::new(&service), Box::new(tenants.key("acme"))];
/// let limits = All::new(members)?;
/// assert!(limits.reserve(10)?.is_due());
/// assert!(!limits.reserve(1)?.is_due());
/// # Ok(())
/// # }
/// ```
pub type BoxReserve<'m, C = SystemClock> = Box<dyn ReserveMember<C> + Send + Sync + 'm>;

one_member!(['m, C] C, dyn Member<C> + Send + Sync + 'm);
one_member!(settles ['m, C] C, dyn SettleMember<C> + Send + Sync + 'm);
one_member!(owes ['m, C] C, dyn DebtMember<C> + Send + Sync + 'm);
one_member!(owes ['m, C] C, dyn ReserveMember<C> + Send + Sync + 'm);

impl<'m, C> ReserveMembers<C> for dyn ReserveMember<C> + Send + Sync + 'm {}

/// Implements `Debug` for a trait object. It shows where the limit's state is.
macro_rules! debug {
    ($($name:ident)*) => {$(
        impl<C> fmt::Debug for dyn $name<C> + Send + Sync + '_ {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.place()).finish()
            }
        }
    )*};
}

debug!(Member SettleMember DebtMember ReserveMember);
