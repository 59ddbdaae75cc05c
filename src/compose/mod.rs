//! Several limits as one: [`All`] takes from all of them, or from none.
//!
//! Real limits come in sets: a user's, the tenant's and the service's; requests a minute and tokens
//! a minute; a rate and a concurrency. A chain of limiters gets them wrong: what the first limiter
//! granted is lost if the second denies. A composition takes everything or nothing, and a denial
//! takes nothing.
//!
//! ```
//! use tollgate::compose::All;
//! use tollgate::{Keyed, Limiter, Quota};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let service = Limiter::token_bucket(Quota::per_hour(1000))?;
//! let tenants = Keyed::token_bucket(Quota::per_hour(100), 1000)?;
//! let users = Keyed::token_bucket(Quota::per_hour(5), 100_000)?;
//!
//! let limits = All::new((users.key("alice"), tenants.key("acme"), &service))?;
//! limits.try_acquire_n(3)?;
//! let denied = limits.try_acquire_n(3).unwrap_err();
//! assert_eq!(denied.member(), Some(0));
//! assert_eq!(service.available(), 997); // the denied request took nothing
//! # Ok(())
//! # }
//! ```
//!
//! A member is a limit, or one of these:
//!
//! | member | what it does |
//! |---|---|
//! | [`OrElse`] | the first of two limits that grants: a share, then a common pool |
//! | `Shadow` | a limit on trial: decides and counts, but never denies |
//! | [`Exempt`], [`Closed`] | grants or denies every request |
//! | [`Named`] | a member with a name, by which denials identify it |
//! | `Counted` | a member that counts the requests of the composition |
//! | `BoxMember`, `BoxSettle`, `BoxDebt`, `BoxReserve` | a member of any type, chosen at run time |
//! | [`OwnLimiter`] | a limiter of your own |
//!
//! [`Estimate`] and [`AllGranted`] take permits for an estimated cost, to be settled later.

mod all;
#[cfg(feature = "std")]
mod blocking_line;
#[cfg(feature = "std")]
mod counted;
mod denied;
#[cfg(feature = "std")]
mod dynamic;
mod estimate;
mod fixed;
mod granted;
mod held;
mod limits;
#[cfg(feature = "std")]
mod line;
mod lists;
mod member;
mod members;
mod named;
mod or_else;
mod order;
mod protocol;
mod reserve;
mod reserved;
#[cfg(feature = "std")]
mod shadow;
mod slot;
#[cfg(feature = "std")]
mod turn;
mod undo;
mod verbs;
mod visits;

pub use all::All;
pub use denied::AllDenied;
#[cfg(feature = "std")]
pub use dynamic::{
    BoxDebt, BoxMember, BoxReserve, BoxSettle, DebtMember, ReserveMember, SettleMember,
};
pub use estimate::{Estimate, UndoOnDrop};
pub use fixed::{Closed, Exempt};
pub use granted::AllGranted;
pub use held::Held;
pub use limits::OwnLimiter;
#[cfg(feature = "wait")]
pub use line::AsyncLine;
#[cfg(feature = "std")]
pub use line::Line;
pub use member::Member;
pub use members::{DebtMembers, Members, OneMember, ReserveMembers, SettleMembers, Visitor};
pub use named::Named;
pub use or_else::OrElse;
pub use reserved::AllReserved;
#[cfg(feature = "std")]
pub use shadow::Shadow;
pub use slot::Slot;

/// The most members that a composition can have.
///
/// ```
/// use tollgate::compose::{All, MAX_MEMBERS};
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), tollgate::ConfigError> {
/// let limits: Result<Vec<_>, _> = (0..=MAX_MEMBERS)
///     .map(|_| Limiter::token_bucket(Quota::per_second(1)))
///     .collect();
/// let error = All::new(limits?).unwrap_err();
/// assert_eq!(error.to_string(), "members are 65, but must be from 1 to 64");
/// # Ok(())
/// # }
/// ```
pub const MAX_MEMBERS: usize = 64;
