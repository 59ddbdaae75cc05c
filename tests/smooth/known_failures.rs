//! What went wrong in others, and does not here.

use std::time::Duration;

use tollgate::Tick;

use crate::{SECOND, bursty, tick, warming_up};

/// Guava cuts each cost to whole microseconds: at three million a second nothing is left of it, and all are let in.
#[test]
fn fast_rates_are_limited() {
    for rate in [1.5e6, 3e6, 7e8, 1e9] {
        let gate = bursty(rate);
        let calls = 100_000_u64;
        let mut due = Tick::ZERO;
        for _ in 0..=calls {
            due = gate.reserve_at(1, Tick::ZERO).expect("a turn").due();
        }
        let exact = calls as f64 * 1e9 / rate;
        // A nanosecond a call late at most, and never early.
        let took = due.as_nanos() as f64;
        assert!(
            took >= exact && took <= exact + calls as f64,
            "{rate}: {took}"
        );
        // Who takes many at once loses it once.
        let gate = bursty(rate);
        let _ = gate.reserve_at(1_000_000_000, Tick::ZERO);
        let took = gate.next_free_at(Tick::ZERO).as_nanos() as f64;
        assert!(
            took >= 1e18 / rate && took <= 1e18 / rate + 1.0,
            "{rate}: {took}"
        );
    }
    let cut = bursty(3e6).in_whole_micros();
    for _ in 0..1_000 {
        assert!(
            cut.try_acquire_at(Tick::ZERO).is_ok(),
            "that is what Guava does"
        );
    }
}

/// With a warm-up of 0 Guava stores no number once it has been idle, and is free from then on.
#[test]
fn no_warm_up_is_a_steady_rate() {
    for micros in [false, true] {
        let gate = warming_up(10.0, Duration::ZERO);
        let gate = if micros { gate.in_whole_micros() } else { gate };
        for round in 1..10 {
            let start = round * 1_000 * SECOND;
            for call in 0..100 {
                let turn = gate.reserve_at(1, tick(start)).expect("a turn");
                assert_eq!(turn.due(), tick(start + call * SECOND / 10));
            }
            assert_eq!(gate.stored_at(tick(start + 500 * SECOND)), 0.0);
            gate.set_rate_at(20.0, tick(start)).expect("a rate");
            gate.set_rate_at(10.0, tick(start)).expect("a rate");
            assert_eq!(gate.stored_at(tick(start + 500 * SECOND)), 0.0);
        }
    }
}

/// The remainder of a refill is not dropped: who asks ever so often gets the rate.
#[test]
fn asking_often_loses_nothing() {
    let gate = bursty(1.0);
    let mut taken = 0;
    for call in 0..1_000_000_u64 {
        // 1999 ns apart.
        taken += u64::from(gate.try_acquire_at(tick(call * 1_999)).is_ok());
    }
    // The first at once, one that the first one's wait brings, and those of nearly two seconds.
    assert_eq!(taken, 2);
    let gate = bursty(1_000.0);
    let mut taken = 0;
    for call in 0..1_000_000_u64 {
        taken += u64::from(gate.try_acquire_at(tick(call * 1_999)).is_ok());
    }
    assert!((1_999..=2_000).contains(&taken), "{taken}");
}
