//! A clock that counts, and a timer that does not sleep.

use std::future::Ready;

use tollgate::clock::{SleepClock, Timer};

use super::*;

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

/// A timer that returns at once. Such a timer must not hold the executor forever.
#[derive(Default)]
pub(crate) struct AtOnce(AtomicU64);

impl Timer for AtOnce {
    type Sleep = Ready<()>;

    fn sleep(&self, _: Duration) -> Ready<()> {
        let sleeps = self.0.fetch_add(1, SeqCst);
        assert!(sleeps < 1000, "too many sleeps in one poll");
        std::future::ready(())
    }
}
