//! Waiting for a composition in threads.

use core::future::{Future, Ready, ready};
use core::ops::Deref;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;

use super::all::All;
use super::denied::AllDenied;
use super::granted::AllGranted;
use super::line::{Line, may_end_within};
use super::member::Member;
use super::members::{Members, Visitor};
use super::protocol::cost_of;
use crate::clock::{SleepClock, Tick, Timer};
use crate::sync::Sleeper;

/// Waiting in threads.
impl<R: Deref<Target = All<M, C>> + Clone, M: Members<C>, C: SleepClock> Line<R> {
    /// Takes one permit of each member. Blocks this thread until it has its turn and all members
    /// grant.
    ///
    /// # Errors
    ///
    /// [`AllDenied`] if a member will never grant, or if it does not say how long to wait. A busy
    /// [`Concurrency`](crate::Concurrency) is waited for.
    pub fn blocking_acquire(&self) -> Result<AllGranted<R, M, C>, AllDenied> {
        self.blocking_acquire_n(1)
    }

    /// Takes `n` permits of each member. Blocks this thread until it has its turn and all members
    /// grant.
    ///
    /// # Errors
    ///
    /// The same as for [`blocking_acquire`](Self::blocking_acquire).
    ///
    /// ```
    /// use tollgate::compose::{All, Line};
    /// use tollgate::{Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limits = All::new([Limiter::token_bucket(Quota::per_second(10))?])?;
    /// let denied = Line::new(&limits).blocking_acquire_n(11).unwrap_err();
    /// assert!(denied.is_permanent());
    /// # Ok(())
    /// # }
    /// ```
    pub fn blocking_acquire_n(&self, n: u64) -> Result<AllGranted<R, M, C>, AllDenied> {
        self.blocking_acquire_timeout(n, Duration::MAX)
    }

    /// Takes `n` permits of each member, blocking this thread for at most `timeout` on the members'
    /// clock. If a member will deny for longer, takes nothing and returns at once. With a timeout
    /// of zero it never blocks.
    ///
    /// While it waits for its turn or for a busy [`Concurrency`](crate::Concurrency), it sleeps by
    /// the system's time: a `ManualClock` that is moved does not wake it.
    ///
    /// # Errors
    ///
    /// The same as for [`blocking_acquire`](Self::blocking_acquire). After the timeout it is the
    /// denial that
    /// [`try_acquire_n`](Self::try_acquire_n) would return, such as [`AllDenied::Line`] or
    /// [`Denied::Busy`](crate::Denied::Busy) of a member. In each case nothing is taken.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::compose::{All, Line};
    /// use tollgate::{Concurrency, Limiter, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rate = Limiter::token_bucket(Quota::per_hour(2))?;
    /// let limits = All::new((&rate, Concurrency::new(1)?))?;
    /// let line = Line::new(&limits);
    /// let granted = line.blocking_acquire_timeout(1, Duration::ZERO)?;
    /// let denied = line.blocking_acquire_timeout(1, Duration::from_millis(1)).unwrap_err();
    /// assert_eq!((denied.member(), denied.retry_after()), (Some(1), None)); // busy
    ///
    /// drop(granted);
    /// drop(line.blocking_acquire()?);
    /// let denied = line.blocking_acquire_timeout(1, Duration::from_secs(60)).unwrap_err();
    /// assert!(denied.retry_after().is_some_and(|wait| wait > Duration::from_secs(60)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn blocking_acquire_timeout(
        &self,
        n: u64,
        timeout: Duration,
    ) -> Result<AllGranted<R, M, C>, AllDenied> {
        self.take_or_block(&|_| n, timeout)
    }

    /// Takes `costs[0]` permits from member 0, and so on. Blocks this thread until it has its turn
    /// and all members grant.
    ///
    /// # Errors
    ///
    /// The same as for [`blocking_acquire`](Self::blocking_acquire), and [`AllDenied::CostsLength`]
    /// if there is not one cost for each member.
    pub fn blocking_acquire_each(
        &self,
        costs: impl AsRef<[u64]>,
    ) -> Result<AllGranted<R, M, C>, AllDenied> {
        self.blocking_acquire_each_timeout(costs, Duration::MAX)
    }

    /// Takes `costs[0]` permits from member 0, and so on, blocking this thread for at most
    /// `timeout`: see [`blocking_acquire_timeout`](Self::blocking_acquire_timeout).
    ///
    /// # Errors
    ///
    /// The same as for [`blocking_acquire_timeout`](Self::blocking_acquire_timeout), and
    /// [`AllDenied::CostsLength`] if there is not one cost for each member.
    pub fn blocking_acquire_each_timeout(
        &self,
        costs: impl AsRef<[u64]>,
        timeout: Duration,
    ) -> Result<AllGranted<R, M, C>, AllDenied> {
        let costs = self.all.checked(costs.as_ref())?;
        self.take_or_block(&|member| cost_of(costs, member), timeout)
    }

    fn take_or_block(
        &self,
        cost: &impl Fn(usize) -> u64,
        timeout: Duration,
    ) -> Result<AllGranted<R, M, C>, AllDenied> {
        match self.take(cost) {
            Err(denied) if may_end_within(&denied, timeout) => {}
            taken => return self.all.counted(taken),
        }
        let latest = self.all.now().saturating_add(timeout);
        let timer = ThreadTimer(&*self.all);
        let left = || (latest < Tick::MAX).then(|| latest.saturating_since(self.all.now()));
        match block_on(self.wait(cost, &timer, latest), left) {
            Some(taken) => taken,
            // The caller has left the line.
            None => self.all.counted(self.take(cost)),
        }
    }
}

/// Runs a future in this thread until it ends. Drops it and returns `None` if no time is left.
/// `left` returns `None` if the time is not limited.
fn block_on<F: Future>(future: F, left: impl Fn() -> Option<Duration>) -> Option<F::Output> {
    let sleeper = Sleeper::here();
    let waker = Waker::from(Arc::clone(&sleeper));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(done);
        }
        match left() {
            None => sleeper.sleep(),
            Some(Duration::ZERO) => return None,
            Some(left) => sleeper.sleep_at_most(left),
        }
    }
}

/// A timer that blocks this thread on the members' clock.
struct ThreadTimer<'a, A>(&'a A);

impl<M: Members<C>, C: SleepClock> Timer for ThreadTimer<'_, All<M, C>> {
    type Sleep = Ready<()>;

    fn sleep(&self, duration: Duration) -> Ready<()> {
        let now = self.0.now();
        let due = now.saturating_add(duration);
        let sleep = || SleepUntil { due, now };
        // The first member that has a clock sleeps.
        _ = (0..self.0.members()).find_map(|member| self.0.members.visit(member, sleep())?);
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
