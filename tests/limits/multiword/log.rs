//! A model of the log that remembers the tick of every permit.

use super::{MUST_SEE, OPERATIONS, run};
use crate::support::reference::{Fraction, Reference, Span};
use crate::support::subject::{Subject, by, verbs_of_all};
use crate::support::*;

/// The last tick that the log distinguishes, as documented: ticks have 63 bits.
const LAST: u64 = u64::MAX >> 1;

#[derive(Debug, Clone)]
struct Log {
    limit: u64,
    period: u64,
    /// The ticks at which permits were taken, in ascending order.
    taken: Vec<u128>,
}

impl Log {
    fn new(n: u64, period: u64) -> Self {
        Self {
            limit: n,
            period,
            taken: Vec::new(),
        }
    }

    fn newest(&self) -> u128 {
        self.taken.last().copied().unwrap_or(0)
    }
}

impl Reference for Log {
    type Mark = ();

    fn limit(&self) -> u64 {
        self.limit
    }

    fn period(&self) -> u64 {
        self.period
    }

    fn horizon(&self) -> Option<u64> {
        Some(LAST)
    }

    /// Returns the permits taken in the period up to `time`, or up to the newest entry if that is
    /// later.
    fn weight(&self, time: u128) -> Fraction {
        let time = time.max(self.newest());
        let expired = self
            .taken
            .partition_point(|taken| taken + u128::from(self.period) <= time);
        Fraction::whole((self.taken.len() - expired) as u64)
    }

    fn counted_at(&self, now: u64) -> u64 {
        now.max(u64::try_from(self.newest()).expect("a tick"))
    }

    /// Computing it would need a search.
    fn remaining(&self, _now: u64) -> Span {
        Span::only(0)
    }

    fn take(&mut self, now: u64, n: u64) {
        let at = self.clock(now).max(self.newest());
        self.taken.extend((0..n).map(|_| at));
    }

    fn mark(&self, _now: u64) {}

    fn reset(&mut self) {
        self.taken.clear();
    }

    /// Returns when the oldest counted permit expires.
    fn edge(&self, now: u64) -> u64 {
        let expired = self.taken.len() as u128 - self.weight(now.into()).num;
        let oldest = self.taken.get(expired as usize).copied();
        let edge = oldest.unwrap_or(now.into()) + u128::from(self.period);
        u64::try_from(edge).unwrap_or(u64::MAX)
    }
}

impl Subject for SlidingLog<ManualClock> {
    const LACKS: &'static [&'static str] =
        &["undo", "refund", "charge", "level", "is_idle", "reset"];

    verbs_of_all! {}
}

/// Permits and a period.
const LOGS: [(u64, u64); 18] = [
    (1, 1),
    (2, 1),
    (3, 1),
    (1, 97),
    (2, 97),
    (3, 1_000),
    (1, SECOND),
    (3, SECOND),
    (5, 999_999_937),
    (10, SECOND),
    (100, 60 * SECOND),
    (999, DAY),
    (1000, SECOND),
    (1000, 3600 * SECOND),
    (1024, 30 * DAY + 1),
    (2, YEAR),
    (51, FIFTY_YEARS - 1),
    (1000, FIFTY_YEARS),
];

#[test]
fn a_log_matches_its_definition() {
    deadline("a log", || {
        let (mut random, mut seen) = (Random(0x0070_11a7_e402), Seen::default());
        while seen.count("operation") < OPERATIONS {
            for (n, period) in LOGS {
                let limiter = SlidingLog::with_clock(per_ns(n, period), ManualClock::new());
                let limiter = limiter.expect("a log");
                seen.add(&run(&limiter, Log::new(n, period), &mut random, 400));
            }
        }
        seen.check(OPERATIONS, &[MUST_SEE]);
    });
}
