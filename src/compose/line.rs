//! Waiting for a composition.

use core::future::{Future, Ready, ready};
use core::ops::Deref;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;

use super::all::All;
use super::denied::AllDenied;
use super::granted::AllGranted;
use super::member::Member;
use super::members::{Members, Visitor};
use super::protocol::cost_of;
use super::turn::take_when_granted;
use crate::clock::{Clock, SleepClock, Tick, Timer};
use crate::concurrency::limiter::Concurrency;
use crate::sync::{Sleeper, inject_fault};

/// A line of callers that wait for a composition, in threads and in futures.
///
/// ```
/// use tollgate::compose::{All, Line};
/// use tollgate::{Concurrency, Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rate = Limiter::token_bucket(Quota::per_second(1000).burst(1))?;
/// let inside = Concurrency::new(2)?;
/// let limits = All::new((&rate, &inside))?;
///
/// let line = Line::new(&limits);
/// for _ in 0..3 {
///     let granted = line.acquire()?; // the second and the third wait for a millisecond
///     // ... work, and leave `inside` at the end of the scope
///     drop(granted);
/// }
/// # Ok(())
/// # }
/// ```
///
/// `R` is the reference to the composition: `&All`, or `Arc<All>` for grants that outlive the
/// caller's scope.
///
/// # First come, first served
///
/// Only the first caller in line looks at the members. It sleeps until all of them would grant,
/// takes from all or none, and wakes the next caller. `try_acquire` of the line passes no caller
/// that waits. Callers of the composition itself, or of a member, do not stand in line and may be
/// faster than the first in line. It then sleeps again.
///
/// If no such caller comes, the first in line sleeps at most once for all rates, and once for each
/// [`Concurrency`] that is busy. In the line of a `Concurrency` it stands like any other caller. It
/// holds nothing while it sleeps. A sleep does not end early if a member gets permits before they
/// were due, because a caller gave some back or raised the quota.
///
/// A caller that gives up, such as a future that is dropped, leaves the line and has taken nothing.
///
/// # Cost
///
/// For a request that does not wait, the line adds one load: no lock, and no allocation.
#[derive(Debug)]
pub struct Line<R> {
    all: R,
    /// The first in line is inside.
    turns: Concurrency,
}

impl<R> Line<R> {
    /// Creates an empty line before a composition.
    pub fn new(all: R) -> Self {
        let turns = Concurrency::of(1);
        Self { all, turns }
    }

    /// Returns the reference to the composition.
    pub const fn inner(&self) -> &R {
        &self.all
    }

    /// Returns how many callers wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let first = usize::from(self.turns.inside() > 0);
        first + self.turns.waiting()
    }

    /// Returns a view of the line whose callers wait in futures, with this timer.
    ///
    /// ```
    /// use tollgate::compose::{All, Line};
    /// # #[cfg(feature = "tokio")]
    /// use tollgate::wait::TokioTimer;
    /// use tollgate::{Limiter, Quota};
    ///
    /// # #[cfg(feature = "tokio")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    /// # runtime.block_on(async {
    /// let requests = Limiter::token_bucket(Quota::per_second(1000).burst(1))?;
    /// let tokens = Limiter::token_bucket(Quota::per_second(1_000_000))?;
    /// let limits = All::new((&requests, &tokens))?;
    /// let line = Line::new(&limits);
    /// for _ in 0..3 {
    ///     let mut granted = line.with_timer(TokioTimer).acquire_each([1, 800]).await?;
    ///     granted.settle([1, 650])?;
    /// }
    /// # Ok(())
    /// # })
    /// # }
    /// # #[cfg(not(feature = "tokio"))]
    /// # fn main() {}
    /// ```
    #[cfg(feature = "wait")]
    pub const fn with_timer<T: Timer>(&self, timer: T) -> AsyncLine<'_, R, T> {
        AsyncLine { line: self, timer }
    }
}

impl<R: Deref<Target = All<M, C>> + Clone, M: Members<C>, C: Clock> Line<R> {
    /// Takes one permit of each member, unless a caller waits.
    ///
    /// # Errors
    ///
    /// [`AllDenied`] if a member denies; [`AllDenied::Line`] if none does, but a caller waits. In
    /// both cases nothing is taken.
    ///
    /// ```
    /// use std::future::Future;
    /// use std::pin::pin;
    /// use std::task::{Context, Waker};
    /// use std::time::Duration;
    /// use tollgate::compose::{All, AllDenied, Line};
    /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
    ///
    /// # #[cfg(feature = "wait")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::new(Quota::per_second(1).burst(2))?;
    /// let limits = All::new([Limiter::with_clock(bucket, clock.clone())])?;
    /// let line = Line::new(&limits);
    /// line.try_acquire()?;
    ///
    /// let on = line.with_timer(&clock);
    /// let mut large = pin!(on.acquire_n(2));
    /// assert!(large.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    /// // There is a permit, but a caller waits for two.
    /// assert!(matches!(line.try_acquire(), Err(AllDenied::Line)));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "wait"))]
    /// # fn main() {}
    /// ```
    #[inline]
    pub fn try_acquire(&self) -> Result<AllGranted<R, M, C>, AllDenied> {
        self.try_acquire_n(1)
    }

    /// Takes `n` permits of each member, unless a caller waits.
    ///
    /// # Errors
    ///
    /// The same as for [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn try_acquire_n(&self, n: u64) -> Result<AllGranted<R, M, C>, AllDenied> {
        self.take(&|_| n)
    }

    /// Takes the permits of each member that its cost says, unless a caller waits.
    ///
    /// # Errors
    ///
    /// The same as for [`try_acquire`](Self::try_acquire), and [`AllDenied::CostsLength`] if there
    /// is not one cost for each member.
    #[inline]
    pub fn try_acquire_each(
        &self,
        costs: impl AsRef<[u64]>,
    ) -> Result<AllGranted<R, M, C>, AllDenied> {
        let costs = self.all.checked(costs.as_ref())?;
        self.take(&|member| cost_of(costs, member))
    }

    #[inline]
    fn take(&self, cost: &impl Fn(usize) -> u64) -> Result<AllGranted<R, M, C>, AllDenied> {
        let now = self.all.now();
        let is_empty = self.turns.check_enter(1).is_ok();
        if !is_empty && !inject_fault!(PassesTheLine) {
            self.all.look(0, cost, now)?;
            return Err(AllDenied::Line);
        }
        let grants = self.all.take(cost, now, |_| self.all.now())?;
        Ok(AllGranted::new(self.all.clone(), grants))
    }

    /// Stands in line, and takes from all members when they grant.
    async fn wait(
        &self,
        cost: &impl Fn(usize) -> u64,
        timer: &impl Timer,
    ) -> Result<AllGranted<R, M, C>, AllDenied> {
        // Dropping the guard passes the turn on. (A weight of 1 is never refused.)
        let turn = self.turns.enter().await.ok();
        let taken = take_when_granted(&*self.all, cost, timer).await;
        let taken = taken.map(|grants| AllGranted::new(self.all.clone(), grants));
        match inject_fault!(PassesNoTurn) {
            true => core::mem::forget(turn),
            false => drop(turn),
        }
        taken
    }
}

/// Waiting in threads.
impl<R: Deref<Target = All<M, C>> + Clone, M: Members<C>, C: SleepClock> Line<R> {
    /// Takes one permit of each member. Blocks this thread until it has its turn and all members
    /// grant.
    ///
    /// # Errors
    ///
    /// [`AllDenied`] if a member denies and waiting does not help, or if the wait is not known and
    /// the member is no [`Concurrency`].
    pub fn acquire(&self) -> Result<AllGranted<R, M, C>, AllDenied> {
        self.acquire_n(1)
    }

    /// Takes `n` permits of each member. Blocks this thread until it has its turn and all members
    /// grant.
    ///
    /// # Errors
    ///
    /// The same as for [`acquire`](Self::acquire).
    ///
    /// ```
    /// use tollgate::compose::{All, Line};
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limits = All::new([Limiter::token_bucket(Quota::per_second(10))?])?;
    /// let denied = Line::new(&limits).acquire_n(11).unwrap_err();
    /// assert!(denied.is_permanent());
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire_n(&self, n: u64) -> Result<AllGranted<R, M, C>, AllDenied> {
        self.take_or_block(&|_| n)
    }

    /// Takes the permits of each member that its cost says. Blocks this thread until it has its
    /// turn and all members grant.
    ///
    /// # Errors
    ///
    /// The same as for [`acquire`](Self::acquire), and [`AllDenied::CostsLength`] if there is not
    /// one cost for each member.
    pub fn acquire_each(&self, costs: impl AsRef<[u64]>) -> Result<AllGranted<R, M, C>, AllDenied> {
        let costs = self.all.checked(costs.as_ref())?;
        self.take_or_block(&|member| cost_of(costs, member))
    }

    fn take_or_block(
        &self,
        cost: &impl Fn(usize) -> u64,
    ) -> Result<AllGranted<R, M, C>, AllDenied> {
        match self.take(cost) {
            Err(denied) if !denied.is_permanent() => {
                block_on(self.wait(cost, &ThreadTimer(&*self.all)))
            }
            taken => taken,
        }
    }
}

/// Runs a future in this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    let sleeper = Sleeper::here();
    let waker = Waker::from(Arc::clone(&sleeper));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return done;
        }
        sleeper.sleep();
    }
}

/// A timer that blocks this thread on the members' clock.
struct ThreadTimer<'a, A>(&'a A);

impl<M: Members<C>, C: SleepClock> Timer for ThreadTimer<'_, All<M, C>> {
    type Sleep = Ready<()>;

    fn sleep(&self, duration: Duration) -> Ready<()> {
        let now = self.0.now();
        let due = now.saturating_add(duration);
        let members = 0..self.0.members();
        // The first member that has a clock sleeps.
        let mut slept = members.filter_map(|member| {
            let sleep = SleepUntil { due, now };
            self.0.members.visit(member, sleep).flatten()
        });
        _ = slept.next();
        ready(())
    }
}

/// Sleeps on a member's clock.
struct SleepUntil {
    due: Tick,
    now: Tick,
}

impl<C: SleepClock> Visitor<C> for SleepUntil {
    type Output = Option<Tick>;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> Option<Tick> {
        let clock = member.clock()?;
        Some(clock.sleep_until(self.due, self.now))
    }
}

/// A [`Line`] whose callers wait in futures, on any runtime. [`Line::with_timer`] returns it.
///
/// A future stands in line from its first poll until it ends or is dropped.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::compose::{All, AllDenied, Line};
/// use tollgate::clock::{SystemClock, Timer};
/// use tollgate::{Concurrency, Limiter, TokenBucket};
///
/// type Limits = All<(Limiter<TokenBucket>, Concurrency), SystemClock>;
///
/// async fn upload(line: Arc<Line<Arc<Limits>>>, timer: impl Timer) -> Result<(), AllDenied> {
///     let granted = line.with_timer(timer).acquire().await?;
///     // ... upload, and leave
///     drop(granted);
///     Ok(())
/// }
/// ```
#[cfg(feature = "wait")]
#[derive(Debug, Clone, Copy)]
pub struct AsyncLine<'l, R, T> {
    line: &'l Line<R>,
    timer: T,
}

#[cfg(feature = "wait")]
impl<R: Deref<Target = All<M, C>> + Clone, M: Members<C>, C: Clock, T: Timer> AsyncLine<'_, R, T> {
    /// Takes one permit of each member, when the caller has its turn and all members grant.
    ///
    /// # Errors
    ///
    /// [`AllDenied`] if a member denies and waiting does not help, if the wait is not known and the
    /// member is no [`Concurrency`], or if the timer does not follow the members' clock.
    pub async fn acquire(&self) -> Result<AllGranted<R, M, C>, AllDenied> {
        self.acquire_n(1).await
    }

    /// Takes `n` permits of each member, when the caller has its turn and all members grant.
    ///
    /// # Errors
    ///
    /// The same as for [`acquire`](Self::acquire).
    pub async fn acquire_n(&self, n: u64) -> Result<AllGranted<R, M, C>, AllDenied> {
        self.take_or_wait(&|_| n).await
    }

    /// Takes the permits of each member that its cost says, when the caller has its turn and all
    /// members grant.
    ///
    /// # Errors
    ///
    /// The same as for [`acquire`](Self::acquire), and [`AllDenied::CostsLength`] if there is not
    /// one cost for each member.
    pub async fn acquire_each(
        &self,
        costs: impl AsRef<[u64]>,
    ) -> Result<AllGranted<R, M, C>, AllDenied> {
        let costs = self.line.all.checked(costs.as_ref())?;
        self.take_or_wait(&|member| cost_of(costs, member)).await
    }

    async fn take_or_wait(
        &self,
        cost: &impl Fn(usize) -> u64,
    ) -> Result<AllGranted<R, M, C>, AllDenied> {
        match self.line.take(cost) {
            Err(denied) if !denied.is_permanent() => self.line.wait(cost, &self.timer).await,
            taken => taken,
        }
    }
}
