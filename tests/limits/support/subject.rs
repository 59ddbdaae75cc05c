//! The subject that is compared with a model: a limiter, its clock, and all the ways to ask it.

use tollgate::algorithm::{Debt, Forecast, Gauge, GiveBack, Level};

use crate::support::*;

/// The traits of the algorithms in these tests: all of them.
pub(crate) trait Every: Algorithm + GiveBack + Debt + Forecast + Gauge + Debug {}
impl<A: Algorithm + GiveBack + Debt + Forecast + Gauge + Debug> Every for A {}

/// A limiter on a manual clock, which is set to `now` for each call. A verb can be called in
/// several equivalent ways, and `door` selects one.
///
/// The driver never calls verbs that are listed in `LACKS`.
pub(crate) trait Subject: Debug {
    /// The verbs that it does not have, by the driver's names.
    const LACKS: &'static [&'static str];

    fn set(&self, now: Tick);
    fn acquire(&self, door: u64, n: u64, now: Tick) -> Result<Granted, Denied>;
    fn take_up_to(&self, door: u64, n: u64, now: Tick) -> Granted;
    fn available(&self, door: u64, now: Tick) -> u64;
    fn time_until(&self, door: u64, n: u64, now: Tick) -> Option<Duration>;

    fn undo(&self, _door: u64, _granted: Granted, _now: Tick) -> u64 {
        unreachable!("no undo")
    }
    fn refund(&self, _door: u64, _n: u64, _now: Tick) -> u64 {
        unreachable!("no refund")
    }
    fn charge(&self, _door: u64, _n: u64, _now: Tick) -> Charged {
        unreachable!("no charge")
    }
    fn level(&self, _door: u64, _now: Tick) -> Level {
        unreachable!("no level")
    }
    fn is_idle(&self, _now: Tick) -> bool {
        unreachable!("no is_idle")
    }
    fn reset(&self) {
        unreachable!("no reset")
    }
}

/// The `door` that uses a view at a tick, which can differ from the clock's.
pub(crate) const AT: u64 = 2;

/// The number of doors.
pub(crate) const DOORS: u64 = 3;

/// Calls the same verb on a limiter with its clock, or on its view.
macro_rules! by {
    ($limiter:ident, $door:ident, $now:ident, $verb:ident($($argument:expr),*)) => {
        match $door {
            0 => $limiter.$verb($($argument),*),
            _ => $limiter.at($now).$verb($($argument),*),
        }
    };
}
pub(crate) use by;

/// The verbs that every limiter has.
macro_rules! verbs_of_all {
    () => {
        fn set(&self, now: Tick) {
            self.clock().set(now);
        }
        fn acquire(&self, door: u64, n: u64, now: Tick) -> Result<Granted, Denied> {
            match n {
                1 => by!(self, door, now, try_acquire()),
                _ => by!(self, door, now, try_acquire_n(n)),
            }
        }
        fn take_up_to(&self, door: u64, n: u64, now: Tick) -> Granted {
            by!(self, door, now, take_up_to(n))
        }
        fn available(&self, door: u64, now: Tick) -> u64 {
            by!(self, door, now, available())
        }
        fn time_until(&self, door: u64, n: u64, now: Tick) -> Option<Duration> {
            by!(self, door, now, time_until(n))
        }
    };
}
pub(crate) use verbs_of_all;

/// The verbs of those that take permits back.
macro_rules! verbs_of_give_back {
    () => {
        fn undo(&self, door: u64, granted: Granted, now: Tick) -> u64 {
            by!(self, door, now, undo(granted))
        }
        fn refund(&self, door: u64, n: u64, now: Tick) -> u64 {
            by!(self, door, now, refund(n))
        }
        fn charge(&self, door: u64, n: u64, now: Tick) -> Charged {
            by!(self, door, now, charge(n))
        }
        fn level(&self, door: u64, now: Tick) -> Level {
            by!(self, door, now, level())
        }
    };
}
pub(crate) use verbs_of_give_back;

impl<A: Every> Subject for Limiter<A, ManualClock> {
    const LACKS: &'static [&'static str] = &[];

    verbs_of_all! {}
    verbs_of_give_back! {}

    fn is_idle(&self, now: Tick) -> bool {
        self.at(now).is_idle()
    }

    fn reset(&self) {
        Limiter::reset(self);
    }
}
