use std::boxed::Box;
use std::sync::Arc;
use std::thread;

use super::{Clock, CoarseClock, SystemClock, Tick};

/// A clock that a thread can sleep by.
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
    /// Blocks this thread until the clock says `due` or later, and returns what it says then. `now`
    /// is what it said last, so that it need not be asked again.
    fn sleep_until(&self, due: Tick, now: Tick) -> Tick;
}

/// By the system's timers, which know nothing of this clock: it is read after each sleep, and there
/// may be more than one if the two run at different speeds.
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

/// Sleeps on while the clock is not refreshed.
impl SleepClock for CoarseClock {
    fn sleep_until(&self, due: Tick, now: Tick) -> Tick {
        sleep_by_the_system(self, due, now)
    }
}

/// For what points to a clock.
macro_rules! sleeps_behind {
    ($pointer:ty) => {
        impl<C: SleepClock + ?Sized> SleepClock for $pointer {
            fn sleep_until(&self, due: Tick, now: Tick) -> Tick {
                (**self).sleep_until(due, now)
            }
        }
    };
}

sleeps_behind!(&C);
sleeps_behind!(Box<C>);
sleeps_behind!(Arc<C>);
