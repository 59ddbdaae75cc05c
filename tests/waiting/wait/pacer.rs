//! Compares a pacer with its rule: the next piece of work begins an interval after the one before.
//! If no work came for longer than the slack, the interval is counted from the slack before now.

use std::time::Duration;

use tollgate::clock::{Clock, NoClock};
use tollgate::{ManualClock, Pacer, Quota};

use crate::support::{Random, SECOND, tick};

const STEPS: u64 = if cfg!(debug_assertions) {
    4_000
} else {
    40_000
};

#[test]
fn a_pacer_spaces_work_as_its_model_does() {
    let third = Pacer::with_slack(Quota::per_second(3), 0).expect("a quota");
    assert_eq!(third.interval().as_nanos(), 333_333_333);
    for (interval, slack) in [(10, 0), (10, 10), (1_000_000, 10), (7, 3), (1, 100)] {
        let quota = Quota::per(1, Duration::from_nanos(interval));
        let mut random = Random(interval * 31 + slack);
        for start in [0, SECOND + 7] {
            let pacer = Pacer::with_clock(quota, slack, NoClock).expect("a quota");
            assert_eq!((pacer.interval(), pacer.slack()), (quota.period(), slack));
            // When the last piece of work began, or could have.
            let (mut last, mut now) = (None, start);
            for _ in 0..STEPS {
                now += match random.below(8) {
                    0..=3 => 0,
                    4 | 5 => random.below(2 * interval),
                    6 => interval,
                    _ => random.below((slack + 3) * 2 * interval),
                };
                let next = match last {
                    None => now,
                    Some(last) if now > last + (slack + 1) * interval => now - slack * interval,
                    Some(last) => last + interval,
                };
                last = Some(next);
                let due = pacer.reserve_at(tick(now)).expect("in time").due();
                assert_eq!(due, tick(next.max(now)), "at {now}, {interval}, {slack}");
            }
        }
    }
}

#[test]
fn a_pacer_keeps_its_rate_when_work_begins_late() {
    const LATE: Duration = Duration::from_micros(150);
    let clock = ManualClock::new();
    let pacer = Pacer::with_clock(Quota::per_second(1000), 10, clock.clone()).expect("a quota");
    for _ in 0..=10_000 {
        let due = pacer.reserve().expect("the clock goes on").due();
        if due > clock.now() {
            clock.set(due.saturating_add(LATE));
        }
    }
    // A thousandth of a second each, and one late wake-up.
    assert!(clock.now() <= tick(10 * SECOND).saturating_add(LATE));
}

/// A three-hundredth of a second is not a whole number of nanoseconds.
#[test]
fn without_slack_work_is_never_less_than_an_interval_apart() {
    let pacer = Pacer::with_clock(Quota::per_second(300), 0, NoClock).expect("a quota");
    let (mut random, mut now, mut last) = (Random(1), 0, None);
    for _ in 0..STEPS {
        now += random.below(9_000_000);
        let due = pacer.reserve_at(tick(now)).expect("in time").due();
        // The reported interval is rounded down.
        assert!(last.is_none_or(|last| due.saturating_since(last) > pacer.interval()));
        last = Some(due);
    }
}
