//! The subject that is compared with a model: a limiter, its clock, and all the ways to ask it.

use tollgate::algorithm::{Debt, Forecast, Gauge, GiveBack};

use crate::support::verbs::*;
use crate::support::*;

/// The traits of the algorithms in these tests: all of them.
pub(crate) trait Every: Algorithm + GiveBack + Debt + Forecast + Gauge + Debug {}
impl<A: Algorithm + GiveBack + Debt + Forecast + Gauge + Debug> Every for A {}

/// A limiter on a manual clock, which is set to `now` for each call. A verb can be called in
/// several equivalent ways, and `door` selects one.
pub(crate) trait Subject: Debug {
    /// Returns whether it has this verb, with any number.
    fn has(verb: Verb) -> bool;
    fn set(&self, now: Tick);
    fn ask(&self, door: u64, now: Tick, verb: Verb, granted: &mut Option<Granted>) -> Answer;
}

/// The `door` that uses a view at a tick, which can differ from the clock's.
pub(crate) const AT: u64 = 2;

/// The number of doors.
pub(crate) const DOORS: u64 = 3;

/// Makes a limiter with these groups of verbs a subject: on its clock, or by its view.
macro_rules! subject {
    ([$($generic:tt)*] $limiter:ty; $($group:ident)+) => {
        impl<$($generic)*> Subject for $limiter {
            fn has(verb: Verb) -> bool {
                let all = [$($group!(every! 0)),+].concat();
                all.iter().any(|(other, _)| verb.is_like(other))
            }

            fn set(&self, now: Tick) {
                self.clock().set(now);
            }

            fn ask(&self, door: u64, now: Tick, verb: Verb, granted: &mut Option<Granted>) -> Answer {
                let at = self.at(now);
                match (door, verb) {
                    (0, Verb::Take(1)) => self.try_acquire().into(),
                    (0, verb) => ask!(self, verb, granted; $($group)+),
                    (_, Verb::Take(1)) => at.try_acquire().into(),
                    (_, verb) => ask!(at, verb, granted; $($group)+),
                }
            }
        }
    };
}
pub(crate) use subject;

subject!([A: Every] Limiter<A, ManualClock>;
    take_verbs word_verbs forecast_verbs gauge_verbs give_back_verbs debt_verbs);
