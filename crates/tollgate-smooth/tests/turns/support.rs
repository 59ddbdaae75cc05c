//! Shared helpers of these tests: ticks, random numbers, futures polled by hand, and threads.

#[path = "../../../../tests/support/prelude.rs"]
mod prelude;
#[path = "../../../../tests/support/random.rs"]
mod random;
#[path = "../../../../tests/support/sleep.rs"]
mod sleep;
#[path = "../../../../tests/support/threads.rs"]
mod threads;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

pub(crate) use tollgate_smooth::{SmoothBursty, SmoothWarmingUp};

pub(crate) use prelude::*;
pub(crate) use random::Random;
pub(crate) use sleep::{HalfAsleep, Leaping};
pub(crate) use threads::on_threads;

/// Runs a future. Whenever it waits, the clock moves to the next tick for which a task sleeps.
pub(crate) fn run<F: Future>(clock: &ManualClock, future: F) -> F::Output {
    let mut future = pin!(future);
    for _ in 0..100 {
        if let Poll::Ready(done) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return done;
        }
        clock.set(clock.next_sleeper().expect("it waits for the clock"));
    }
    panic!("woken a hundred times without progress");
}

pub(crate) fn bursty(rate: f64) -> SmoothBursty<NoClock> {
    SmoothBursty::started_at(rate, NoClock, Tick::ZERO).expect("a rate")
}

pub(crate) fn warming_up(rate: f64, warm_up: Duration) -> SmoothWarmingUp<NoClock> {
    SmoothWarmingUp::started_at(rate, warm_up, NoClock, Tick::ZERO).expect("a rate")
}
