//! The methods that wait.

use core::time::Duration;

use super::Smooth;
use super::curve::Curve;
use super::reservation::SmoothReservation;
#[cfg(feature = "wait")]
use crate::clock::Clock;
use crate::clock::SleepClock;
use crate::outcome::Denied;
#[cfg(feature = "wait")]
use crate::wait::sleep_check::SleepCheck;

impl<K: Curve, C: SleepClock> Smooth<K, C> {
    /// Takes one permit and waits for its turn.
    ///
    /// # Errors
    ///
    /// The same as for [`reserve`](Self::reserve).
    pub fn acquire(&self) -> Result<SmoothReservation, Denied> {
        self.acquire_n(1)
    }

    /// Takes any number `n` of permits, and waits for the time that all earlier permits cost. The
    /// caller does not wait for its own permits.
    ///
    /// # Errors
    ///
    /// The same as for [`reserve`](Self::reserve).
    ///
    /// ```
    /// use tollgate::clock::Clock;
    /// use tollgate::smooth::SmoothBursty;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = SmoothBursty::new(1_000_000.0)?;
    /// limiter.acquire_n(100)?;
    /// let turn = limiter.acquire()?; // 100 microseconds later
    /// assert!(limiter.clock().now() >= turn.due());
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire_n(&self, n: u64) -> Result<SmoothReservation, Denied> {
        let turn = self.reserve(n)?;
        self.clock.sleep_until(turn.due(), turn.at());
        Ok(turn)
    }

    /// Takes any number `n` of permits if their turn comes within `timeout`, and waits for that
    /// turn. With a timeout of zero it never waits.
    ///
    /// # Errors
    ///
    /// Returns an error at once: [`Denied::Later`] if the turn comes later than `timeout`, with the
    /// time after which the same call would succeed; [`Denied::Stuck`] as for
    /// [`reserve`](Self::reserve). Nothing is taken then.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::smooth::SmoothBursty;
    /// use tollgate::ManualClock;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = SmoothBursty::with_clock(10.0, ManualClock::new())?;
    /// let _ = limiter.reserve(10)?;
    /// let denied = limiter.acquire_timeout(1, Duration::from_millis(600)).unwrap_err();
    /// assert_eq!(denied.retry_after(), Some(Duration::from_millis(400)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire_timeout(&self, n: u64, timeout: Duration) -> Result<SmoothReservation, Denied> {
        let turn = self.acquire_timeout_at(n, timeout, self.clock.now())?;
        self.clock.sleep_until(turn.due(), turn.at());
        Ok(turn)
    }
}

#[cfg(feature = "wait")]
impl<K: Curve, C: Clock> Smooth<K, C> {
    /// Takes `n` permits and waits for their turn in a future, on any runtime that can sleep. The
    /// first poll takes the permits. A future that is dropped while it waits loses its turn; the
    /// turns of other callers stay as they are.
    ///
    /// # Errors
    ///
    /// The same as for [`reserve`](Self::reserve), and [`Denied::TimerMismatch`] if the timer does
    /// not follow the limiter's clock.
    ///
    /// ```
    /// # #[cfg(feature = "tokio")]
    /// use tollgate::wait::TokioTimer;
    /// use tollgate::smooth::SmoothBursty;
    ///
    /// # #[cfg(feature = "tokio")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    /// # runtime.block_on(async {
    /// let limiter = SmoothBursty::new(1_000.0)?;
    /// for _ in 0..3 {
    ///     limiter.acquire_with_timer(TokioTimer, 1).await?;
    /// }
    /// # Ok(())
    /// # })
    /// # }
    /// # #[cfg(not(feature = "tokio"))]
    /// # fn main() {}
    /// ```
    pub async fn acquire_with_timer<T: crate::clock::Timer>(
        &self,
        timer: T,
        n: u64,
    ) -> Result<SmoothReservation, Denied> {
        let turn = self.reserve(n)?;
        let (mut now, mut check) = (turn.at(), SleepCheck::new());
        while now < turn.due() {
            let wait = turn.due().saturating_since(now);
            check.begins(now, wait);
            timer.sleep(wait).await;
            now = self.clock.now();
            if now < turn.due() && check.finds_mismatch(now) {
                return Err(Denied::timer_mismatch(n));
            }
        }
        Ok(turn)
    }
}
