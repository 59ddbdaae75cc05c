//! Every order of a few reservations and cancellations on small buckets. After each verb the bound
//! is checked over every interval: permits at the ticks at which they are due, minus those that
//! came back afterwards.

use tollgate::algorithm::Reserve;

use super::orders::{MORE, Search};
use crate::support::*;

const INTERVAL_NS: u64 = 2;

/// Checks every interval that begins and ends when a caller goes: at most `burst` permits at once,
/// and one more every `INTERVAL_NS`.
fn check<A>(search: &Search<A>, burst: u64) -> Result<(), String> {
    let going = || search.held.iter().filter(|held| held.goes > 0);
    for (first, last) in going().flat_map(|first| going().map(move |last| (first, last))) {
        let (a, b) = (first.used_at, last.used_at);
        if a > b {
            continue;
        }
        let inside = going().filter(|held| (a..=b).contains(&held.used_at));
        let goes: u64 = inside.map(|held| held.goes).sum();
        let back = search
            .came_back
            .iter()
            .filter(|(at, _)| (a..=b).contains(at));
        let back: u64 = back.map(|(_, n)| n).sum();
        let length = b.as_nanos() - a.as_nanos();
        if goes.saturating_sub(back) * INTERVAL_NS > burst * INTERVAL_NS + length {
            return Err(format!("{goes} less {back} from {a:?} to {b:?}"));
        }
    }
    Ok(())
}

fn try_every_order(algorithm: impl Reserve + Debug, burst: u64, largest: u64, steps: u32) {
    let search = Search {
        largest,
        takes: false,
        is_line: true,
        apart: [1, INTERVAL_NS],
        ..Search::new(algorithm)
    };
    let search = search.run(steps + MORE, |search| check(search, burst));
    assert_eq!((search.excess, search.denied), (None, 0));
    assert!(search.cancelled_in_line > 20);
}

fn quota(burst: u64) -> Quota {
    Quota::per(1, Duration::from_nanos(INTERVAL_NS)).burst(burst)
}

#[test]
fn reservations_of_a_token_bucket_are_never_early() {
    for (burst, steps) in [(1, 6), (2, 6), (3, 5)] {
        let bucket = TokenBucket::new(quota(burst)).expect("a quota");
        try_every_order(bucket, burst, burst, steps);
    }
}

#[test]
fn reservations_of_a_queue_leave_at_the_rate() {
    for (burst, free) in [(1, 0), (3, 0), (3, 1), (4, 2), (4, 3)] {
        let queue = LeakyBucket::queue(quota(burst)).expect("a quota");
        try_every_order(queue.free(free), free + 1, (free + 1).min(burst), 5);
    }
}
