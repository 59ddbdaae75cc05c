use core::time::Duration;

use tokio::time::Sleep;

use crate::clock::Timer;

/// Tokio's timer, which has a resolution of a millisecond and rounds up.
///
/// In tokio's paused time, use [`TokioClock`](crate::clock::TokioClock) for the limiter. The
/// [`SystemClock`](crate::clock::SystemClock) still runs in real time there. With the system clock,
/// a future that waits would return [`Denied::TimerMismatch`](crate::Denied::TimerMismatch), and a
/// stream or sink would wait in real time.
///
/// ```
/// use tollgate::wait::TokioTimer;
/// use tollgate::{Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
/// # runtime.block_on(async {
/// let limiter = Limiter::token_bucket(Quota::per_second(1000).burst(1))?;
/// for _ in 0..3 {
///     limiter.with_timer(TokioTimer).acquire().await?;
/// }
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TokioTimer;

impl Timer for TokioTimer {
    type Sleep = Sleep;

    fn sleep(&self, duration: Duration) -> Sleep {
        tokio::time::sleep(duration)
    }
}
