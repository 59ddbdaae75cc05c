//! Code that the comparisons share: traits for limiters, other crates' limiters, and windows in the
//! state of a long-running service.

pub mod keys;
pub mod memory;
pub mod peers;

use std::fs;
use std::time::Duration;

use tollgate::clock::{Clock, SystemClock};
use tollgate::{
    Adjustable, AnyAlgorithm, Counted, FixedWindow, Keyed, Limiter, Quota, Sharded, SlidingLog,
    SlottedWindow, Tick, TokenBucket, TryAcquire,
};

/// A limiter that reads its clock, through the method that users call.
pub trait Ask: Sync {
    /// Returns whether a permit is granted.
    fn is_allowed(&self) -> bool;
}

/// A limiter that takes a tick.
pub trait AskAt: Sync {
    /// Returns whether a permit is granted at this tick.
    fn is_allowed_at(&self, now: Tick) -> bool;
}

/// A limiter with a limit for each key, through the method that users call.
pub trait AskKey: Sync {
    /// Returns whether this key is granted a permit.
    fn is_key_allowed(&self, key: &u64) -> bool;
}

impl AskKey for Keyed<TokenBucket> {
    #[inline(always)]
    fn is_key_allowed(&self, key: &u64) -> bool {
        self.try_acquire(key).is_ok()
    }
}

macro_rules! asked {
    ($([$($generics:tt)*] $limiter:ty),* $(,)?) => {$(
        impl<$($generics)*> Ask for $limiter {
            #[inline(always)]
            fn is_allowed(&self) -> bool {
                self.try_acquire().is_ok()
            }
        }
    )*};
}

macro_rules! told {
    ($([$($generics:tt)*] $limiter:ty),* $(,)?) => {$(
        impl<$($generics)*> AskAt for $limiter {
            #[inline(always)]
            fn is_allowed_at(&self, now: Tick) -> bool {
                self.try_acquire_n_at(1, now).is_ok()
            }
        }
    )*};
}

asked! {
    [C: Clock + Sync] Limiter<TokenBucket, C>,
    [C: Clock + Sync] Adjustable<TokenBucket, C>,
    [C: Clock + Sync] Sharded<TokenBucket, C>,
    [C: Clock + Sync] SlottedWindow<C>,
    [C: Clock + Sync] SlidingLog<C>,
    [G: TryAcquire<Clock: Clock> + Sync] Counted<G>,
}

told! {
    [C: Sync] Limiter<TokenBucket, C>,
    [C: Sync] Adjustable<TokenBucket, C>,
    [C: Sync] Adjustable<FixedWindow, C>,
    [C: Sync] Adjustable<AnyAlgorithm, C>,
    [C: Sync] Sharded<TokenBucket, C>,
    [C: Sync] SlottedWindow<C>,
    [C: Sync] SlidingLog<C>,
    [G: TryAcquire + Sync] Counted<G>,
}

/// Two days, which is after all slots of a window have ended.
pub const START: Tick = Tick::from_nanos(2 * DAY.as_nanos() as u64);

/// The system clock of a process that has run for that long.
#[derive(Debug, Clone, Copy, Default)]
pub struct Late;

impl Clock for Late {
    #[inline(always)]
    fn now(&self) -> Tick {
        Tick::from_nanos(START.as_nanos() + SystemClock.now().as_nanos())
    }
}

/// Longer than any measurement.
pub const DAY: Duration = Duration::from_secs(86_400);

/// The number of slots of a window.
pub const SLOTS: u64 = 60;

/// Writes objects as an array of JSON, if there is a file for it.
///
/// # Errors
///
/// Returns an error if the file can't be written.
pub fn write_json(file: Option<&str>, objects: &[String]) -> Result<(), String> {
    let Some(file) = file else { return Ok(()) };
    let json = format!("[\n{}\n]\n", objects.join(",\n"));
    fs::write(file, json).map_err(|error| format!("{file}: {error}"))
}

/// The number of permits that a log keeps.
pub const KEPT: u64 = 1000;

/// A period so short that a log with a request each nanosecond always has one permit, which becomes
/// available only because an old one expires.
pub const SHORT: Duration = Duration::from_nanos(KEPT);

/// Returns a window with this quota.
#[must_use]
pub fn slots<C>(quota: Quota, clock: C) -> SlottedWindow<C> {
    SlottedWindow::with_clock(quota, SLOTS as usize, clock).expect("slots that fit")
}

/// Returns nearly the largest quota that a window with slots of one second can count.
#[must_use]
pub const fn wide_slots() -> Quota {
    Quota::per_minute(4_000_000_000)
}

/// Returns a window of a day without a remaining permit: up to [`START`] one permit was taken in
/// each of its slots.
///
/// # Panics
///
/// Panics if a permit is denied.
#[must_use]
pub fn taken_slots<C>(clock: C) -> SlottedWindow<C> {
    let limiter = slots(Quota::per(SLOTS, DAY), clock);
    before_start(SLOTS, limiter.slot_length(), |tick| {
        limiter.try_acquire_n_at(1, tick).is_ok()
    });
    limiter
}

/// Returns a full log, with one permit a nanosecond until [`START`].
///
/// # Panics
///
/// Panics if a permit is denied.
#[must_use]
pub fn full_log<C>(period: Duration, clock: C) -> SlidingLog<C> {
    let limiter = SlidingLog::with_clock(Quota::per(KEPT, period), clock).expect("a log that fits");
    before_start(KEPT, Duration::from_nanos(1), |tick| {
        limiter.try_acquire_n_at(1, tick).is_ok()
    });
    limiter
}

/// Makes `times` requests, the last one at [`START`].
///
/// # Panics
///
/// Panics if a request is denied.
pub fn before_start(times: u64, apart: Duration, mut ask: impl FnMut(Tick) -> bool) {
    let apart = apart.as_nanos() as u64;
    for ago in (0..times).rev() {
        let tick = Tick::from_nanos(START.as_nanos() - ago * apart);
        assert!(ask(tick), "a permit at {tick:?}");
    }
}
