//! Limits without a state: one grants everything, the other nothing.

use core::num::NonZeroU64;

use super::held::Held;
use super::member::Member;
use super::members::one_member;
use crate::clock::Tick;
use crate::outcome::{Denied, Granted};
use crate::store::Place;

/// A member that grants every request and takes nothing, such as for an exempt customer.
///
/// ```
/// use tollgate::compose::{All, Exempt, OrElse};
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let service = Limiter::token_bucket(Quota::per_hour(100))?;
/// let limits = All::new((Exempt, &service))?;
/// assert_eq!(limits.try_acquire_n(60)?.remaining(), 40);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Exempt;

/// A member that denies every request, such as for a customer without access. The answer is
/// [`Denied::Never`] with a limit of 0: waiting does not help.
///
/// ```
/// use tollgate::compose::{All, Closed};
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let service = Limiter::token_bucket(Quota::per_hour(100))?;
/// let limits = All::new((&service, Closed))?;
/// let denied = limits.try_acquire().unwrap_err();
/// assert!(denied.is_permanent());
/// assert_eq!((denied.member(), service.available()), (Some(1), 100));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Closed;

/// Implements [`Member`] for a limit without a state, by what it answers and what it has.
macro_rules! stateless {
    ($limit:ty, $available:expr, |$n:ident, $now:ident| $take:expr) => {
        impl<C> Member<C> for $limit {
            /// A value without a size may share its address with another limit.
            #[inline]
            fn place(&self) -> Place {
                Place::of(self).inexact()
            }

            #[inline]
            fn check(&self, n: u64, now: Tick) -> Result<(), Denied> {
                Member::<C>::take(self, n, now).map(drop)
            }

            #[inline]
            fn take(&self, $n: u64, $now: Tick) -> Result<Held, Denied> {
                $take
            }

            #[inline]
            fn available_at(&self, _now: Tick) -> u64 {
                $available
            }

            #[inline]
            fn give_back(&self, _held: Held, _now: Tick) -> u64 {
                0
            }
        }

        one_member!(owes [C] C, $limit);
    };
}

stateless!(Exempt, u64::MAX, |n, now| {
    Ok(Granted::new(n, now)
        .with_remaining(u64::MAX, NonZeroU64::MIN)
        .into())
});
stateless!(Closed, 0, |n, now| {
    let _ = now;
    Err(Denied::never(n, 0))
});
