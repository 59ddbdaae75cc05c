//! Multiword windows on one thread answer exactly as their definitions say. Random verbs at random
//! ticks, and every returned value, are compared with models that remember all permits with their
//! ticks.

mod bad_input;
mod known_failures;
mod log;
mod slotted;

use crate::support::driver::Run;
use crate::support::reference::Reference;
use crate::support::subject::Subject;
use crate::support::*;

/// A build with overflow checks compares fewer, so that the tests stay fast.
const OPERATIONS: u64 = debug_or_release(40_000, 1_000_000);

/// The events that both must cover.
const MUST_SEE: &str = "acquire; acquire before its time; take_up_to; time_until; granted; granted 0; later; \
    never; stuck; some of them taken; counted ahead; far away";

/// Runs one history with this many moments from some tick on.
fn run<S: Subject>(limiter: &S, model: impl Reference, random: &mut Random, moments: u64) -> Seen {
    let (seed, start) = (random.next(), any_start(random));
    let label = format!("seed {seed:#x}, start {start}, {limiter:?}");
    limiter.set(tick(start));
    let mut run = Run::new(limiter, model, seed, start, label);
    run.operate(moments);
    run.seen
}
