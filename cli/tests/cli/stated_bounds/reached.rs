//! The bounds that the guide calls tight are reached by a caller that knows the critical moments.

use super::drive::Driven;
use super::promise::Promise::{self, *};

const SECOND: u64 = 1_000_000_000;

/// Returns the permits taken from `from` to `to`, and the bound of that interval.
fn taken_and_allowed(driven: &Driven, promise: Promise, from: u64, to: u64) -> (u128, u128) {
    let inside = driven.taken.iter().filter(|it| (from..=to).contains(&it.0));
    let taken = inside.map(|it| u128::from(it.1)).sum();
    (taken, promise.allows(driven, to - from))
}

fn assert_reached(driven: &Driven, promise: Promise, from: u64, to: u64) {
    let (taken, allowed) = taken_and_allowed(driven, promise, from, to);
    assert_eq!(taken, allowed, "{promise:?} from {from} to {to}");
}

#[test]
fn each_permit_after_the_burst_is_granted_when_due() {
    for (text, promise, start, permits) in [
        ("token-bucket 10/s burst 4", Steady, 5 * SECOND + 1, 50),
        ("gcra 3/s", Steady, 5 * SECOND + 1, 50),
        ("leaky-meter 7/s", Steady, 5 * SECOND + 1, 50),
        ("leaky-queue 1/s", Steady, 5 * SECOND + 1, 50),
        ("sliding-window 10/s", Sliding, SECOND - 1, 9),
    ] {
        let mut driven = Driven::new(text);
        assert_eq!(driven.drain(start), driven.burst, "{text}");
        let mut now = start;
        for _ in 0..permits {
            now = driven.due(1, now).expect("it becomes due");
            assert!(driven.ask(1, now), "{text}");
            assert_reached(&driven, promise, start, now);
        }
        if text.starts_with("sliding") {
            // Twice the limit in a period and a nanosecond or two.
            assert!(driven.ask(1, 2 * SECOND));
            assert_reached(&driven, promise, start, 2 * SECOND);
        }
    }
}

/// All available permits are taken right before an edge, and at each of these edges.
#[test]
fn windows_grant_all_permits_around_an_edge() {
    const EDGES: &[u64] = &[SECOND, 2 * SECOND, 3 * SECOND, 4 * SECOND, 5 * SECOND];
    const EDGE: &[u64] = &[SECOND];
    // A nanosecond after the edge, the ten permits count for less than ten, so one more is granted.
    const AFTER: &[u64] = &[SECOND + 1];
    for (text, first, edges, promise) in [
        ("fixed-window 10/s", 0, EDGES, Windows),
        // A hit a second earlier opened the window.
        ("fixed-window 10/s first-hit", 1, EDGE, FirstHit),
        ("sliding-window 10/s rounding down", 0, AFTER, RoundedDown),
        ("intervals 10/s", 0, EDGES, Refills),
        ("intervals 10/s burst 25", 0, EDGES, Refills),
        ("intervals 10/s burst 4", 0, EDGES, Refills),
        ("intervals 10/s greedy", 1, EDGE, Greedy),
        ("intervals 10/s burst 25 greedy", 1, EDGE, Greedy),
        ("intervals 10/s burst 4 greedy", 1, EDGE, Greedy),
    ] {
        let mut driven = Driven::new(text);
        assert!(first == 0 || driven.ask(first, 0), "{text}");
        assert_eq!(driven.drain(SECOND - 1), driven.burst - first, "{text}");
        for &edge in edges {
            driven.drain(edge);
            assert_reached(&driven, promise, SECOND - 1, edge);
        }
        if text.ends_with("rounding down") {
            let both = taken_and_allowed(&driven, Sliding, SECOND - 1, SECOND + 1);
            assert_eq!(both, (11, 10));
        }
    }
}

/// Under constant demand each window has one permit less, since a window that is not over keeps a
/// fraction of each permit of the previous one. With a limit of one, only every second window has a
/// permit.
#[test]
fn under_constant_demand_the_sliding_window_grants_one_less() {
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
            let due = driven.due(1, now).expect("it becomes due");
            assert!(due > now, "{text}: due at {due}, at {now}");
            now = due;
        }
        let later = |it: &&(u64, u64)| (2 * SECOND..10 * SECOND).contains(&it.0);
        let taken: u64 = driven.taken.iter().filter(later).map(|it| it.1).sum();
        assert_eq!(taken, in_eight_more, "{text}");
    }
}

/// Departures of a full queue: the free permits and one more, or the largest request, leave at
/// once, and then the rate applies.
#[test]
fn a_full_queue_departs_as_fast_as_its_bound_allows() {
    for (text, largest, free) in [
        ("leaky-queue 10/s", 1, 0),
        ("leaky-queue 10/s free 3", 1, 3),
        ("leaky-queue 10/s free 3", 6, 3),
    ] {
        let mut driven = Driven::new(text);
        assert!(driven.ask(largest, 0));
        let more = (0..20).filter(|_| driven.ask(1, 0)).count() as u64;
        assert_eq!(largest + more, 10, "{text}");
        let left = driven.left.iter().map(|it| it.0);
        let length = left.clone().max().expect("some leave") - driven.left[0].0;
        let allowed = Departures(free).allows(&driven, length);
        assert_eq!(allowed, 10, "{text}: in {length} ns");
    }
}

/// Departure times are whole nanoseconds, and a delay is rounded up. So two departures may be
/// closer than their interval, by less than a nanosecond.
#[test]
fn rounding_lets_two_departures_be_closer_than_an_interval() {
    let mut driven = Driven::new("leaky-queue 3/s");
    assert!(driven.ask(1, 0) && driven.ask(1, 0) && driven.ask(1, 0));
    let left: Vec<_> = driven.left.iter().map(|it| it.0).collect();
    assert_eq!(left, [0, 333_333_334, 666_666_667]);
    let one_and_rate = 1 + 3 * (left[2] - left[1]) / SECOND;
    assert_eq!(
        one_and_rate, 1,
        "without the nanosecond the bound would be one"
    );
}
