//! A clock that follows the time of the runtime it was made in.

use std::time::Duration;

use tokio::time::Instant;
use tollgate::Tick;
use tollgate::clock::{Clock, UtcClock};

/// A clock whose tick 0 is when it was made. All its ticks are whole milliseconds if the runtime's
/// time is paused and advances by whole milliseconds. `TokioClock` counts from a day before its
/// first reading in the process, which may be in another test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RuntimeClock(Instant);

impl RuntimeClock {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

impl Clock for RuntimeClock {
    fn now(&self) -> Tick {
        Tick::from_nanos(u64::try_from(self.elapsed().as_nanos()).unwrap())
    }
}

impl UtcClock for RuntimeClock {
    fn unix_origin(&self) -> Duration {
        Duration::ZERO
    }
}

/// Returns a runtime of one thread whose time is paused.
pub(crate) fn paused() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}
