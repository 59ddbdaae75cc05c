//! Multiword windows on one thread answer exactly as their definitions say. Random verbs at random
//! ticks, and every returned value, are compared with models that remember all permits with their
//! ticks.

mod bad_input;
mod known_failures;
mod log;
mod slotted;

use crate::support::driver::Run;
use crate::support::model::Model;
use crate::support::subject::Subject;
use crate::support::*;

/// A build with overflow checks compares fewer, so that the tests stay fast.
const OPERATIONS: u64 = if cfg!(debug_assertions) {
    40_000
} else {
    1_000_000
};

const DAY: u64 = 86_400 * SECOND;
const YEAR: u64 = 365 * DAY;

fn per_ns(n: u64, period_ns: u64) -> Quota {
    Quota::per(n, Duration::from_nanos(period_ns))
}

/// The events that both must cover.
const MUST_SEE: [&str; 12] = [
    "acquire",
    "acquire before its time",
    "take_up_to",
    "time_until",
    "granted",
    "granted 0",
    "later",
    "never",
    "stuck",
    "some of them taken",
    "counted ahead",
    "far away",
];

/// Runs one history with this many moments from some tick on.
fn run<S: Subject>(limiter: &S, model: impl Model, random: &mut Random, moments: u64) -> Seen {
    let seed = random.next();
    let start = match random.below(3) {
        0 => 0,
        1 => FIFTY_YEARS - random.upto(FIFTY_YEARS / 50),
        _ => random.upto(FIFTY_YEARS),
    };
    let label = format!("seed {seed:#x}, start {start}, {limiter:?}");
    limiter.set(tick(start));
    let mut run = Run::new(limiter, model, seed, start, label);
    run.operate(moments);
    run.seen
}

/// Calls the verb by the limiter's clock or at this tick.
macro_rules! by {
    ($limiter:ident, $door:ident, $now:ident, $verb:ident($($argument:expr),*)) => {
        match $door {
            0 => $limiter.$verb($($argument),*),
            _ => $limiter.at($now).$verb($($argument),*),
        }
    };
}
use by;

/// The verbs that both kinds have.
macro_rules! verbs_of_both {
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
use verbs_of_both;
