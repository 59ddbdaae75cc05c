//! The share of one process, and the bound of an open limit, with the outage as an argument.

use std::time::Duration;

use super::*;

const RETRY: Duration = Duration::from_secs(7);

fn outage(node: u64, number: u64) -> Outage {
    Outage {
        node,
        episode: Episode::Outage(number),
        retry_after: RETRY,
    }
}

fn deputy(fallback: Fallback) -> Deputy {
    let limit = "5/s".parse().unwrap();
    Deputy::new(fallback, &limit).unwrap()
}

#[test]
fn the_share_of_one_of_three_processes_is_a_third_and_at_least_one_permit() {
    let (one, three) = (Duration::from_secs(1), Duration::from_secs(3));
    let bucket = |n, burst| TokenBucket::new(Quota::per(n, three).burst(burst)).unwrap();
    let fixed = |n| FixedWindow::new(Quota::per(n, one)).unwrap();
    let first_hit = fixed(3).opened_by_first_hit().unwrap();
    let sliding = |n| SlidingWindow::new(Quota::per(n, one)).unwrap();
    for (limit, expected) in [
        ("token-bucket 10/s burst 7", bucket(10, 2).into()),
        ("leaky-queue 10/s burst 7 free 1", bucket(10, 2).into()),
        ("token-bucket 1/s", bucket(1, 1).into()),
        ("fixed-window 10/s", fixed(3).into()),
        ("fixed-window 2/s", fixed(1).into()),
        ("fixed-window 10/s first-hit", first_hit.into()),
        ("sliding-window 10/s", sliding(3).into()),
        ("sliding-log 10/s", sliding(3).into()),
        ("sliding-log 1/s", sliding(1).into()),
    ] {
        let expected: AnyAlgorithm = expected;
        assert_eq!(share(&limit.parse().unwrap(), 3), Ok(expected), "{limit}");
    }
}

#[test]
fn an_open_limit_grants_its_bound_in_each_outage_over_all_nodes() {
    let deputy = deputy(Fallback::Open { at_most: 3 });
    for number in 1..4 {
        let denied = Denied::later(1, RETRY);
        assert_eq!(
            deputy.take(b"a", 2, outage(0, number)).unwrap().remaining(),
            1
        );
        assert_eq!(
            deputy.take(b"b", 1, outage(7, number)).unwrap().remaining(),
            0
        );
        assert_eq!(deputy.take(b"a", 1, outage(0, number)).unwrap_err(), denied);
    }
}

#[test]
fn what_is_settled_after_its_outage_is_lost() {
    let deputy = deputy(Fallback::Open { at_most: 3 });
    let granted = deputy.take(b"a", 3, outage(0, 1)).unwrap();
    assert!(deputy.take(b"a", 3, outage(0, 2)).is_ok());
    let settled = deputy.settle(b"a", granted, 1, outage(0, 1).episode);
    assert_eq!((settled.returned, settled.lost), (0, 2));
    assert!(deputy.take(b"a", 1, outage(0, 2)).is_err());
}

#[test]
fn a_closed_limit_denies_until_the_next_probe() {
    let deputy = deputy(Fallback::Closed);
    let denied = Denied::later(2, RETRY);
    assert_eq!(deputy.take(b"a", 2, outage(0, 1)).unwrap_err(), denied);
    assert_eq!(deputy.check(b"a", 2, outage(0, 1)).unwrap_err(), denied);
}
