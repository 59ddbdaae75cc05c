//! A clock that goes on while the process is stopped or the machine sleeps.

use system::{Moment, now, since};

/// The nanoseconds since the clock was created.
///
/// It counts the time in which the machine sleeps: on Linux it is `CLOCK_BOOTTIME`, and on macOS
/// `CLOCK_MONOTONIC`. On Windows, `Instant` counts it. A process that was stopped sees that time
/// has passed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    start: Moment,
}

impl Time {
    pub(crate) fn new() -> Self {
        Self { start: now() }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        since(self.start)
    }
}

#[cfg(any(target_os = "android", target_os = "linux", target_vendor = "apple"))]
mod system {
    use rustix::time::{ClockId, clock_gettime};

    pub(super) type Moment = u64;

    #[cfg(not(target_vendor = "apple"))]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(target_vendor = "apple")]
    const CLOCK: ClockId = ClockId::Monotonic;

    pub(super) fn now() -> Moment {
        let time = clock_gettime(CLOCK);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
        seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
    }

    pub(super) fn since(start: Moment) -> u64 {
        now().saturating_sub(start)
    }
}

#[cfg(not(any(target_os = "android", target_os = "linux", target_vendor = "apple")))]
mod system {
    pub(super) type Moment = std::time::Instant;

    pub(super) fn now() -> Moment {
        Moment::now()
    }

    pub(super) fn since(start: Moment) -> u64 {
        u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
