//! The clocks keep what they say: one origin for the process, shared manual time, a coarse clock
//! that never goes back and is refreshed by its thread, and a limiter that runs on each of them.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tollgate::clock::{Clock, CoarseClock, NoClock, SystemClock, Upkeep};
use tollgate::{Limiter, ManualClock, Quota, Tick, TokenBucket};

use crate::deadline::deadline;

fn bucket() -> TokenBucket {
    TokenBucket::new(Quota::per_hour(2)).expect("a quota")
}

#[test]
fn the_system_clock_has_one_origin_and_does_not_go_back() {
    let before = SystemClock.now();
    let elsewhere = thread::spawn(|| SystemClock.now()).join().expect("a tick");
    let mut last = SystemClock.now();
    // Another thread counts from the same origin; its reading may be off by up to a microsecond.
    let off = Duration::from_millis(1);
    assert!(before.saturating_sub(off) <= elsewhere && elsewhere <= last.saturating_add(off));
    for _ in 0..10_000 {
        let now = SystemClock.now();
        assert!(now >= last, "{now:?} after {last:?}");
        last = now;
    }
}

/// The calibration may be off by some millionths. How long the machine takes between two readings
/// says nothing: the tick's interval lies within one of the standard library's and around another.
#[test]
fn the_system_clock_runs_as_fast_as_the_standard_librarys() {
    SystemClock.now();
    let outer = Instant::now();
    let tick = SystemClock.now();
    let inner = Instant::now();
    while inner.elapsed() < Duration::from_millis(5) {
        thread::yield_now();
    }
    let least = inner.elapsed().mul_f64(0.9);
    let ticks = SystemClock.now().saturating_since(tick);
    let most = outer.elapsed().mul_f64(1.1);
    assert!(
        least <= ticks && ticks <= most,
        "{least:?}, {ticks:?}, {most:?}"
    );
}

#[test]
fn clones_of_a_manual_clock_share_its_time() {
    let clock = ManualClock::at(Tick::from_nanos(5));
    let limiter = Limiter::with_clock(bucket(), clock.clone());
    assert_eq!(clock.advance(Duration::from_nanos(3)), Tick::from_nanos(8));
    assert_eq!(limiter.now(), Tick::from_nanos(8));
    clock.set(Tick::from_nanos(2));
    assert_eq!(limiter.now(), Tick::from_nanos(2));
    assert_eq!(clock.advance(Duration::MAX), Tick::MAX);
    assert_eq!(ManualClock::default().now(), Tick::ZERO);
}

#[test]
fn a_coarse_clock_keeps_the_latest_tick_that_was_brought() {
    let clock = CoarseClock::new();
    assert_eq!(clock.now(), Tick::ZERO);
    assert_eq!(clock.advance_to(Tick::from_nanos(9)), Tick::from_nanos(9));
    assert_eq!(clock.advance_to(Tick::from_nanos(4)), Tick::from_nanos(9));
    assert_eq!(clock.now(), Tick::from_nanos(9));
    assert_eq!(clock.staleness(), None);
}

#[test]
fn a_coarse_clock_reads_what_was_refreshed() {
    let clock = CoarseClock::default();
    let before = SystemClock.now();
    let brought = clock.refresh();
    assert!(brought >= before && brought <= SystemClock.now());
    assert_eq!(clock.now(), brought);
    assert!(clock.age() <= SystemClock.now().saturating_since(before));
}

#[test]
fn upkeep_refreshes_until_it_is_dropped() {
    let us = Duration::from_micros;
    // An interval of nothing is a microsecond.
    for (asked, interval) in [(us(100), us(100)), (us(0), us(1))] {
        let clock = deadline("the upkeep thread to refresh and to end", move || {
            let clock = Arc::new(CoarseClock::new());
            let upkeep = Upkeep::start(Arc::clone(&clock), asked).expect("a thread");
            assert_eq!(clock.staleness(), Some(interval));
            let first = clock.now();
            while clock.now() == first {
                thread::yield_now();
            }
            drop(upkeep);
            clock
        });
        assert_eq!(clock.staleness(), None);
        // The thread is gone and holds the clock no more.
        assert_eq!(Arc::strong_count(&clock), 1);
    }
}

#[test]
fn a_limiter_runs_on_every_clock() {
    static COARSE: CoarseClock = CoarseClock::new();
    fn takes_two<C: Clock>(limiter: Limiter<TokenBucket, C>) {
        assert!(limiter.try_acquire_n(2).is_ok());
        assert!(limiter.try_acquire().is_err());
    }
    takes_two(Limiter::new(bucket()));
    takes_two(Limiter::with_clock(bucket(), &COARSE));
    takes_two(Limiter::with_clock(bucket(), Arc::new(CoarseClock::new())));
    takes_two(Limiter::with_clock(bucket(), ManualClock::new()));
    let limiter = Limiter::unstarted(bucket(), NoClock);
    assert!(limiter.try_acquire_n_at(2, Tick::ZERO).is_ok());
    assert!(limiter.try_acquire_at(Tick::ZERO).is_err());
}
