//! The guarantees of the clocks: one origin for the process, shared manual time, a coarse clock
//! that never goes back and is refreshed by its thread, and a limiter that runs on each of them.

use std::time::{Instant, SystemTime};

use tollgate::clock::{CoarseClock, SystemClock, Upkeep, UtcClock};

use crate::support::*;

fn bucket() -> TokenBucket {
    TokenBucket::new(Quota::per_hour(2)).expect("a quota")
}

#[test]
fn the_system_clock_has_one_origin_and_does_not_go_back() {
    let before = SystemClock.now();
    let elsewhere = thread::spawn(|| SystemClock.now()).join().expect("a tick");
    let mut last = SystemClock.now();
    // Another thread counts from the same origin. Its reading may be off by up to a microsecond.
    let off = Duration::from_millis(1);
    assert!(before.saturating_sub(off) <= elsewhere && elsewhere <= last.saturating_add(off));
    for _ in 0..10_000 {
        let now = SystemClock.now();
        assert!(now >= last, "{now:?} after {last:?}");
        last = now;
    }
}

/// The calibration may be off by a few millionths. The time between two readings is arbitrary, so
/// the interval of ticks must lie inside one interval of the standard library's clock, and around
/// another.
#[test]
fn the_system_clock_runs_as_fast_as_instant() {
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
    let clock = ManualClock::at(tick(5));
    let limiter = Limiter::with_clock(bucket(), clock.clone());
    assert_eq!(clock.advance(Duration::from_nanos(3)), tick(8));
    assert_eq!(limiter.now(), tick(8));
    clock.set(tick(2));
    assert_eq!(limiter.now(), tick(2));
    assert_eq!(clock.advance(Duration::MAX), Tick::MAX);
    assert_eq!(ManualClock::default().now(), Tick::ZERO);
}

#[test]
fn a_coarse_clock_keeps_the_latest_tick() {
    let clock = CoarseClock::new();
    assert_eq!(clock.now(), Tick::ZERO);
    assert_eq!(clock.advance_to(tick(9)), tick(9));
    assert_eq!(clock.advance_to(tick(4)), tick(9));
    assert_eq!(clock.now(), tick(9));
    assert_eq!(clock.staleness(), None);
}

#[test]
fn a_coarse_clock_reads_the_refreshed_tick() {
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
    // A zero interval becomes a microsecond.
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
        // The thread has ended and released the clock.
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
    assert!(limiter.at(Tick::ZERO).try_acquire_n(2).is_ok());
    assert!(limiter.at(Tick::ZERO).try_acquire().is_err());
}

/// Windows of an hour and a day, on clocks that started at any time of day.
#[test]
fn windows_aligned_to_utc_end_with_the_hours_and_days_of_any_clock_with_a_known_origin() {
    fn ends_in(algorithm: impl Into<AnyAlgorithm>, clock: &(impl UtcClock + Clone)) -> u64 {
        let limiter = Limiter::with_clock(algorithm.into(), clock.clone());
        limiter
            .try_acquire()
            .expect("fresh")
            .reset_after()
            .as_secs()
    }
    const HOUR: u64 = 3600;
    const DAY: u64 = 24 * HOUR;
    for start in [0, 1, 5 * HOUR + 17, DAY - 1, 20_000 * DAY + 23 * HOUR] {
        let clock = ManualClock::with_unix_origin(Duration::from_secs(start));
        assert_eq!(clock.unix_origin(), Duration::from_secs(start));
        for later in [0, 1, HOUR - 1, DAY + 5] {
            clock.set(tick(later * 1_000_000_000));
            let now = start + later;
            let (hour, day) = (Quota::per_hour(1), Quota::per_day(1));
            let to_midnight = DAY - now % DAY;
            let window = FixedWindow::new(day).expect("a quota");
            // The same behind pointers.
            let shared = Arc::new(clock.clone());
            let ends = [
                ends_in(window.aligned_to_utc_on(&clock), &clock),
                ends_in(window.aligned_to_utc_on(&&clock), &&clock),
                ends_in(window.aligned_to_utc_on(&shared), &shared),
            ];
            assert_eq!(ends, [to_midnight; 3]);
            let intervals = Intervals::new(hour).expect("a quota");
            let to_hour = HOUR - now % HOUR;
            let actual = ends_in(intervals.aligned_to_utc_on(&clock), &clock);
            assert_eq!(actual, to_hour);
            // With an offset, as text and otherwise.
            let offset = window
                .offset(Duration::from_secs(2 * HOUR))
                .aligned_to_utc_on(&clock);
            let text: AnyAlgorithm = "fixed-window 1/d utc offset 2h".parse().expect("text");
            let there = text.with_utc_of(&clock);
            assert_eq!(there, offset.into());
            assert_eq!(there.to_string(), text.to_string());
            assert_eq!(ends_in(there, &clock), DAY - (now + DAY - 2 * HOUR) % DAY);
            let sliding: AnyAlgorithm = "sliding-window 1/d utc".parse().expect("text");
            let window = SlidingWindow::new(day)
                .expect("a quota")
                .aligned_to_utc_on(&clock);
            assert_eq!(sliding.with_utc_of(&clock), window.into());
        }
    }
    // A window that is not aligned to UTC stays unchanged.
    let clock = ManualClock::with_unix_origin(Duration::from_secs(77));
    for text in [
        "fixed-window 1/d",
        "intervals 1/h origin 3s",
        "fixed-window 1/d first-hit",
        "1/s",
    ] {
        let algorithm: AnyAlgorithm = text.parse().expect("text");
        assert_eq!(algorithm.with_utc_of(&clock), algorithm, "{text}");
    }
}

#[test]
fn system_clocks_know_the_time_of_day_at_tick_0() {
    /// Checks that the origin lies between two readings of the time of day, with a tolerance for
    /// adjustments of the system's clock.
    fn is_right(clock: &impl UtcClock) {
        let day = Duration::from_secs(86_400);
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .expect("after 1970");
        let by_clock = clock.unix_origin() + clock.now().saturating_since(Tick::ZERO);
        assert!(now < by_clock + day && by_clock < now + day);
        assert_eq!(clock.unix_origin(), clock.unix_origin());
    }
    is_right(&SystemClock);
    let coarse = CoarseClock::new();
    coarse.refresh();
    is_right(&coarse);
    assert_eq!(coarse.unix_origin(), SystemClock.unix_origin());
    let window = FixedWindow::new(Quota::per_day(1)).expect("a quota");
    assert_eq!(window.aligned_to_utc(), window.aligned_to_utc_on(&coarse));
    #[cfg(feature = "tokio")]
    is_right(&tollgate::clock::TokioClock);
    assert_eq!(ManualClock::new().unix_origin(), Duration::ZERO);
    let shown: Box<dyn UtcClock> = Box::new(SystemClock);
    is_right(&shown);
}
