//! A `Gcra` that begins with one permit paces work: the next piece begins an interval after the one
//! before.
//! If no work came for longer than the slack, the interval is counted from the slack before now.

use crate::support::*;

const STEPS: u64 = debug_or_release(4_000, 40_000);

fn paced<C>(quota: Quota, slack: u64, clock: C) -> Limiter<Gcra, C> {
    let turns = Gcra::new(quota.burst(slack + 1).initial(1));
    Limiter::unstarted(turns.expect("a quota"), clock)
}

#[test]
fn paced_work_is_spaced_as_its_model_does() {
    for (interval, slack) in [(10, 0), (10, 10), (1_000_000, 10), (7, 3), (1, 100)] {
        let quota = Quota::per(1, Duration::from_nanos(interval));
        let mut random = Random(interval * 31 + slack);
        for start in [0, SECOND + 7] {
            let paced = paced(quota, slack, NoClock);
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
                let due = paced.reserve_at(1, tick(now)).expect("in time").due();
                assert_eq!(due, tick(next.max(now)), "at {now}, {interval}, {slack}");
            }
        }
    }
}

#[test]
fn paced_work_keeps_its_rate_when_work_begins_late() {
    const LATE: Duration = Duration::from_micros(150);
    let clock = ManualClock::new();
    let paced = paced(Quota::per_second(1000), 10, clock.clone());
    for _ in 0..=10_000 {
        let due = paced.reserve(1).expect("the clock goes on").due();
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
    let paced = paced(Quota::per_second(300), 0, NoClock);
    let interval = Duration::from_nanos(SECOND / 300);
    let (mut random, mut now, mut last) = (Random(1), 0, None);
    for _ in 0..STEPS {
        now += random.below(9_000_000);
        let due = paced.reserve_at(1, tick(now)).expect("in time").due();
        // This interval is rounded down.
        assert!(last.is_none_or(|last| due.saturating_since(last) > interval));
        last = Some(due);
    }
}
