//! The bounds that are called tight are reached: somebody who knows the moments gets as much.

use crate::drive::Driven;
use crate::promise::Promise;

const SECOND: u64 = 1_000_000_000;

/// How much was taken from `from` on, and how much may be until `to`.
fn taken_and_allowed(driven: &Driven, promise: Promise, from: u64, to: u64) -> (u128, u128) {
    let inside = driven
        .taken
        .iter()
        .filter(|one| (from..=to).contains(&one.0));
    let taken = inside.map(|one| u128::from(one.1)).sum();
    (taken, promise.allows(driven.rate, to - from))
}

fn assert_reached(driven: &Driven, promise: Promise, from: u64, to: u64) {
    let (taken, allowed) = taken_and_allowed(driven, promise, from, to);
    assert_eq!(taken, allowed, "{promise:?} from {from} to {to}");
}

#[test]
fn buckets_give_the_burst_and_each_permit_when_it_is_due() {
    for text in [
        "token-bucket 10/s burst 4",
        "gcra 3/s",
        "leaky-meter 7/s",
        "leaky-queue 1/s",
    ] {
        let mut driven = Driven::new(text);
        let start = 5 * SECOND + 1;
        let mut now = start;
        assert_eq!(driven.drain(now), driven.burst, "{text}");
        for _ in 0..50 {
            now = driven.due(1, now).expect("it is due some time");
            assert!(driven.ask(1, now), "{text}");
            let burst = driven.burst;
            assert_reached(&driven, Promise::Steady { burst }, start, now);
        }
    }
}

#[test]
fn fixed_windows_give_twice_as_much_around_an_edge() {
    let mut driven = Driven::new("fixed-window 10/s");
    assert_eq!(driven.drain(SECOND - 1), 10);
    for edge in 1..=5 {
        assert_eq!(driven.drain(edge * SECOND), 10);
        assert_reached(&driven, Promise::Windows, SECOND - 1, edge * SECOND);
    }
}

#[test]
fn a_window_opened_by_its_first_hit_gives_that_one_less() {
    let mut driven = Driven::new("fixed-window 10/s first-hit");
    assert!(driven.ask(1, 0));
    assert_eq!(driven.drain(SECOND - 1), 9);
    assert_eq!(driven.drain(SECOND), 10);
    assert_reached(
        &driven,
        Promise::FirstHit { skew_ns: 0 },
        SECOND - 1,
        SECOND,
    );
}

#[test]
fn the_sliding_window_gives_its_rate_after_a_burst() {
    let mut driven = Driven::new("sliding-window 10/s");
    let start = SECOND - 1;
    assert_eq!(driven.drain(start), 10);
    let promise = Promise::Sliding { down: false };
    let mut now = start;
    for _ in 0..9 {
        now = driven.due(1, now).expect("it is due some time");
        assert!(driven.ask(1, now));
        assert_reached(&driven, promise, start, now);
    }
    // Twice the limit in a period and a nanosecond or two.
    assert!(driven.ask(1, 2 * SECOND));
    assert_reached(&driven, promise, start, 2 * SECOND);
}

/// A nanosecond after the edge the share of ten permits is less than ten.
#[test]
fn rounded_down_it_gives_one_more_at_once() {
    let mut driven = Driven::new("sliding-window 10/s rounding down");
    let (start, end) = (SECOND - 1, SECOND + 1);
    assert_eq!(driven.drain(start), 10);
    assert_eq!(driven.drain(end), 1);
    assert_reached(&driven, Promise::Sliding { down: true }, start, end);
    let (taken, allowed) = taken_and_allowed(&driven, Promise::Sliding { down: false }, start, end);
    assert_eq!((taken, allowed), (11, 10));
}

/// Who asks all the time gets one permit less in a window, since a window that is not over keeps a
/// part of each permit of the one before; of a limit of one, every second window.
#[test]
fn under_constant_demand_the_sliding_window_gives_one_less() {
    for (text, in_eight_more) in [
        ("sliding-window 10/s", 8 * 9),
        ("sliding-window 2/s", 8),
        ("sliding-window 1/s", 4),
        ("sliding-window 10/s rounding down", 8 * 10),
        ("sliding-window 1/s rounding down", 8),
    ] {
        let mut driven = Driven::new(text);
        let mut now = 0;
        while now < 10 * SECOND {
            driven.drain(now);
            now = driven.due(1, now).expect("it is due some time");
        }
        let later = |one: &&(u64, u64)| (2 * SECOND..10 * SECOND).contains(&one.0);
        let taken: u64 = driven.taken.iter().filter(later).map(|one| one.1).sum();
        assert_eq!(taken, in_eight_more, "{text}");
    }
}

#[test]
fn intervals_give_the_burst_and_a_refill_at_an_edge() {
    for (text, burst) in [
        ("intervals 10/s", 10),
        ("intervals 10/s burst 25", 25),
        ("intervals 10/s burst 4", 4),
    ] {
        let mut driven = Driven::new(text);
        assert_eq!(driven.drain(SECOND - 1), burst);
        for edge in 1..=5 {
            driven.drain(edge * SECOND);
            assert_reached(
                &driven,
                Promise::Refills { burst },
                SECOND - 1,
                edge * SECOND,
            );
        }
    }
}

#[test]
fn greedy_intervals_give_one_less() {
    for (text, burst) in [
        ("intervals 10/s greedy", 10),
        ("intervals 10/s burst 25 greedy", 25),
        ("intervals 10/s burst 4 greedy", 4),
    ] {
        let mut driven = Driven::new(text);
        assert!(driven.ask(1, 0));
        assert_eq!(driven.drain(SECOND - 1), burst - 1);
        driven.drain(SECOND);
        assert_reached(
            &driven,
            Promise::Greedy { burst, skew_ns: 0 },
            SECOND - 1,
            SECOND,
        );
    }
}

/// What leaves a queue, when it is full: the free ones and one, or the largest request, at once, and
/// then as the rate says.
#[test]
fn what_leaves_a_queue_leaves_as_fast_as_it_may() {
    for (text, largest, free) in [
        ("leaky-queue 10/s", 1, 0),
        ("leaky-queue 10/s free 3", 1, 3),
        ("leaky-queue 10/s free 3", 6, 3),
    ] {
        let mut driven = Driven::new(text);
        assert!(driven.ask(largest, 0));
        while driven.ask(1, 0) {}
        let promise = Promise::Departures { free, largest };
        let first = driven.left[0].0;
        let last = driven
            .left
            .iter()
            .map(|one| one.0)
            .max()
            .expect("some leave");
        let left: u64 = driven.left.iter().map(|one| one.1).sum();
        assert_eq!(left, 10, "{text}");
        let allowed = promise.allows(driven.rate, last - first);
        assert_eq!(allowed, 10, "{text}: from {first} to {last}");
    }
}

/// Moments are whole nanoseconds, and a delay is rounded up: so two that leave may be nearer to each
/// other than their interval, by less than one.
#[test]
fn a_part_of_a_nanosecond_makes_two_leave_too_near_each_other() {
    let mut driven = Driven::new("leaky-queue 3/s");
    assert!(driven.ask(1, 0) && driven.ask(1, 0) && driven.ask(1, 0));
    let left: Vec<_> = driven.left.iter().map(|one| one.0).collect();
    assert_eq!(left, [0, 333_333_334, 666_666_667]);
    let between = u128::from(left[2] - left[1]);
    let one_and_rate = 1 + 3 * between / u128::from(SECOND);
    assert_eq!(
        one_and_rate, 1,
        "without the nanosecond the bound would be one"
    );
}
