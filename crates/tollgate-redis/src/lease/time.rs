//! A clock that goes on while the process is stopped or the machine sleeps.

#[cfg(test)]
use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::{AtomicU64, Ordering};

/// The nanoseconds since the clock was created, plus one unit of the words of a pool: a tick of 0 is
/// never now.
#[derive(Debug)]
pub(crate) enum Time {
    System(System),
    /// A clock that a test sets.
    #[cfg(test)]
    Manual(Arc<AtomicU64>),
}

impl Time {
    pub(crate) fn system() -> Self {
        Self::System(System::new())
    }

    pub(crate) fn now_ns(&self) -> u64 {
        match self {
            Self::System(system) => system.now_ns(),
            #[cfg(test)]
            Self::Manual(now) => now.load(Ordering::Relaxed),
        }
    }
}

/// `CLOCK_BOOTTIME`, which counts the time in which the machine sleeps. A stopped process sees that
/// time has passed.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[derive(Debug)]
pub(crate) struct System {
    start_ns: u64,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl System {
    fn new() -> Self {
        Self {
            start_ns: boot_time_ns(),
        }
    }

    fn now_ns(&self) -> u64 {
        boot_time_ns().saturating_sub(self.start_ns)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn boot_time_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// The monotonic clock. On macOS and Windows it counts the time in which the machine sleeps.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[derive(Debug)]
pub(crate) struct System {
    start: std::time::Instant,
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl System {
    fn new() -> Self {
        Self {
            start: std::time::Instant::now(),
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
