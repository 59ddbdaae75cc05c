//! The methods that wait.

use core::time::Duration;

use tollgate::Denied;
use tollgate::clock::{Clock, SleepClock, Timer};

use crate::Smooth;
use crate::curve::Curve;
use crate::reservation::SmoothReservation;

/// How long the clock may fail to follow the timer before that is a mismatch. This is long, since a
/// coarse clock may stand still for a while.
const MOST_IN_VAIN: Duration = Duration::from_secs(60);

impl<K: Curve, C: SleepClock> Smooth<K, C> {
    /// Takes one permit and waits for its turn.
    ///
    /// # Errors
    ///
    /// The same as for [`reserve`](Self::reserve).
    pub fn blocking_acquire(&self) -> Result<SmoothReservation, Denied> {
        self.blocking_acquire_n(1)
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
    /// use tollgate_smooth::SmoothBursty;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = SmoothBursty::new(1_000_000.0)?;
    /// limiter.blocking_acquire_n(100)?;
    /// let turn = limiter.blocking_acquire()?; // 100 microseconds later
    /// assert!(limiter.clock().now() >= turn.due());
    /// # Ok(())
    /// # }
    /// ```
    pub fn blocking_acquire_n(&self, n: u64) -> Result<SmoothReservation, Denied> {
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
    /// use tollgate_smooth::SmoothBursty;
    /// use tollgate::ManualClock;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = SmoothBursty::with_clock(10.0, ManualClock::new())?;
    /// let _ = limiter.reserve(10)?;
    /// let denied = limiter.blocking_acquire_timeout(1, Duration::from_millis(600)).unwrap_err();
    /// assert_eq!(denied.retry_after(), Some(Duration::from_millis(400)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn blocking_acquire_timeout(
        &self,
        n: u64,
        timeout: Duration,
    ) -> Result<SmoothReservation, Denied> {
        let turn = self.reserve_within_at(n, timeout, self.clock.now())?;
        self.clock.sleep_until(turn.due(), turn.at());
        Ok(turn)
    }
}

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
    /// use tollgate::wait::TokioTimer;
    /// use tollgate_smooth::SmoothBursty;
    ///
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
    /// ```
    pub async fn acquire_with_timer<T: Timer>(
        &self,
        timer: T,
        n: u64,
    ) -> Result<SmoothReservation, Denied> {
        let turn = self.reserve(n)?;
        // `in_vain` is the length of the latest sleeps in a row that the clock did not follow.
        let (mut now, mut in_vain) = (turn.at(), Duration::ZERO);
        while now < turn.due() {
            let wait = turn.due().saturating_since(now);
            timer.sleep(wait).await;
            let woke = self.clock.now();
            let is_followed = woke.saturating_since(now) >= wait / 2;
            let before = in_vain;
            in_vain = match is_followed {
                true => Duration::ZERO,
                false => before.saturating_add(wait),
            };
            if woke < turn.due() && before > Duration::ZERO && in_vain >= MOST_IN_VAIN {
                return Err(Denied::timer_mismatch(n));
            }
            now = woke;
        }
        Ok(turn)
    }
}
