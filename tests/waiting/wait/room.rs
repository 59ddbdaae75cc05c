//! A waiting room admits exactly as many waiters as it has places.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tollgate::{LeakyBucket, Limiter, ManualClock, Quota, TokenBucket, WaitingRoom};

use crate::support::{bucket, millis, poll};

#[test]
fn a_caller_that_would_be_too_late_takes_no_place() {
    let (clock, limiter) = bucket(Quota::per_second(10).burst(1));
    let room = WaitingRoom::for_wait(&limiter, Duration::from_millis(250));
    let dues = [(); 3].map(|()| millis(room.reserve(1).expect("a place").due()));
    assert_eq!(dues, [0, 100, 200]);
    for _ in 0..2 {
        let entered = pin!(room.enter_with_timer(&clock, 1));
        let Poll::Ready(Err(full)) = poll(entered) else {
            panic!("it waits");
        };
        assert_eq!(full.retry_after(), Some(Duration::from_millis(50)));
        assert_eq!(room.enter(1), Err(full));
        assert_eq!(room.reserve(1).map(drop), Err(full));
    }
    assert_eq!(room.waiting_permits(), 2);
}

#[test]
fn a_waiting_room_of_a_queue_reports_how_many_wait() {
    let queue = LeakyBucket::queue(Quota::per_second(10).burst(5)).expect("a quota");
    let room = WaitingRoom::for_permits(Limiter::with_clock(queue, ManualClock::new()), 4);
    let are_due = [(); 5].map(|()| room.reserve(1).expect("a place").is_due());
    assert_eq!(are_due, [true, false, false, false, false]);
    assert!(room.reserve(1).is_err(), "it is full");
    assert_eq!(room.waiting_permits(), 4);
}

#[test]
fn a_waiting_room_holds_exactly_its_size() {
    for (n, bursts) in [
        (7, &[1][..]),
        (13, &[1, 6]),
        (300, &[1]),
        (13_000_000, &[1, 4]),
        (300_000_000, &[1, 2]),
        (700_000_000, &[1, 3]),
        (999_999_937, &[1, 4]),
        (3_000_000_000, &[5]),
    ] {
        for (burst, places) in bursts
            .iter()
            .flat_map(|burst| [0, 1, 2, 3, 10, 100, 1000, 10_000].map(|places| (*burst, places)))
        {
            let bucket = TokenBucket::new(Quota::per_second(n).burst(burst)).expect("a quota");
            let limiter = Limiter::with_clock(bucket, ManualClock::new());
            let room = WaitingRoom::for_permits(limiter, places);
            let reserved = std::iter::from_fn(|| room.reserve(1).ok()).take(20_000);
            let waiting = reserved.filter(|one| !one.is_due()).count() as u64;
            // Permits that come in the same nanosecond, or nearly, are due together.
            let soon = (n + 100_000) / 1_000_000_000;
            assert!(
                (places..=places + soon).contains(&waiting),
                "{waiting} wait in {places} places at {n} a second, {burst} at once"
            );
        }
    }
}
