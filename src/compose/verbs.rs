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
    pub fn check_n(&self, n: u64) -> Result<(), AllDenied> {
        self.check_n_at(n, self.now())
    }

    /// Returns what [`try_acquire_each`](Self::try_acquire_each) would answer. Takes nothing.
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
    /// The [`AllDenied`] that the request would get: its `retry_after` says how long until all
    /// members would grant.
    pub fn check_each(&self, costs: impl AsRef<[u64]>) -> Result<(), AllDenied> {
        self.check_each_at(costs, self.now())
    }

    /// Returns how many requests for one permit of each member would be granted now. Takes none.
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
    pub fn available(&self) -> u64 {
        self.available_at(self.now())
    }

    /// Returns how long until all members would grant `n` permits, if no other caller takes any.
    /// `None` if they never will, or if the wait is not known.
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
    pub fn time_until(&self, n: u64) -> Option<Duration> {
        self.time_until_at(n, self.now())
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

impl<M: Members<C>, C> All<M, C> {
    /// Takes `n` permits of each member at this tick.
    ///
    /// # Errors
    ///
    /// [`AllDenied`] if a member denies. In that case nothing is taken.
    #[inline(always)]
    pub fn try_acquire_n_at(
        &self,
        n: u64,
        now: Tick,
    ) -> Result<AllGranted<&Self, M, C>, AllDenied> {
        let grants = self.take(move |_| n, now, |now| now)?;
        Ok(AllGranted::new(self, grants))
    }

    /// Takes `costs[0]` permits from member 0 at this tick, and so on: see
    /// [`try_acquire_each`](Self::try_acquire_each).
    ///
    /// # Errors
    ///
    /// [`AllDenied`] if a member denies, or if there is not one cost for each member. In that case
    /// nothing is taken.
    #[inline]
    pub fn try_acquire_each_at(
        &self,
        costs: impl AsRef<[u64]>,
        now: Tick,
    ) -> Result<AllGranted<&Self, M, C>, AllDenied> {
        let grants = self.take_each(costs.as_ref(), now, |now| now)?;
        Ok(AllGranted::new(self, grants))
    }

    /// Returns what [`try_acquire_n_at`](Self::try_acquire_n_at) would answer. Takes nothing.
    ///
    /// # Errors
    ///
    /// The [`AllDenied`] that the request would get.
    pub fn check_n_at(&self, n: u64, now: Tick) -> Result<(), AllDenied> {
        self.look(0, |_| n, now)
    }

    /// Returns what [`try_acquire_each_at`](Self::try_acquire_each_at) would answer. Takes nothing.
    ///
    /// # Errors
    ///
    /// The [`AllDenied`] that the request would get.
    pub fn check_each_at(&self, costs: impl AsRef<[u64]>, now: Tick) -> Result<(), AllDenied> {
        let costs = self.checked(costs.as_ref())?;
        self.look(0, |member| cost_of(costs, member), now)
    }

    /// Returns how many requests for one permit of each member would be granted at this tick.
    pub fn available_at(&self, now: Tick) -> u64 {
        let available = self.order.limits().filter_map(|member| {
            let times = self.order.sum(member, |_| 1).max(1);
            Some(self.members.visit(member, Available(now))? / times)
        });
        available.min().unwrap_or(0)
    }

    /// Returns how long after this tick all members would grant `n` permits: see
    /// [`time_until`](Self::time_until).
    pub fn time_until_at(&self, n: u64, now: Tick) -> Option<Duration> {
        match self.check_n_at(n, now) {
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
        self.charge_at(n, self.now())
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
        self.charge_each_at(costs, self.now())
    }
}

impl<M: DebtMembers<C>, C> All<M, C> {
    /// Takes `n` permits of each member at this tick, unconditionally: see
    /// [`charge`](Self::charge).
    pub fn charge_at(&self, n: u64, now: Tick) -> u64 {
        self.charge_to(|_| n, now)
    }

    /// Takes `costs[0]` permits from member 0 at this tick, and so on, unconditionally: see
    /// [`charge_each`](Self::charge_each).
    ///
    /// # Errors
    ///
    /// [`AllDenied::CostsLength`] if there is not one cost for each member.
    pub fn charge_each_at(&self, costs: impl AsRef<[u64]>, now: Tick) -> Result<u64, AllDenied> {
        let costs = self.checked(costs.as_ref())?;
        Ok(self.charge_to(|member| cost_of(costs, member), now))
    }

    fn charge_to(&self, cost: impl Cost, now: Tick) -> u64 {
        let charged = self.order.limits().filter_map(|member| {
            let n = self.order.sum(member, cost);
            self.members.visit(member, Charge { n, now })
        });
        charged.fold(0, u64::saturating_add)
    }
}
