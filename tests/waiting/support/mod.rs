//! Shared helpers of these tests: clocks that stand still, futures polled by hand, and threads.

mod clocks;
#[path = "../../support/deadline.rs"]
mod deadline;
#[path = "../../support/kinds.rs"]
mod kinds;
#[path = "../../support/polled.rs"]
mod polled;
#[path = "../../support/prelude.rs"]
mod prelude;
#[path = "../../support/random.rs"]
mod random;
#[path = "../../support/sleep.rs"]
mod sleep;
#[path = "../../support/storm.rs"]
pub(crate) mod storm;
#[path = "../../support/threads.rs"]
mod threads;

pub(crate) use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
pub(crate) use tollgate::{Adjustable, Keep};

pub(crate) use clocks::Counting;
pub(crate) use deadline::deadline;
pub(crate) use kinds::KINDS;
pub(crate) use polled::*;
pub(crate) use prelude::*;
pub(crate) use random::Random;
pub(crate) use sleep::{HalfAsleep, Leaping};
pub(crate) use threads::{on_threads, on_threads_while};

pub(crate) fn millis(tick: Tick) -> u64 {
    tick.as_nanos() / 1_000_000
}

/// A token bucket that blocks no thread: a thread that waits advances the clock.
pub(crate) type Bucket = Limiter<TokenBucket, Leaping>;

/// Returns a token bucket whose clock counts its readings, of which there is one, and that clock.
pub(crate) fn counting_bucket(quota: Quota) -> (Counting, Limiter<TokenBucket, Counting>) {
    let counting = Counting::default();
    let bucket = TokenBucket::new(quota).expect("a quota");
    let limiter = Limiter::with_clock(bucket, counting.clone());
    assert_eq!(counting.readings(), 1);
    (counting, limiter)
}

/// Returns a token bucket and its clock.
pub(crate) fn bucket(quota: Quota) -> (ManualClock, Bucket) {
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(quota).expect("a quota");
    (clock.clone(), Limiter::with_clock(bucket, Leaping(clock)))
}
