//! Limiters without the standard library, linked as firmware links them.
//!
//! This library has its own panic handler. The standard library has one too, so this crate fails to
//! build as soon as tollgate or one of its dependencies links the standard library.

#![no_std]
#![allow(
    unsafe_code,
    reason = "names for C to link, and a pointer that comes from it"
)]

use core::panic::PanicInfo;
use core::time::Duration;

use tollgate::clock::{Clock, CoarseClock, NoClock};
use tollgate::{AnyAlgorithm, Gcra, Limiter, Quota, Tick, TokenBucket};

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// The timer's interrupt advances it.
static CLOCK: CoarseClock = CoarseClock::new();

static BUCKET: Limiter<TokenBucket, &CoarseClock> =
    match TokenBucket::new(Quota::per_second(100).burst(20)) {
        Ok(bucket) => Limiter::unstarted(bucket, &CLOCK),
        Err(_) => panic!("100 a second is no quota"),
    };

static SPACED: Limiter<Gcra, NoClock> =
    match Gcra::from_interval(Duration::from_millis(10), Duration::from_millis(25)) {
        Ok(gcra) => Limiter::unstarted(gcra, NoClock),
        Err(_) => panic!("10 ms is no interval"),
    };

/// A custom clock: the same time in whole milliseconds.
struct Milliseconds;

impl Clock for Milliseconds {
    fn now(&self) -> Tick {
        let nanos = CLOCK.now().as_nanos();
        Tick::from_nanos(nanos - nanos % 1_000_000)
    }
}

static COARSER: Limiter<TokenBucket, Milliseconds> =
    match TokenBucket::new(Quota::per_second(13).initial(0)) {
        Ok(bucket) => Limiter::unstarted(bucket, Milliseconds),
        Err(_) => panic!("13 a second is no quota"),
    };

/// Called by the timer.
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_tick(nanos: u64) {
    CLOCK.advance_to(Tick::from_nanos(nanos));
}

/// Returns 0 if granted, otherwise the nanoseconds to wait. All ones mean never.
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_try_acquire(n: u64) -> u64 {
    match BUCKET.try_acquire_n(n) {
        Ok(_) => 0,
        Err(denied) => denied.retry_after().map_or(u64::MAX, nanos),
    }
}

/// Calls every other verb once. Returns what is left of the bucket.
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_verbs(n: u64) -> u64 {
    let taken = BUCKET.take_up_to(n);
    BUCKET.undo(taken);
    let owed = BUCKET.charge(n).debt();
    BUCKET.refund(owed);
    let wait = BUCKET.time_until(n).map_or(0, nanos);
    BUCKET.available() ^ wait ^ COARSER.available() ^ BUCKET.quota().permits()
}

/// Asks a limiter without a clock, at the caller's tick.
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_at(nanos: u64) -> bool {
    let at = SPACED.at(Tick::from_nanos(nanos));
    if at.is_idle() {
        SPACED.reset();
    }
    at.try_acquire().is_ok()
}

/// Reserves at the caller's tick. Returns when the permits are due. All ones mean never.
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_reserve(nanos: u64, n: u64, latest: u64) -> u64 {
    let at = SPACED.at(Tick::from_nanos(nanos));
    let Ok(granted) = at.reserve_until(n, Tick::from_nanos(latest)) else {
        return u64::MAX;
    };
    let (kept, back) = at.cancel(granted, n / 2);
    kept.due().as_nanos() ^ back ^ at.waiting()
}

/// Parses a quota without allocating. Returns its burst, or 0 if the text is not a quota.
///
/// # Safety
///
/// `text` must point at `length` bytes that do not change during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_quota(text: *const u8, length: usize) -> u64 {
    // SAFETY: The caller upholds this function's contract.
    let bytes = unsafe { core::slice::from_raw_parts(text, length) };
    let quota = core::str::from_utf8(bytes).ok().map(str::parse::<Quota>);
    match quota {
        Some(Ok(quota)) => quota.burst_size(),
        _ => 0,
    }
}

/// Parses any algorithm and calls all verbs at the caller's tick. Returns what is left. All ones
/// mean that the text is not an algorithm.
///
/// # Safety
///
/// `text` must point at `length` bytes that do not change during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_any(text: *const u8, length: usize, tick: u64, n: u64) -> u64 {
    // SAFETY: The caller upholds this function's contract.
    let bytes = unsafe { core::slice::from_raw_parts(text, length) };
    let any = core::str::from_utf8(bytes)
        .ok()
        .map(str::parse::<AnyAlgorithm>);
    let Some(Ok(any)) = any else {
        return u64::MAX;
    };
    let limiter = Limiter::unstarted(any, NoClock);
    let at = limiter.at(Tick::from_nanos(tick));
    let delay = at.try_acquire_n(n).map_or(0, |granted| {
        let said = granted.info();
        at.undo(granted);
        nanos(said.delay()) ^ nanos(said.reset_after()) ^ said.remaining()
    });
    let owed = at.charge(n).debt();
    at.refund(owed);
    let wait = at.time_until(n).map_or(0, nanos);
    let burst = limiter.quota().burst_size();
    at.available() ^ at.level().ceil() ^ delay ^ wait ^ burst ^ u64::from(at.is_idle())
}

/// Restores any bytes as any algorithm. Returns the number of permits afterwards.
///
/// # Safety
///
/// `bytes` must point at `length` bytes that do not change during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_restore(bytes: *const u8, length: usize, tick: u64) -> u64 {
    // SAFETY: The caller upholds this function's contract.
    let bytes = unsafe { core::slice::from_raw_parts(bytes, length) };
    let algorithm = AnyAlgorithm::from(*BUCKET.algorithm());
    let limiter = Limiter::unstarted(algorithm, NoClock);
    let at = limiter.at(Tick::from_nanos(tick));
    let is_restored = at.restore_after(bytes, Duration::from_secs(1)).is_ok();
    let sum = at
        .snapshot()
        .iter()
        .map(|byte| u64::from(*byte))
        .sum::<u64>();
    at.available() ^ sum ^ u64::from(is_restored)
}

/// Indexes out of bounds for a large `index`, which links the panic handler.
#[cfg(feature = "panics")]
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_panics(index: usize) -> u64 {
    let waits = [1, 2, 3].map(|n| BUCKET.time_until(n).map_or(0, nanos));
    waits[index]
}

fn nanos(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)
}
