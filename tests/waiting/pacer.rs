//! A pacer beside the rule that it keeps, as others state it: the next piece of work begins an interval after the
//! one before, or, if nobody came for longer than the slack, the slack ago.

use std::time::Duration;

use tollgate::{NoClock, Pacer, Quota, Tick};

/// One number: when the last piece of work began, or could have.
struct Rule {
    last: Option<i128>,
    interval: i128,
    slack: i128,
}

impl Rule {
    fn take(&mut self, now: i128) -> i128 {
        let next = match self.last {
            None => now,
            Some(last) if now - last > self.slack + self.interval => now - self.slack,
            Some(last) => last + self.interval,
        };
        self.last = Some(next);
        next.max(now)
    }
}

#[test]
fn it_spaces_work_by_the_rule() {
    let mut compared = 0;
    for (interval, slack) in [(10, 0), (10, 10), (1_000_000, 10), (7, 3), (1, 100)] {
        let quota = Quota::per(1, Duration::from_nanos(interval));
        let mut seed = interval * 31 + slack + 1;
        for start in [0, 1_000_000_007] {
            let pacer = Pacer::with_clock(quota, slack, NoClock).expect("a quota");
            let mut rule = Rule {
                last: None,
                interval: interval.into(),
                slack: (interval * slack).into(),
            };
            let mut now = start;
            for _ in 0..20_000 {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                now += match seed % 8 {
                    0..=3 => 0,
                    4 | 5 => seed / 8 % (2 * interval),
                    6 => interval,
                    _ => seed / 8 % ((slack + 3) * 2 * interval),
                };
                let due = pacer.reserve_at(Tick::from_nanos(now)).expect("in time");
                let due = i128::from(due.due().as_nanos());
                assert_eq!(due, rule.take(now.into()), "at {now}, {interval}, {slack}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 200_000);
}
