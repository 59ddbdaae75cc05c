use core::time::Duration;
use std::sync::OnceLock;

use tokio::time::Instant;

use super::utc::{UtcClock, origin_of};
use super::{Clock, Tick};

/// Tokio's clock: in tests, a limiter on it follows tokio's paused time.
///
/// It is the system's monotonic clock unless a test has paused its runtime's time. Then it stands
/// still together with [`TokioTimer`](crate::wait::TokioTimer), and waiting takes no real time:
///
/// ```
/// use tollgate::clock::TokioClock;
/// use tollgate::wait::TokioTimer;
/// use tollgate::{Limiter, Quota, TokenBucket};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
/// # runtime.block_on(async {
/// // In a test with `#[tokio::test(start_paused = true)]`:
/// let limiter = Limiter::with_clock(TokenBucket::new(Quota::per_minute(1))?, TokioClock);
/// let start = tokio::time::Instant::now();
/// for _ in 0..3 {
///     limiter.with_timer(TokioTimer).acquire().await?;
/// }
/// assert_eq!(start.elapsed().as_secs(), 120);
/// # Ok(())
/// # })
/// # }
/// ```
///
/// Tick 0 is a day before the clock's first reading in the process. So the clock also advances in a
/// runtime whose time was paused before that reading, by up to a day. If a test has advanced the
/// time of a runtime, other runtimes read a different time, so use a limiter in one runtime only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TokioClock;

static ORIGIN: OnceLock<Instant> = OnceLock::new();

/// The paused time of a runtime may be this much older than the clock's first reading.
const BEFORE: Duration = Duration::from_secs(24 * 60 * 60);

impl Clock for TokioClock {
    fn now(&self) -> Tick {
        let now = Instant::now();
        let origin = ORIGIN.get_or_init(|| now.checked_sub(BEFORE).unwrap_or(now));
        let since = now.saturating_duration_since(*origin);
        Tick::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The time of day is read once in a process. While a runtime's time is paused, its days follow the
/// paused time.
impl UtcClock for TokioClock {
    fn unix_origin(&self) -> Duration {
        static UNIX_ORIGIN: OnceLock<Duration> = OnceLock::new();

        *UNIX_ORIGIN.get_or_init(|| origin_of(self))
    }
}
