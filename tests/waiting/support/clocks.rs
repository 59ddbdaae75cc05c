//! A clock that counts.

use tollgate::clock::SleepClock;

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
