//! Compares the log with a model that remembers the tick of every permit.

use super::{MUST_SEE, OPERATIONS, run};
use crate::algorithm::counted::Counted;
use crate::support::subject::{Subject, subject};
use crate::support::verbs::*;
use crate::support::*;

/// The number of ticks that the log distinguishes, as documented: ticks have 62 bits.
const TOLD: u128 = 1 << 62;

subject!([] SlidingLog<ManualClock>;
    take_verbs forecast_verbs);

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
                let model = Counted::of_log(n, period, TOLD);
                seen.add(&run(&limiter, model, &mut random, 400));
            }
        }
        seen.check(OPERATIONS, &[MUST_SEE]);
    });
}
