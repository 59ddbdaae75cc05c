//! A clock and a timer by which tests sleep.

use std::time::Duration;

use tollgate::clock::{Clock, ManualSleep, SleepClock, Timer};
use tollgate::{ManualClock, Tick};

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
