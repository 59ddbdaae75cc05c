//! The verbs of a composition.

use core::time::Duration;
#[cfg(feature = "std")]
use std::sync::Arc;

use super::all::All;
use super::denied::AllDenied;
use super::granted::AllGranted;
use super::member::Member;
use super::members::{DebtMembers, Members, Visitor};
use super::protocol::{Cost, cost_of};
use crate::clock::{Clock, Tick};
use crate::store::View;

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

/// Implements verbs of a composition on the members' clock.
macro_rules! clock_forms {
    ([$members:path] $(
        $(#[$meta:meta])* fn $verb:ident($($argument:ident: $type:ty),*) -> $answer:ty;
    )*) => {
        impl<M: $members, C: Clock> All<M, C> {$(
            $(#[$meta])*
            pub fn $verb(&self $(, $argument: $type)*) -> $answer {
                self.at(self.now()).$verb($($argument),*)
            }
        )*}
    };
}
pub(super) use clock_forms;

clock_forms! {
    [Members<C>]
    /// Returns what [`try_acquire_n`](Self::try_acquire_n) would answer. Takes nothing.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limits = All::new([Limiter::token_bucket(Quota::per_hour(5))?])?;
    /// limits.check_n(5)?;
    /// assert!(limits.check_n(6).is_err());
    /// assert_eq!(limits.available(), 5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The [`AllDenied`] that the request would get.
    fn check_n(n: u64) -> Result<(), AllDenied>;
    /// Returns what [`try_acquire_each`](Self::try_acquire_each) would answer. Takes
    /// nothing.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let requests = Limiter::token_bucket(Quota::per_hour(60))?;
    /// let tokens = Limiter::token_bucket(Quota::per_hour(90_000))?;
    /// let model = All::new((&requests, &tokens))?;
    /// model.check_each([1, 90_000])?;
    /// assert_eq!(model.check_each([1, 90_001]).unwrap_err().member(), Some(1));
    /// assert_eq!(tokens.available(), 90_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The [`AllDenied`] that the request would get: its `retry_after` says how long until
    /// all members would grant.
    fn check_each(costs: impl AsRef<[u64]>) -> Result<(), AllDenied>;
    /// Returns how many requests for one permit of each member would be granted now. Takes
    /// none.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), tollgate::error::ComposeError> {
    /// let a = Limiter::token_bucket(Quota::per_hour(5))?;
    /// let b = Limiter::token_bucket(Quota::per_hour(9))?;
    /// assert_eq!(All::new((&a, &b))?.available(), 5);
    /// assert_eq!(All::new((&a, &b, &b))?.available(), 4); // each takes two of `b`
    /// # Ok(())
    /// # }
    /// ```
    fn available() -> u64;
    /// Returns how long until all members would grant `n` permits, if no other caller takes
    /// any. `None` if they never will, or if the wait is not known.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_second(10))?;
    /// let limits = All::new([Limiter::with_clock(bucket, ManualClock::new())])?;
    /// let _ = limits.try_acquire_n(10)?;
    /// assert_eq!(limits.time_until(3), Some(Duration::from_millis(300)));
    /// assert_eq!(limits.time_until(11), None); // never: more than the burst
    /// # Ok(())
    /// # }
    /// ```
    fn time_until(n: u64) -> Option<Duration>;
}

impl<M: Members<C>, C: Clock> All<M, C> {
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
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (user, tenant) = (Quota::per_hour(5), Quota::per_hour(100));
    /// let limits = All::new((Limiter::token_bucket(user)?, Limiter::token_bucket(tenant)?))?;
    /// assert_eq!(limits.try_acquire_n(3)?.remaining(), 2); // of the user
    /// assert_eq!(limits.try_acquire_n(3).unwrap_err().member(), Some(0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`AllDenied`] if a member denies. In that case nothing is taken.
    #[inline]
    pub fn try_acquire_n(&self, n: u64) -> Result<AllGranted<&Self, M, C>, AllDenied> {
        let grants = self.take(move |_| n, self.now(), |_| self.now())?;
        Ok(AllGranted::new(self, grants))
    }

    /// Takes a different number of permits from each member: `costs[0]` from member 0, and so on.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let requests = Limiter::token_bucket(Quota::per_hour(60))?;
    /// let tokens = Limiter::token_bucket(Quota::per_day(9_000))?;
    /// let model = All::new((&requests, &tokens))?;
    /// let _ = model.try_acquire_each([1, 800])?;
    /// assert_eq!((requests.available(), tokens.available()), (59, 8_200));
    ///
    /// let denied = model.try_acquire_each([1]).unwrap_err();
    /// assert_eq!(denied.to_string(), "number of costs is 1, but must be 2: one for each member");
    /// # Ok(())
    /// # }
    /// ```
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
}

#[cfg(feature = "std")]
impl<M: Members<C>, C: Clock> All<M, C> {
    /// Takes one permit of each member. The grant keeps the composition alive and can move to other
    /// threads and tasks.
    ///
    /// # Errors
    ///
    /// The same as for [`try_acquire`](Self::try_acquire).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::compose::All;
    /// use tollgate::{Concurrency, Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let inside = Arc::new(Concurrency::new(2)?);
    /// let rate = Limiter::token_bucket(Quota::per_hour(100))?;
    /// let limits = Arc::new(All::new((rate, Arc::clone(&inside)))?);
    /// let granted = limits.try_acquire_owned()?;
    /// std::thread::spawn(move || drop(granted)).join().unwrap();
    /// assert_eq!(inside.inside(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_acquire_owned(self: &Arc<Self>) -> Result<AllGranted<Arc<Self>, M, C>, AllDenied> {
        self.try_acquire_n_owned(1)
    }

    /// Takes `n` permits of each member. The grant keeps the composition alive and can move to
    /// other threads and tasks.
    ///
    /// # Errors
    ///
    /// The same as for [`try_acquire_n`](Self::try_acquire_n).
    pub fn try_acquire_n_owned(
        self: &Arc<Self>,
        n: u64,
    ) -> Result<AllGranted<Arc<Self>, M, C>, AllDenied> {
        let grants = self.take(|_| n, self.now(), |_| self.now())?;
        Ok(AllGranted::new(Arc::clone(self), grants))
    }

    /// Takes `costs[0]` permits from member 0, and so on. The grant keeps the composition alive and
    /// can move to other threads and tasks.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::thread;
    /// use tollgate::compose::All;
    /// use tollgate::{Concurrency, Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (rate, inside) = (Limiter::token_bucket(Quota::per_hour(100))?, Concurrency::new(2)?);
    /// let limits = Arc::new(All::new((rate, inside))?);
    /// let granted = limits.try_acquire_each_owned([5, 1])?;
    /// let worker = thread::spawn(move || drop(granted)); // leaves when the work ends
    /// worker.join().expect("no panic");
    /// assert_eq!(limits.inner().1.inside(), 0);
    /// # Ok(())
    /// # }
    /// ```
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

/// The verbs of a composition at one tick. A request that loses a race starts over at the same
/// tick.
impl<'a, M: Members<C>, C> View<&'a All<M, C>> {
    /// Takes `n` permits of each member, as [`All::try_acquire_n`] does.
    ///
    /// # Errors
    ///
    /// [`AllDenied`] if a member denies. In that case nothing is taken.
    #[inline(always)]
    pub fn try_acquire_n(&self, n: u64) -> Result<AllGranted<&'a All<M, C>, M, C>, AllDenied> {
        let grants = self.store.take(move |_| n, self.now, |now| now)?;
        Ok(AllGranted::new(self.store, grants))
    }

    /// Takes `costs[0]` permits from member 0, and so on, as [`All::try_acquire_each`] does.
    ///
    /// # Errors
    ///
    /// [`AllDenied`] if a member denies, or if there is not one cost for each member. In that case
    /// nothing is taken.
    #[inline]
    pub fn try_acquire_each(
        &self,
        costs: impl AsRef<[u64]>,
    ) -> Result<AllGranted<&'a All<M, C>, M, C>, AllDenied> {
        let grants = self.store.take_each(costs.as_ref(), self.now, |now| now)?;
        Ok(AllGranted::new(self.store, grants))
    }

    /// Returns what [`try_acquire_n`](Self::try_acquire_n) would answer. Takes nothing.
    ///
    /// # Errors
    ///
    /// The [`AllDenied`] that the request would get.
    pub fn check_n(&self, n: u64) -> Result<(), AllDenied> {
        self.store.look(|_| n, self.now)
    }

    /// Returns what [`try_acquire_each`](Self::try_acquire_each) would answer. Takes nothing.
    ///
    /// # Errors
    ///
    /// The [`AllDenied`] that the request would get.
    pub fn check_each(&self, costs: impl AsRef<[u64]>) -> Result<(), AllDenied> {
        let costs = self.store.checked(costs.as_ref())?;
        self.store.look(|member| cost_of(costs, member), self.now)
    }

    /// Returns how many requests for one permit of each member would be granted.
    pub fn available(&self) -> u64 {
        let (all, now) = (self.store, self.now);
        let available = all.order.limits().filter_map(|member| {
            let times = all.order.sum(member, |_| 1).max(1);
            Some(all.members.visit(member, Available(now))? / times)
        });
        available.min().unwrap_or(0)
    }

    /// Returns how long after this tick all members would grant `n` permits, as
    /// [`All::time_until`] does.
    pub fn time_until(&self, n: u64) -> Option<Duration> {
        match self.check_n(n) {
            Ok(()) => Some(Duration::ZERO),
            Err(denied) => denied.retry_after(),
        }
    }
}

impl<M: DebtMembers<C>, C: Clock> All<M, C> {
    /// Takes `n` permits of each member unconditionally: members may go into debt. Returns how many
    /// permits were recorded, over all members.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), tollgate::error::ComposeError> {
    /// let user = Limiter::token_bucket(Quota::per_hour(5))?;
    /// let tenant = Limiter::token_bucket(Quota::per_hour(100))?;
    /// assert_eq!(All::new((&user, &tenant))?.charge(7), 14);
    /// assert_eq!((user.available(), tenant.available()), (0, 93)); // the user is 2 in debt
    /// # Ok(())
    /// # }
    /// ```
    pub fn charge(&self, n: u64) -> u64 {
        self.at(self.now()).charge(n)
    }

    /// Takes `costs[0]` permits from member 0, and so on, unconditionally: members may go into
    /// debt. Returns how many permits were recorded, over all members.
    ///
    /// ```
    /// use tollgate::compose::All;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let requests = Limiter::token_bucket(Quota::per_hour(60))?;
    /// let tokens = Limiter::token_bucket(Quota::per_hour(90_000))?;
    /// let model = All::new((&requests, &tokens))?;
    /// assert_eq!(model.charge_each([1, 100_000])?, 100_001);
    /// assert_eq!((requests.available(), tokens.available()), (59, 0)); // 10 000 in debt
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`AllDenied::CostsLength`] if there is not one cost for each member.
    pub fn charge_each(&self, costs: impl AsRef<[u64]>) -> Result<u64, AllDenied> {
        self.at(self.now()).charge_each(costs)
    }
}

impl<M: DebtMembers<C>, C> View<&All<M, C>> {
    /// Takes `n` permits of each member unconditionally, as [`All::charge`] does.
    pub fn charge(&self, n: u64) -> u64 {
        self.charge_to(|_| n)
    }

    /// Takes `costs[0]` permits from member 0, and so on, unconditionally, as [`All::charge_each`]
    /// does.
    ///
    /// # Errors
    ///
    /// [`AllDenied::CostsLength`] if there is not one cost for each member.
    pub fn charge_each(&self, costs: impl AsRef<[u64]>) -> Result<u64, AllDenied> {
        let costs = self.store.checked(costs.as_ref())?;
        Ok(self.charge_to(|member| cost_of(costs, member)))
    }

    fn charge_to(&self, cost: impl Cost) -> u64 {
        let (all, now) = (self.store, self.now);
        let charged = all.order.limits().filter_map(|member| {
            let n = all.order.sum(member, cost);
            all.members.visit(member, Charge { n, now })
        });
        charged.fold(0, u64::saturating_add)
    }
}
