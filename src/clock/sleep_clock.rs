use std::thread;

use super::{Clock, CoarseClock, SystemClock, Tick, behind_pointers};

/// A clock on which a thread can sleep.
///
/// ```
/// use std::time::Duration;
/// use tollgate::clock::{Clock, SleepClock, SystemClock};
///
/// let now = SystemClock.now();
/// let due = now.saturating_add(Duration::from_millis(1));
/// assert!(SystemClock.sleep_until(due, now) >= due);
/// ```
pub trait SleepClock: Clock {
    /// Blocks this thread until the clock reads `due` or later, and returns that reading. `now` is
    /// the caller's latest reading, so that the clock need not be read again.
    fn sleep_until(&self, due: Tick, now: Tick) -> Tick;
}

/// Sleeps with the system's timers. They don't follow this clock, so it is read after each sleep.
/// If the two run at different speeds, there may be several sleeps.
fn sleep_by_the_system(clock: &impl Clock, due: Tick, mut now: Tick) -> Tick {
    while now < due {
        thread::sleep(due.saturating_since(now));
        now = clock.now();
    }
    now
}

impl SleepClock for SystemClock {
    fn sleep_until(&self, due: Tick, now: Tick) -> Tick {
        sleep_by_the_system(self, due, now)
    }
}

/// Sleeps until the clock has been moved to the due tick or past it.
impl SleepClock for CoarseClock {
    fn sleep_until(&self, due: Tick, now: Tick) -> Tick {
        sleep_by_the_system(self, due, now)
    }
}

behind_pointers!(SleepClock {
    fn sleep_until(due: Tick, now: Tick) -> Tick;
});
