//! Clocks and timers by which tests sleep.

use std::sync::Arc;
use std::time::Duration;

use tollgate::clock::{Clock, ManualSleep, SleepClock, Timer};
use tollgate::sync::{AtomicU64, Ordering::SeqCst};
use tollgate::{ManualClock, Tick};

/// A manual clock that counts its readings.
#[derive(Clone, Default)]
pub(crate) struct Counting {
    pub(crate) clock: ManualClock,
    readings: Arc<AtomicU64>,
}

impl Counting {
    /// Returns the number of readings since the last call.
    pub(crate) fn readings(&self) -> u64 {
        self.readings.swap(0, SeqCst)
    }
}

impl Clock for Counting {
    fn now(&self) -> Tick {
        self.readings.fetch_add(1, SeqCst);
        self.clock.now()
    }
}

impl SleepClock for Counting {
    fn sleep_until(&self, due: Tick, now: Tick) -> Tick {
        // Returning to this tick is a reading too.
        self.readings.fetch_add(1, SeqCst);
        self.clock.sleep_until(due, now)
    }
}

/// A clock that a sleeper moves to the tick at which it wakes, so no thread is blocked.
#[derive(Clone, Default)]
pub(crate) struct Leaping(pub(crate) ManualClock);

impl Clock for Leaping {
    fn now(&self) -> Tick {
        self.0.now()
    }
}

impl SleepClock for Leaping {
    fn sleep_until(&self, due: Tick, _: Tick) -> Tick {
        self.0.set(due.max(self.now()));
        self.now()
    }
}

/// A timer that sleeps for half of the time.
pub(crate) struct HalfAsleep<'c>(pub(crate) &'c ManualClock);

impl Timer for HalfAsleep<'_> {
    type Sleep = ManualSleep;

    fn sleep(&self, duration: Duration) -> ManualSleep {
        self.0.sleep(duration / 2 + Duration::from_nanos(1))
    }
}
