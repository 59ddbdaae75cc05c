//! The smooth limiters give the turns of their definitions for any requests, and threads that take
//! turns together are never early together.

mod asked_again;
mod bad_input;
mod exact;
mod examples;
mod known_failures;
mod metrics;
mod support;
mod threads;
mod timers;
mod warming;

use std::time::Duration;

use tollgate::Tick;
use tollgate::clock::NoClock;
use tollgate_smooth::{SmoothBursty, SmoothWarmingUp};

fn bursty(rate: f64) -> SmoothBursty<NoClock> {
    SmoothBursty::started_at(rate, NoClock, Tick::ZERO).expect("a rate")
}

fn warming_up(rate: f64, warm_up: Duration) -> SmoothWarmingUp<NoClock> {
    SmoothWarmingUp::started_at(rate, warm_up, NoClock, Tick::ZERO).expect("a rate")
}
