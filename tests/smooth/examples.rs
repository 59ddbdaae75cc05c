//! What each limiter answers, in numbers that were worked out by hand.

use std::time::Duration;

use tollgate::{Clock, ManualClock, Sleeps, SmoothBursty, Tick};

use crate::{SECOND, bursty, tick, warming_up};

const MS: u64 = 1_000_000;

#[test]
fn who_comes_next_waits_for_those_before() {
    let gate = bursty(10.0);
    let wait = |n, at| gate.reserve_at(n, tick(at)).expect("a turn").wait();
    assert_eq!(wait(5, 0), Duration::ZERO);
    assert_eq!(wait(1, 0), Duration::from_millis(500));
    assert_eq!(wait(1, 100 * MS), Duration::from_millis(500));
    assert_eq!(gate.next_free_at(Tick::ZERO), tick(700 * MS));
    // An older tick is no way round: it waits until the same moment.
    assert_eq!(wait(1, 50 * MS), Duration::from_millis(650));
}

#[test]
fn stored_permits_are_free_and_the_rest_is_paid_by_the_next() {
    let gate = bursty(10.0);
    let now = tick(10 * SECOND);
    assert_eq!(gate.stored_at(now), 10.0);
    let _ = gate.reserve_at(4, now);
    assert_eq!(gate.stored_at(now), 6.0);
    assert_eq!(gate.next_free_at(now), now);
    let _ = gate.reserve_at(8, now);
    assert_eq!(gate.stored_at(now), 0.0);
    assert_eq!(gate.next_free_at(now), tick(10_200 * MS));
}

#[test]
fn parts_of_a_permit_count() {
    let gate = bursty(10.0);
    let now = tick(50 * MS);
    assert_eq!(gate.stored_at(now), 0.5);
    let _ = gate.reserve_at(1, now);
    assert_eq!(gate.next_free_at(now), tick(100 * MS));
}

#[test]
fn a_timeout_is_held_against_the_wait() {
    let gate = bursty(10.0);
    let _ = gate.reserve_at(10, Tick::ZERO);
    let ask = |timeout, at| gate.try_acquire_timeout_at(1, Duration::from_nanos(timeout), tick(at));
    let denied = ask(SECOND - 1, 0).unwrap_err();
    assert_eq!(denied.retry_after(), Some(Duration::from_nanos(1)));
    // The same again so much later, and what is told is true.
    assert!(ask(SECOND - 1, 0).is_err());
    let turn = ask(SECOND - 1, 1).expect("in time");
    assert_eq!((turn.due(), turn.n()), (tick(SECOND), 1));
    assert_eq!(turn.wait(), Duration::from_nanos(SECOND - 1));
    // Zero is a try, to the nanosecond.
    assert!(gate.try_acquire_at(tick(1_100 * MS - 1)).is_err());
    assert!(gate.try_acquire_n_at(70, tick(1_100 * MS)).is_ok());
    assert!(ask(u64::MAX, 0).is_ok());
}

#[test]
fn a_denial_takes_nothing() {
    let gate = bursty(10.0);
    let _ = gate.reserve_at(10, Tick::ZERO);
    for _ in 0..100 {
        assert!(gate.try_acquire_at(tick(SECOND - 1)).is_err());
    }
    assert_eq!(gate.next_free_at(Tick::ZERO), tick(SECOND));
}

#[test]
fn none_goes_at_once_and_takes_nothing() {
    let gate = bursty(10.0);
    let _ = gate.reserve_at(10, Tick::ZERO);
    let turn = gate.reserve_at(0, tick(7)).expect("nothing");
    assert_eq!((turn.n(), turn.due(), turn.at()), (0, tick(7), tick(7)));
    assert!(gate.try_acquire_n_at(0, tick(7)).is_ok());
    assert_eq!(gate.next_free_at(tick(7)), tick(SECOND));
}

#[test]
fn a_cold_start_is_the_line_that_its_definition_draws() {
    let gate = warming_up(2.0, Duration::from_secs(4));
    assert_eq!((gate.max_stored(), gate.rate()), (8.0, 2.0));
    let dues = [0, 1_375, 2_500, 3_375, 4_000, 4_500, 5_000];
    for due in dues {
        let turn = gate.reserve_at(1, Tick::ZERO).expect("a turn");
        assert_eq!(turn.due(), tick(due * MS));
    }
    // Seven of eight are taken, and come back in as many half seconds.
    assert_eq!(gate.stored_at(Tick::ZERO), 1.0);
    assert_eq!(gate.stored_at(tick(5_500 * MS + SECOND)), 3.0);
    assert_eq!(gate.stored_at(tick(100 * SECOND)), 8.0);
}

#[test]
fn another_rate_keeps_turns_and_the_part_that_is_stored() {
    let gate = bursty(10.0);
    let _ = gate.reserve_at(10, Tick::ZERO);
    gate.set_rate_at(1_000.0, tick(0)).expect("a rate");
    assert_eq!(gate.next_free_at(Tick::ZERO), tick(SECOND));
    // What came before the change came at the old rate.
    assert_eq!(gate.stored_at(tick(1_500 * MS)), 500.0);
    gate.set_rate_at(2.0, tick(1_500 * MS)).expect("a rate");
    assert_eq!((gate.rate(), gate.max_stored()), (2.0, 2.0));
    assert_eq!(gate.stored_at(tick(1_500 * MS)), 1.0);
    // And that of the cold: half cold stays half cold.
    let gate = warming_up(2.0, Duration::from_secs(4));
    let _ = gate.reserve_at(4, Tick::ZERO);
    gate.set_rate_at(200.0, Tick::ZERO).expect("a rate");
    assert_eq!(
        (gate.stored_at(Tick::ZERO), gate.max_stored()),
        (400.0, 800.0)
    );
}

#[test]
fn every_sixteenth_change_of_the_rate_costs_a_nanosecond() {
    let gate = bursty(10.0);
    let _ = gate.reserve_at(10, Tick::ZERO);
    for changes in 1..=100_u64 {
        gate.set_rate_at(changes as f64, Tick::ZERO)
            .expect("a rate");
        assert_eq!(gate.next_free_at(Tick::ZERO), tick(SECOND + changes / 16));
        assert_eq!(gate.rate(), changes as f64);
    }
}

#[test]
fn another_store_is_what_was_asked_for() {
    let gate = bursty(10.0).max_burst(Duration::from_millis(2_500));
    let gate = gate.expect("a store");
    assert_eq!(gate.stored_at(tick(1 << 50)), 25.0);
    let none = bursty(10.0).max_burst(Duration::ZERO).expect("a store");
    assert_eq!(none.stored_at(tick(SECOND)), 0.0);
    let _ = none.reserve_at(1, tick(SECOND));
    assert_eq!(none.next_free_at(Tick::ZERO), tick(1_100 * MS));
    // A flat line: what is stored costs as much as what is not.
    let flat = warming_up(10.0, Duration::from_secs(3)).cold_factor(1.0);
    let flat = flat.expect("a factor");
    for due in 0..100 {
        let turn = flat.reserve_at(1, Tick::ZERO).expect("a turn");
        assert_eq!(turn.due(), tick(due * 100 * MS));
    }
}

/// A clock that goes on by a microsecond whenever it is read: who waits for so little needs no time.
struct Hurried(ManualClock);

impl Clock for Hurried {
    fn now(&self) -> Tick {
        self.0.advance(Duration::from_micros(1))
    }
}

impl Sleeps for Hurried {
    fn sleep_until(&self, due: Tick, now: Tick) -> Tick {
        let late = due.max(now).saturating_add(Duration::from_nanos(1));
        self.0.set(self.0.now().max(late));
        self.0.now()
    }
}

#[test]
fn who_waits_wakes_up_in_time_and_not_before() {
    let gate = SmoothBursty::with_clock(100_000.0, Hurried(ManualClock::new()));
    let gate = gate.expect("a rate").max_burst(Duration::ZERO);
    let gate = gate.expect("no store");
    let mut last = gate.acquire().expect("a turn");
    for n in 1..20 {
        let turn = match n % 2 {
            0 => gate.acquire_n(n).expect("a turn"),
            _ => gate
                .try_acquire_timeout(n, Duration::from_secs(1))
                .expect("a turn"),
        };
        assert_eq!(
            turn.due(),
            last.due()
                .saturating_add(Duration::from_micros(10) * last.n() as u32)
        );
        assert!(gate.clock().0.now() >= turn.due(), "it was early");
        last = turn;
    }
    // A clock that stands still, at which nobody waits who need not.
    let gate = SmoothBursty::with_clock(1.0, ManualClock::new()).expect("a rate");
    assert!(gate.acquire_n(100).is_ok());
    let denied = gate.try_acquire_timeout(1, Duration::from_secs(99));
    assert!(denied.is_err());
}
