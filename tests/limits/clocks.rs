//! The clocks keep what they say: one origin for the process, shared manual time, a coarse clock
//! that never goes back and is refreshed by its thread, and a limiter that runs on each of them.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tollgate::{
    Clock, CoarseClock, Limiter, ManualClock, NoClock, Quota, SystemClock, Tick, TokenBucket,
    Upkeep,
};

fn bucket() -> TokenBucket {
    TokenBucket::new(Quota::per_hour(2)).expect("a quota")
}

#[test]
fn the_system_clock_has_one_origin_and_does_not_go_back() {
    let before = SystemClock.now();
    let elsewhere = thread::spawn(|| SystemClock.now()).join().expect("a tick");
    let after = SystemClock.now();
    // Another thread's reading lies between ours: it counts from the same origin.
    assert!(before <= elsewhere && elsewhere <= after);
    let mut last = after;
    for _ in 0..100_000 {
        let now = SystemClock.now();
        assert!(now >= last, "{now:?} after {last:?}");
        last = now;
    }
}

#[test]
fn the_system_clock_runs_as_fast_as_the_standard_librarys() {
    let (tick, instant) = (SystemClock.now(), Instant::now());
    while instant.elapsed() < Duration::from_millis(30) {
        thread::yield_now();
    }
    // Read in this order, the tick's interval holds the instant's: it can't be shorter by more
    // than the calibration is off. How long the machine took in between says nothing.
    let by_instant = instant.elapsed();
    let by_tick = SystemClock.now().saturating_since(tick);
    assert!(
        by_tick > by_instant.mul_f64(0.99),
        "{by_tick:?}, {by_instant:?}"
    );
}

#[test]
fn clones_of_a_manual_clock_share_its_time() {
    let clock = ManualClock::at(Tick::from_nanos(5));
    let gate = Limiter::with_clock(bucket(), clock.clone());
    assert_eq!(clock.advance(Duration::from_nanos(3)), Tick::from_nanos(8));
    assert_eq!(gate.now(), Tick::from_nanos(8));
    clock.set(Tick::from_nanos(2));
    assert_eq!(gate.now(), Tick::from_nanos(2));
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
    let clock = Arc::new(CoarseClock::new());
    let interval = Duration::from_micros(100);
    let upkeep = Upkeep::start(Arc::clone(&clock), interval).expect("a thread");
    assert_eq!(clock.staleness(), Some(interval));
    let first = clock.now();
    while clock.now() == first {
        thread::yield_now();
    }
    drop(upkeep);
    assert_eq!(clock.staleness(), None);
    // The thread is gone and holds the clock no more.
    assert_eq!(Arc::strong_count(&clock), 1);
}

#[test]
fn an_interval_of_nothing_is_a_microsecond() {
    let clock = Arc::new(CoarseClock::new());
    let upkeep = Upkeep::start(Arc::clone(&clock), Duration::ZERO).expect("a thread");
    assert_eq!(clock.staleness(), Some(Duration::from_micros(1)));
    drop(upkeep);
}

#[test]
fn a_limiter_runs_on_every_clock() {
    static COARSE: CoarseClock = CoarseClock::new();
    fn takes_two<C: Clock>(gate: Limiter<TokenBucket, C>) {
        assert!(gate.try_acquire_n(2).is_ok());
        assert!(gate.try_acquire().is_err());
    }
    takes_two(Limiter::new(bucket()));
    takes_two(Limiter::with_clock(bucket(), &COARSE));
    takes_two(Limiter::with_clock(bucket(), Arc::new(CoarseClock::new())));
    takes_two(Limiter::with_clock(bucket(), ManualClock::new()));
    let gate = Limiter::unstarted(bucket(), NoClock);
    assert!(gate.try_acquire_n_at(2, Tick::ZERO).is_ok());
    assert!(gate.try_acquire_at(Tick::ZERO).is_err());
}
