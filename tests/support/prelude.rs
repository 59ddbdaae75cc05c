//! The names that most tests use. The `support` module of each binary has them.

#![allow(dead_code, unused_imports, reason = "each binary uses some of these")]

pub(crate) use std::fmt::Debug;
pub(crate) use std::sync::Arc;
pub(crate) use std::thread;
pub(crate) use std::time::Duration;

pub(crate) use tollgate::algorithm::{Algorithm, ChangeQuota};
pub(crate) use tollgate::clock::{Clock, NoClock};
pub(crate) use tollgate::compose::All;
pub(crate) use tollgate::outcome::Charged;
pub(crate) use tollgate::{
    AnyAlgorithm, Concurrency, Counted, Denied, FixedWindow, Gcra, Granted, Intervals, LeakyBucket,
    Leases, Limiter, ManualClock, Quota, Sharded, SlidingLog, SlidingWindow, SlottedWindow, Tick,
    TokenBucket,
};

pub(crate) const SECOND: u64 = 1_000_000_000;

/// All orders of three.
pub(crate) const ORDERS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

pub(crate) const fn tick(nanos: u64) -> Tick {
    Tick::from_nanos(nanos)
}

/// Returns how much to do: less in a build with overflow checks, so that the tests stay fast.
pub(crate) const fn debug_or_release(debug: u64, release: u64) -> u64 {
    if cfg!(debug_assertions) {
        debug
    } else {
        release
    }
}

/// Reads an algorithm.
#[track_caller]
pub(crate) fn algorithm(text: &str) -> AnyAlgorithm {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}
