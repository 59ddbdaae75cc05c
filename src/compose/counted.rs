//! Counted members, and counted compositions.

use core::borrow::Borrow;
use core::ops::Deref;
use core::time::Duration;

use super::all::All;
use super::denied::AllDenied;
use super::granted::AllGranted;
use super::held::Held;
use super::member::{Member, by_inner};
use super::members::{DebtMembers, Members, OneMember, SettleMembers, one_member};
use super::or_else::OrElse;
use super::verbs::asking_verbs;
use crate::clock::{Clock, Tick};
use crate::concurrency::limiter::Concurrency;
use crate::counted::{Counted, Counters, LimiterStats};
use crate::outcome::{Charged, Denied, Settled};
use crate::store::Place;

/// As a member, a counted limit counts a grant if all members granted, and a denial if the denial
/// names this member. It counts nothing if the denial names another member. A caller in a `Line`
/// counts once, however often it sleeps: when it is granted or denied.
impl<C, M: OneMember<C>, S: Borrow<Counters>> Member<C> for Counted<M, S> {
    by_inner!(structure self => self.limiter.limit());
    by_inner!(decisions self => self.limiter.limit());

    #[inline]
    fn give_back(&self, held: Held, now: Tick) -> u64 {
        let n = self.limiter.limit().give_back(held, now);
        self.counters().returned(n);
        n
    }

    #[inline]
    fn correct(&self, held: Held, actual: u64, now: Tick) -> Settled {
        let settled = self.limiter.limit().correct(held, actual, now);
        self.counters().returned(settled.returned);
        self.counters().charged(settled.charged);
        settled
    }

    #[inline]
    fn charge_to(&self, n: u64, now: Tick) -> Charged {
        let charged = self.limiter.limit().charge_to(n, now);
        self.counters().charged(charged.n());
        charged
    }

    fn counts(&self) -> bool {
        true
    }

    #[inline]
    fn count_granted(&self, held: &Held) {
        self.counters().granted(held.granted.n());
        self.limiter.limit().count_granted(held);
    }

    #[inline]
    fn count_denied(&self, n: u64) {
        self.counters().denied();
        self.limiter.limit().count_denied(n);
    }
}

one_member!([C, M: OneMember<C>, S: Borrow<Counters>] C, Counted<M, S>);

impl<C, M: OneMember<C> + SettleMembers<C>, S: Borrow<Counters>> SettleMembers<C>
    for Counted<M, S>
{
}

impl<C, M: OneMember<C> + DebtMembers<C>, S: Borrow<Counters>> DebtMembers<C> for Counted<M, S> {}

impl<A, B, S: Borrow<Counters>> Counted<OrElse<A, B>, S> {
    /// Returns what was counted so far.
    #[must_use]
    pub fn stats(&self) -> LimiterStats {
        self.counts()
    }
}

/// Counts the requests of a composition. `permits` is the sum over all members.
///
/// ```
/// use tollgate::compose::All;
/// use tollgate::{Counted, Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let requests = Limiter::token_bucket(Quota::per_hour(60))?;
/// let tokens = Limiter::token_bucket(Quota::per_hour(90_000))?;
/// let model = Counted::new(All::new((&requests, &tokens))?);
/// model.try_acquire_each([1, 800])?.settle([1, 650])?;
/// assert!(model.try_acquire_each([1, 100_000]).is_err());
/// let stats = model.stats();
/// assert_eq!((stats.granted, stats.permits, stats.denied), (1, 801, 1));
/// assert_eq!((stats.returned, stats.charged), (150, 0));
/// # Ok(())
/// # }
/// ```
impl<M: Members<C>, C, S: Borrow<Counters>> Counted<All<M, C>, S> {
    /// Returns what was counted so far.
    #[must_use]
    pub fn stats(&self) -> LimiterStats {
        self.counts()
    }

    #[inline]
    fn outcome<'a>(
        &'a self,
        outcome: Result<AllGranted<&'a All<M, C>, M, C>, AllDenied>,
    ) -> CountedOutcome<'a, M, C> {
        match outcome {
            Ok(granted) => {
                self.counters().granted(granted.n());
                Ok(self.part(granted))
            }
            Err(denied) => {
                if denied.denied().is_some() {
                    self.counters().denied();
                }
                Err(denied)
            }
        }
    }
}

/// The outcome of a request to a counted composition.
type CountedOutcome<'a, M, C> =
    Result<Counted<AllGranted<&'a All<M, C>, M, C>, &'a Counters>, AllDenied>;

impl<M: Members<C>, C: Clock, S: Borrow<Counters>> Counted<All<M, C>, S> {
    /// Takes one permit of each member.
    ///
    /// # Errors
    ///
    /// The same as for [`All::try_acquire`].
    #[inline]
    pub fn try_acquire(&self) -> CountedOutcome<'_, M, C> {
        self.try_acquire_n(1)
    }

    /// Takes `n` permits of each member.
    ///
    /// # Errors
    ///
    /// The same as for [`All::try_acquire_n`].
    #[inline]
    pub fn try_acquire_n(&self, n: u64) -> CountedOutcome<'_, M, C> {
        self.outcome(self.limiter.try_acquire_n(n))
    }

    /// Takes `costs[0]` permits from member 0, and so on.
    ///
    /// # Errors
    ///
    /// The same as for [`All::try_acquire_each`].
    #[inline]
    pub fn try_acquire_each(&self, costs: impl AsRef<[u64]>) -> CountedOutcome<'_, M, C> {
        self.outcome(self.limiter.try_acquire_each(costs))
    }
}

/// Implements verbs that count nothing.
macro_rules! uncounted {
    ($(
        $(#[$meta:meta])* fn $verb:ident($($argument:ident: $type:ty),*) -> $answer:ty;
    )*) => {
        impl<M: Members<C>, C: Clock, S: Borrow<Counters>> Counted<All<M, C>, S> {$(
            $(#[$meta])*
            pub fn $verb(&self $(, $argument: $type)*) -> $answer {
                self.limiter.$verb($($argument),*)
            }
        )*}
    };
}
asking_verbs!(uncounted);

impl<M: DebtMembers<C>, C: Clock, S: Borrow<Counters>> Counted<All<M, C>, S> {
    /// Takes `n` permits of each member unconditionally.
    pub fn charge(&self, n: u64) -> u64 {
        let n = self.limiter.charge(n);
        self.counters().charged(n);
        n
    }

    /// Takes `costs[0]` permits from member 0, and so on, unconditionally.
    ///
    /// # Errors
    ///
    /// The same as for [`All::charge_each`].
    pub fn charge_each(&self, costs: impl AsRef<[u64]>) -> Result<u64, AllDenied> {
        let n = self.limiter.charge_each(costs)?;
        self.counters().charged(n);
        Ok(n)
    }
}

/// A grant of a counted composition. [`limiter`](Counted::limiter) returns the [`AllGranted`].
impl<R, M, C, S> Counted<AllGranted<R, M, C>, S>
where
    R: Deref<Target = All<M, C>>,
    M: Members<C>,
    S: Borrow<Counters>,
{
    /// Leaves each [`Concurrency`](crate::Concurrency) among the members now.
    pub fn leave(&mut self) {
        self.limiter.leave();
    }
}

impl<R, M, C, S> Counted<AllGranted<R, M, C>, S>
where
    R: Deref<Target = All<M, C>>,
    M: SettleMembers<C>,
    C: Clock,
    S: Borrow<Counters>,
{
    /// Gives the permits back to all members, and counts them.
    pub fn undo(self) -> u64 {
        let n = self.limiter.undo();
        self.counters.borrow().returned(n);
        n
    }

    /// Corrects the estimates, and counts what came back and what was charged.
    ///
    /// # Errors
    ///
    /// The same as for [`AllGranted::settle`].
    pub fn settle(&mut self, costs: impl AsRef<[u64]>) -> Result<Settled, AllDenied> {
        let settled = self.limiter.settle(costs)?;
        self.counters.borrow().returned(settled.returned);
        self.counters.borrow().charged(settled.charged);
        Ok(settled)
    }
}
