//! Several limits as one: [`All`] takes from all of them, or from none.
//!
//! One request often counts against several limits: the user's, the tenant's and the service's. If
//! it asks them one after the other, the permits of the first are lost when the second denies. A
//! composition takes the permits of all its limits or of none.
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
//! | you want to | use |
//! |---|---|
//! | be granted or denied at once | [`All::try_acquire_n`] |
//! | wait for any members, first come, first served | `Line` |
//! | take permits of buckets in advance and start the work when they are due | [`All::reserve`] |
//! | take an estimated cost and correct it later | [`All::try_acquire_each`], [`AllGranted::settle`] |
//! | give an estimated cost back after an error | [`AllGranted::undo_on_drop`] |
//! | record a cost that is already spent | [`All::charge_each`] |
//! | ask without taking | [`All::check_n`], [`All::time_until`] |
//!
//! A caller in a `Line` holds no permits until all members grant. A reservation takes them at once,
//! so other callers may be denied until it is due.
//!
//! A member is a limit, or one of these:
//!
//! | member | what it does |
//! |---|---|
//! | [`OrElse`] | takes from a share, or from a common pool if the share denies |
//! | `Shadow` | tries a limit out: decides and counts, but never denies |
//! | [`Exempt`], [`Closed`] | grants or denies every request |
//! | [`Named`] | gives a member a name, which denials show |
//! | `Counted` | counts the requests that a member grants and denies |
//! | `BoxMember` | holds a member of any type, chosen at run time |
//! | [`OwnLimiter`] | holds a limiter of your own |

mod all;
#[cfg(feature = "std")]
mod blocking_line;
#[cfg(feature = "std")]
mod counted;
mod denied;
#[cfg(feature = "std")]
mod dynamic;
pub(crate) mod error;
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
#[cfg(feature = "std")]
mod turn;
mod undo;
mod undo_on_drop;
mod verbs;
mod visits;
#[cfg(feature = "std")]
mod waiting_permits;

pub use all::All;
pub use denied::AllDenied;
#[cfg(feature = "std")]
pub use dynamic::BoxMember;
pub use fixed::{Closed, Exempt};
pub use granted::{AllGranted, Within};
pub use held::Held;
pub use limits::OwnLimiter;
#[cfg(feature = "wait")]
pub use line::AsyncLine;
#[cfg(feature = "std")]
pub use line::Line;
pub use member::Member;
pub use members::{DebtMembers, Members, ReserveMembers, Visitor};
pub use named::Named;
pub use or_else::OrElse;
pub use reserved::AllReserved;
#[cfg(feature = "std")]
pub use shadow::Shadow;
pub use undo_on_drop::UndoOnDrop;

/// The most members that a composition can have.
///
/// ```
/// use tollgate::compose::{All, MAX_MEMBERS};
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), tollgate::error::ComposeError> {
/// let limits: Result<Vec<_>, _> = (0..=MAX_MEMBERS)
///     .map(|_| Limiter::token_bucket(Quota::per_second(1)))
///     .collect();
/// let error = All::new(limits?).unwrap_err();
/// assert_eq!(error.to_string(), "members are 65, but must be from 1 to 64");
/// # Ok(())
/// # }
/// ```
pub const MAX_MEMBERS: usize = 64;
