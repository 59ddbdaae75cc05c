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
/// Tick 0 is a day before the clock's first reading in the process (or the system's earliest time,
/// if that is later). So the clock also advances in a runtime whose time was paused before that
/// reading, by up to a day. If a test has advanced the time of a runtime, other runtimes read a
/// different time, so use a limiter in one runtime only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TokioClock;

static ORIGIN: OnceLock<Instant> = OnceLock::new();

/// The paused time of a runtime may be this much older than the clock's first reading.
const BEFORE: Duration = Duration::from_secs(24 * 60 * 60);

impl Clock for TokioClock {
    fn now(&self) -> Tick {
        let now = Instant::now();
        let origin = ORIGIN.get_or_init(|| a_day_before(now, Instant::checked_sub));
        let since = now.saturating_duration_since(*origin);
        Tick::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Returns the time a day before, or the earliest one that there is: some systems have no time
/// before their start.
fn a_day_before<T: Copy>(now: T, earlier: impl Fn(&T, Duration) -> Option<T>) -> T {
    if let Some(origin) = earlier(&now, BEFORE) {
        return origin;
    }
    let parts = (1..32).map(|halvings| BEFORE / (1 << halvings));
    parts.fold(now, |then, part| earlier(&then, part).unwrap_or(then))
}

/// The time of day is read once in a process. While a runtime's time is paused, its days follow the
/// paused time.
impl UtcClock for TokioClock {
    fn unix_origin(&self) -> Duration {
        static UNIX_ORIGIN: OnceLock<Duration> = OnceLock::new();

        *UNIX_ORIGIN.get_or_init(|| origin_of(self))
    }
}

#[cfg(test)]
mod tests {
    use super::{BEFORE, Duration, a_day_before};

    #[test]
    fn ticks_begin_a_day_before_or_when_the_system_started() {
        let before = |up: Duration| a_day_before(up, |up, time| up.checked_sub(time));
        for hours in [0, 1, 23, 24, 25, 10_000] {
            let up = Duration::from_secs(3600 * hours) + Duration::from_millis(7);
            let origin = before(up);
            let right = up.saturating_sub(BEFORE);
            assert!(origin >= right, "{hours} hours");
            assert!(origin - right < Duration::from_millis(1), "{hours} hours");
        }
    }
}
