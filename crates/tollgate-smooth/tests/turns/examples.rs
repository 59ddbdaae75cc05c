//! The answers of each limiter, in numbers worked out by hand.

use tollgate::stats::write_prometheus;

use crate::support::*;

const MS: u64 = 1_000_000;

#[test]
fn a_caller_waits_for_those_before_it() {
    let limiter = bursty(10.0);
    let wait = |n, at| limiter.reserve_at(n, tick(at)).expect("a turn").delay();
    assert_eq!(wait(5, 0), Duration::ZERO);
    assert_eq!(wait(1, 0), Duration::from_millis(500));
    assert_eq!(wait(1, 100 * MS), Duration::from_millis(500));
    assert_eq!(limiter.next_free_at(Tick::ZERO), tick(700 * MS));
    assert_eq!(limiter.next_free_at(tick(SECOND)), tick(SECOND));
    // An older tick does not help: it waits until the same time.
    assert_eq!(wait(1, 50 * MS), Duration::from_millis(650));
    // A request for zero permits is granted at once, and takes nothing.
    let none = limiter.reserve_at(0, tick(7)).expect("nothing");
    assert_eq!((none.n(), none.due(), none.at()), (0, tick(7), tick(7)));
    assert!(limiter.try_acquire_n_at(0, tick(7)).is_ok());
    assert_eq!(limiter.next_free_at(tick(7)), tick(800 * MS));
}

#[test]
fn a_timeout_is_compared_with_the_wait_and_a_denial_takes_nothing() {
    let nanos = || bursty(10.0);
    for (limiter, unit) in [(nanos(), 1), (nanos().in_whole_micros(), 1_000)] {
        let _ = limiter.reserve_at(10, Tick::ZERO);
        let ask =
            |timeout, at| limiter.reserve_within_at(1, Duration::from_nanos(timeout), tick(at));
        for _ in 0..100 {
            let denied = ask(SECOND - unit, 0).unwrap_err();
            assert_eq!(denied.retry_after(), Some(Duration::from_nanos(unit)));
            assert!(ask(SECOND - 1, 0).is_err());
            assert!(limiter.try_acquire_at(tick(SECOND - 1)).is_err());
        }
        // The same again a second later, and the reported turn is exact.
        let turn = ask(SECOND - unit, unit).expect("in time");
        assert_eq!((turn.due(), turn.n()), (tick(SECOND), 1));
        assert_eq!(turn.delay(), Duration::from_nanos(SECOND - unit));
        // A timeout of zero does not wait, to the nanosecond.
        assert!(limiter.try_acquire_at(tick(1_100 * MS - 1)).is_err());
        assert!(limiter.try_acquire_n_at(70, tick(1_100 * MS)).is_ok());
        assert!(ask(u64::MAX, 0).is_ok());
    }
}

#[test]
fn a_cold_start_follows_its_definition() {
    let limiter = warming_up(2.0, Duration::from_secs(4));
    assert_eq!((limiter.max_stored(), limiter.rate()), (8.0, 2.0));
    for due in [0, 1_375, 2_500, 3_375, 4_000, 4_500, 5_000] {
        let turn = limiter.reserve_at(1, Tick::ZERO).expect("a turn");
        assert_eq!(turn.due(), tick(due * MS));
    }
    // Seven of eight are taken, and come back at one each half second.
    for (at, stored) in [(0, 1.0), (6_500, 3.0), (100_000, 8.0)] {
        assert_eq!(limiter.stored_at(tick(at * MS)), stored);
    }
}

#[test]
fn a_new_rate_keeps_turns_and_the_stored_share() {
    let limiter = bursty(10.0);
    let _ = limiter.reserve_at(10, Tick::ZERO);
    limiter.set_rate_at(1_000.0, tick(0)).expect("a rate");
    assert_eq!(limiter.next_free_at(Tick::ZERO), tick(SECOND));
    // Permits stored before the change came at the old rate.
    assert_eq!(limiter.stored_at(tick(1_500 * MS)), 500.0);
    limiter.set_rate_at(2.0, tick(1_500 * MS)).expect("a rate");
    assert_eq!((limiter.rate(), limiter.max_stored()), (2.0, 2.0));
    assert_eq!(limiter.stored_at(tick(1_500 * MS)), 1.0);
    // A cold limiter keeps its coldness: half cold stays half cold.
    let limiter = warming_up(2.0, Duration::from_secs(4));
    let _ = limiter.reserve_at(4, Tick::ZERO);
    limiter.set_rate_at(200.0, Tick::ZERO).expect("a rate");
    let actual = (limiter.stored_at(Tick::ZERO), limiter.max_stored());
    assert_eq!(actual, (400.0, 800.0));
}

#[test]
fn every_sixteenth_change_of_the_rate_costs_a_nanosecond() {
    let limiter = bursty(10.0);
    let _ = limiter.reserve_at(10, Tick::ZERO);
    for changes in 1..=100_u64 {
        let rate = changes as f64;
        limiter.set_rate_at(rate, Tick::ZERO).expect("a rate");
        let expected = tick(SECOND + changes / 16);
        assert_eq!(limiter.next_free_at(Tick::ZERO), expected);
        assert_eq!(limiter.rate(), rate);
    }
}

#[test]
fn a_new_store_size_is_applied() {
    let limiter = bursty(10.0).max_burst(Duration::from_millis(2_500));
    assert_eq!(limiter.expect("a store").stored_at(tick(1 << 50)), 25.0);
    // The resized limiter keeps the start of the original one.
    let none = SmoothBursty::started_at(10.0, tollgate::clock::NoClock, tick(SECOND));
    let none = none
        .expect("a rate")
        .max_burst(Duration::ZERO)
        .expect("a store");
    assert_eq!(none.next_free_at(Tick::ZERO), tick(SECOND));
    assert_eq!(none.stored_at(tick(2 * SECOND)), 0.0);
    let _ = none.reserve_at(1, tick(2 * SECOND));
    assert_eq!(none.next_free_at(Tick::ZERO), tick(2_100 * MS));
    // A flat line: stored permits cost as much as others.
    let flat = warming_up(10.0, Duration::from_secs(3)).cold_factor(1.0);
    let flat = flat.expect("a factor");
    for due in 0..100 {
        let turn = flat.reserve_at(1, Tick::ZERO).expect("a turn");
        assert_eq!(turn.due(), tick(due * 100 * MS));
    }
}

/// Ten microseconds a permit and no store, asked at ticks between whole microseconds. The next turn
/// is at a whole microsecond, and no answer is before the call.
#[test]
fn with_whole_microseconds_no_answer_is_before_its_call() {
    const US: u64 = 1_000;
    let limiter = bursty(100_000.0).in_whole_micros();
    let limiter = limiter.max_burst(Duration::ZERO).expect("no store");
    let (mut next, mut denied) = (0, 0);
    for call in 0..3_000 {
        let now = call * 7_777;
        let due = tick((next * US).max(now));
        assert_eq!(limiter.next_free_at(tick(now)), due, "{now}");
        let (longest, turn) = match call % 3 {
            0 => (u64::MAX, limiter.reserve_at(1, tick(now))),
            1 => (0, limiter.try_acquire_at(tick(now))),
            _ => {
                let longest = Duration::from_nanos(5 * US + 999);
                (5, limiter.reserve_within_at(1, longest, tick(now)))
            }
        };
        if next > (now / US).saturating_add(longest) {
            denied += 1;
            let retry = Duration::from_nanos((next - longest) * US - now);
            assert_eq!(turn.unwrap_err().retry_after(), Some(retry), "{now}");
        } else {
            let turn = turn.map(|turn| (turn.at(), turn.due()));
            assert_eq!(turn, Ok((tick(now), due)));
            next = next.max(now / US) + 10;
        }
    }
    assert!((500..2_000).contains(&denied), "{denied}");
}

#[test]
fn a_limiter_writes_its_rate_and_its_stored_permits() {
    let limiter = SmoothBursty::with_clock(0.5, ManualClock::new()).expect("a rate");
    let mut text = String::new();
    write_prometheus(&mut text, "tollgate", &[(&[], &limiter)]).expect("valid names");
    let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let written = [
        "tollgate_rate 0.5",
        "tollgate_stored 0",
        "tollgate_max_stored 0.5",
    ];
    assert_eq!(samples, written);
}

#[test]
fn a_waiting_thread_or_future_wakes_at_its_turn_and_not_before() {
    let clock = Leaping::default();
    let limiter = SmoothBursty::with_clock(100_000.0, clock.clone()).expect("a rate");
    let limiter = limiter.max_burst(Duration::ZERO).expect("no store");
    let mut due = Tick::ZERO;
    for n in 1..20 {
        let turn = match n % 3 {
            0 => limiter.blocking_acquire_n(n),
            1 => limiter.blocking_acquire_timeout(n, Duration::from_secs(1)),
            _ => run(
                &clock.0,
                limiter.acquire_with_timer(HalfAsleep(&clock.0), n),
            ),
        };
        assert_eq!(turn.map(|turn| (turn.n(), turn.due())), Ok((n, due)));
        assert_eq!(clock.now(), due);
        due = due.saturating_add(Duration::from_micros(10 * n));
    }
    // A caller that need not wait does not, and a timeout is kept.
    let limiter = SmoothBursty::with_clock(1.0, Leaping::default()).expect("a rate");
    assert!(limiter.blocking_acquire_n(100).is_ok());
    let denied = limiter.blocking_acquire_timeout(1, Duration::from_secs(99));
    assert!(denied.is_err());
    let expected = (Tick::ZERO, tick(100 * SECOND));
    assert_eq!((limiter.clock().now(), limiter.next_free()), expected);
}
