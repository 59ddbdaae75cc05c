//! Waiting for a composition.

#[cfg(feature = "wait")]
use core::future::{Future, poll_fn};
use core::ops::Deref;
#[cfg(feature = "wait")]
use core::pin::pin;
#[cfg(feature = "wait")]
use core::task::Poll;
use core::time::Duration;

use super::all::All;
use super::denied::AllDenied;
use super::granted::AllGranted;
use super::members::Members;
use super::protocol::cost_of;
#[cfg(feature = "wait")]
use super::turn::sleep_until;
use super::turn::take_when_granted;
use super::waiting_permits::{PlaceInLine, WaitingPermits};
use crate::clock::{Clock, Tick, Timer};
use crate::concurrency::limiter::Concurrency;
use crate::metrics::{Metric, Metrics, Value};
use crate::sync::inject_fault;

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
///     let granted = line.blocking_acquire()?; // the second and the third wait for a millisecond
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
/// The first caller in line sleeps until all members would grant, takes from all or none, and wakes
/// the next caller. It holds no permits while it sleeps. While callers wait, `try_acquire` of the
/// line is denied, and a request for 0 permits waits for its turn too.
///
/// Calls to the composition itself, or to a member, bypass the line. If such a call takes the
/// permits, the first in line sleeps again. Otherwise it sleeps at most once for all rates, and
/// once for each busy [`Concurrency`], in whose queue it waits like any other caller. Permits that
/// are given back, or a raised quota, do not wake it early.
///
/// It does not wait for a `Concurrency` whose own queue is
/// [full](Concurrency::max_waiting_permits), for a busy one inside an [`OrElse`](super::OrElse), or
/// for a busy key of a `KeyedConcurrency`: it returns their denial.
///
/// A caller that gives up leaves the line and has taken nothing. A future gives up when it is
/// dropped, and one with a timeout does after a time.
///
/// # Instead of a line
///
/// To be denied at once, use [`All::try_acquire`]. If every member is a token bucket or a GCRA,
/// [`All::reserve`] takes the permits in advance and says when they are due. To wait for a single
/// limiter, use its own `blocking_acquire`: it needs no line.
///
/// # Cost
///
/// For a request that does not wait, the line adds one load: no lock, and no allocation.
#[derive(Debug)]
pub struct Line<R> {
    pub(super) all: R,
    /// A `Concurrency` of 1: the first in line is inside, and the others wait for it.
    turns: Concurrency,
    /// The permits that all of them wait for.
    permits: WaitingPermits,
}

impl<R> Line<R> {
    /// Creates an empty line before a composition.
    #[must_use]
    pub fn new(all: R) -> Self {
        Self {
            all,
            turns: Concurrency::of(1),
            permits: WaitingPermits::bounded(u64::MAX),
        }
    }

    /// Returns the reference to the composition.
    pub const fn inner(&self) -> &R {
        &self.all
    }

    /// Bounds the permits that callers wait for. A request that cannot be granted at once and would
    /// raise their sum above `permits` is denied at once, with [`AllDenied::LineFull`]. The default
    /// is [`u64::MAX`].
    ///
    /// A request waits for the largest of its costs: for `n` permits after `blocking_acquire_n(n)`.
    /// All of them count from when the caller stands in line until it is granted, denied or gives
    /// up, even if some are available before. A bound of 0 lets no request wait, unless it is for
    /// no permits.
    ///
    /// For a line before a single limiter, compose that limiter alone.
    ///
    /// ```
    /// use std::future::Future;
    /// use std::pin::pin;
    /// use std::task::{Context, Waker};
    /// use tollgate::compose::{All, AllDenied, Line};
    /// use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
    ///
    /// # #[cfg(feature = "wait")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::new(Quota::per_second(1).burst(4))?;
    /// let limit = All::new(Limiter::with_clock(bucket, clock.clone()))?;
    /// let line = Line::new(&limit).max_waiting_permits(3);
    /// line.try_acquire_n(4)?;
    ///
    /// let on = line.with_timer(&clock);
    /// let mut first = Box::pin(on.acquire_n(2));
    /// assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    /// assert!(matches!(line.blocking_acquire_n(2), Err(AllDenied::LineFull { .. }))); // at once
    /// assert_eq!(line.waiting_permits(), 2);
    /// drop(first);
    /// assert_eq!(line.waiting_permits(), 0);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "wait"))]
    /// # fn main() {}
    /// ```
    #[must_use]
    pub fn max_waiting_permits(mut self, permits: u64) -> Self {
        self.permits = WaitingPermits::bounded(permits);
        self
    }

    /// Returns how many permits the callers in line wait for: see
    /// [`max_waiting_permits`](Self::max_waiting_permits).
    #[must_use]
    pub fn waiting_permits(&self) -> u64 {
        self.permits.sum()
    }

    /// Returns how many callers wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        usize::from(self.turns.inside() > 0) + self.turns.waiting()
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
    /// each case nothing is taken.
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
        self.all.counted(self.take(&|_| n))
    }

    /// Takes `costs[0]` permits from member 0, and so on, unless a caller waits.
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
        let taken = self.take(&|member| cost_of(costs, member));
        self.all.counted(taken)
    }

    /// Takes from all members unless a caller waits. No member counts a denial: the caller may
    /// wait, and ask again.
    #[inline]
    pub(super) fn take(
        &self,
        cost: &impl Fn(usize) -> u64,
    ) -> Result<AllGranted<R, M, C>, AllDenied> {
        let now = self.all.now();
        let is_empty = self.turns.check_enter(1).is_ok();
        let may_pass = is_empty || inject_fault!(PassesTheLine); // FAULT
        if !may_pass {
            self.all.look(cost, now)?;
            return Err(AllDenied::Line);
        }
        let grants = self.all.take_uncounted(cost, now, |_| self.all.now())?;
        Ok(AllGranted::new(self.all.clone(), grants))
    }

    /// Stands in line unless it is full, and takes from all members when they grant. Does not sleep
    /// past `latest`.
    pub(super) async fn wait(
        &self,
        cost: &impl Fn(usize) -> u64,
        timer: &impl Timer,
        latest: Tick,
    ) -> Result<AllGranted<R, M, C>, AllDenied> {
        let costs = (0..self.all.members()).map(cost);
        let permits = self.permits.add(costs.max().unwrap_or(0))?;
        let place = PlaceInLine::first(&self.turns, permits).await;
        let taken = take_when_granted(place, &*self.all, cost, timer, latest).await;
        let grants = self.all.counted(taken)?;
        Ok(AllGranted::new(self.all.clone(), grants))
    }
}

impl<R> Metrics for Line<R> {
    fn value(&self, metric: Metric) -> Option<Value> {
        Some(match metric {
            Metric::Waiting => (self.waiting() as u64).into(),
            Metric::WaitingPermits => self.waiting_permits().into(),
            _ => return None,
        })
    }
}

/// Returns whether a denied caller may be granted if it waits for at most this long.
pub(super) fn may_end_within(denied: &AllDenied, timeout: Duration) -> bool {
    let is_soon = denied.retry_after().is_none_or(|wait| wait <= timeout);
    is_soon && !denied.is_permanent() && !timeout.is_zero()
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
    /// Takes one permit of each member. Waits until the caller has its turn and all members grant.
    ///
    /// # Errors
    ///
    /// [`AllDenied`] if a member will never grant, if it does not say how long to wait, or if the
    /// timer does not follow the members' clock. A busy [`Concurrency`] is waited for.
    pub async fn acquire(&self) -> Result<AllGranted<R, M, C>, AllDenied> {
        self.acquire_n(1).await
    }

    /// Takes `n` permits of each member. Waits until the caller has its turn and all members grant.
    ///
    /// # Errors
    ///
    /// The same as for [`acquire`](Self::acquire).
    pub async fn acquire_n(&self, n: u64) -> Result<AllGranted<R, M, C>, AllDenied> {
        self.acquire_timeout(n, Duration::MAX).await
    }

    /// Takes `n` permits of each member, waiting for at most `timeout`. If a member will deny for
    /// longer, takes nothing and returns at once.
    ///
    /// # Errors
    ///
    /// The same as for [`acquire`](Self::acquire). After the timeout it is the denial that
    /// [`Line::try_acquire_n`] would return. In each case nothing is taken.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::compose::{All, AllDenied, Line};
    /// # #[cfg(feature = "tokio")]
    /// use tollgate::wait::TokioTimer;
    /// use tollgate::{Concurrency, Limiter, Quota};
    ///
    /// # #[cfg(feature = "tokio")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    /// # runtime.block_on(async {
    /// let rate = Limiter::token_bucket(Quota::per_second(1000))?;
    /// let limits = All::new((&rate, Concurrency::new(1)?))?;
    /// let line = Line::new(&limits);
    /// let uploads = line.with_timer(TokioTimer);
    /// let granted = uploads.acquire().await?;
    /// let denied = uploads.acquire_timeout(1, Duration::from_millis(1)).await.unwrap_err();
    /// assert_eq!((denied.member(), denied.is_permanent()), (Some(1), false)); // busy
    /// # drop(granted);
    /// # Ok(())
    /// # })
    /// # }
    /// # #[cfg(not(feature = "tokio"))]
    /// # fn main() {}
    /// ```
    pub async fn acquire_timeout(
        &self,
        n: u64,
        timeout: Duration,
    ) -> Result<AllGranted<R, M, C>, AllDenied> {
        self.take_or_wait(&|_| n, timeout).await
    }

    /// Takes `costs[0]` permits from member 0, and so on. Waits until the caller has its turn and
    /// all members grant.
    ///
    /// # Errors
    ///
    /// The same as for [`acquire`](Self::acquire), and [`AllDenied::CostsLength`] if there is not
    /// one cost for each member.
    pub async fn acquire_each(
        &self,
        costs: impl AsRef<[u64]>,
    ) -> Result<AllGranted<R, M, C>, AllDenied> {
        self.acquire_each_timeout(costs, Duration::MAX).await
    }

    /// Takes `costs[0]` permits from member 0, and so on, waiting for at most `timeout`: see
    /// [`acquire_timeout`](Self::acquire_timeout).
    ///
    /// # Errors
    ///
    /// The same as for [`acquire_timeout`](Self::acquire_timeout), and [`AllDenied::CostsLength`]
    /// if there is not one cost for each member.
    pub async fn acquire_each_timeout(
        &self,
        costs: impl AsRef<[u64]>,
        timeout: Duration,
    ) -> Result<AllGranted<R, M, C>, AllDenied> {
        let costs = self.line.all.checked(costs.as_ref())?;
        let cost = |member| cost_of(costs, member);
        self.take_or_wait(&cost, timeout).await
    }

    async fn take_or_wait(
        &self,
        cost: &impl Fn(usize) -> u64,
        timeout: Duration,
    ) -> Result<AllGranted<R, M, C>, AllDenied> {
        match self.line.take(cost) {
            Err(denied) if may_end_within(&denied, timeout) => {}
            taken => return self.line.all.counted(taken),
        }
        let latest = self.line.all.now().saturating_add(timeout);
        let wait = self.line.wait(cost, &self.timer, latest);
        if latest == Tick::MAX {
            return wait.await;
        }
        let sleep = sleep_until(&self.timer, || self.line.all.now(), latest);
        match before(sleep, wait).await {
            Some(taken) => taken,
            // The caller has left the line.
            None => self.line.all.counted(self.line.take(cost)),
        }
    }
}

/// Runs a future until it ends. Drops it and returns `None` if the sleep ends first.
#[cfg(feature = "wait")]
async fn before<F: Future>(sleep: impl Future<Output = ()>, future: F) -> Option<F::Output> {
    let (mut sleep, mut future) = (pin!(sleep), pin!(future));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => sleep.as_mut().poll(context).map(|()| None),
    })
    .await
}
