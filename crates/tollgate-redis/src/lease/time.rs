//! A clock that goes on while the process is stopped or the machine sleeps.

/// The nanoseconds since the clock was created.
///
/// On Linux it is `CLOCK_BOOTTIME`, which counts the time in which the machine sleeps. Elsewhere it
/// is the monotonic clock, which counts it on macOS and Windows. A process that was stopped sees
/// that time has passed.
#[derive(Debug)]
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

#[cfg(any(target_os = "linux", target_os = "android"))]
type Moment = u64;

#[cfg(any(target_os = "linux", target_os = "android"))]
fn now() -> Moment {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn since(start: Moment) -> u64 {
    now().saturating_sub(start)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
type Moment = std::time::Instant;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn now() -> Moment {
    Moment::now()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn since(start: Moment) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
