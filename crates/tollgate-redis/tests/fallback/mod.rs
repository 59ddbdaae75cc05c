//! The share of one process, and the bounds of open limits, with the outage as an argument.

use std::time::Duration;

use super::*;

const RETRY: Duration = Duration::from_secs(7);

fn outage(node: u64, number: u64) -> Outage {
    Outage {
        node,
        ..at(Some(number), Duration::ZERO)
    }
}

fn at(number: Option<u64>, now: Duration) -> Outage {
    Outage {
        node: 0,
        number,
        now,
        probe_in: RETRY / 2,
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
    let deputy = deputy(Fallback::OpenAtMost {
        at_most: 3,
        per: None,
    });
    for number in 1..4 {
        let denied = Denied::later(1, RETRY);
        assert_eq!(
            deputy
                .take(b"a", 2, outage(0, number))
                .unwrap()
                .0
                .remaining(),
            1
        );
        assert_eq!(
            deputy
                .take(b"b", 1, outage(7, number))
                .unwrap()
                .0
                .remaining(),
            0
        );
        assert_eq!(deputy.take(b"a", 1, outage(0, number)).unwrap_err(), denied);
    }
}

#[test]
fn what_is_settled_after_its_outage_is_lost() {
    let deputy = deputy(Fallback::OpenAtMost {
        at_most: 3,
        per: None,
    });
    let (granted, episode) = deputy.take(b"a", 3, outage(0, 1)).unwrap();
    assert!(deputy.take(b"a", 3, outage(0, 2)).is_ok());
    let settled = deputy.settle(b"a", granted, 1, episode);
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

#[test]
fn an_open_limit_without_a_bound_grants_everything() {
    let deputy = deputy(Fallback::Open);
    for _ in 0..100 {
        let (granted, _) = deputy.take(b"a", 3, outage(0, 1)).unwrap();
        // Answers say that a key has no more than its limit.
        assert_eq!((granted.n(), granted.remaining()), (3, 2));
        assert!(deputy.check(b"a", 5, outage(0, 1)).is_ok());
    }
}

/// Returns how many of nine permits a fallback grants.
fn granted(deputy: &Deputy, number: Option<u64>, now: Duration) -> usize {
    let taken = (0..9).map(|_| deputy.take(b"a", 1, at(number, now)));
    taken.filter(Result::is_ok).count()
}

const MOMENT: Duration = Duration::from_nanos(1);

#[test]
fn an_open_limit_with_a_period_grants_its_bound_in_each_over_outages_and_calls_that_fail() {
    let per = Duration::from_secs(90);
    let deputy = deputy(Fallback::OpenAtMost {
        at_most: 3,
        per: Some(per),
    });
    let begun = Duration::from_secs(1000);
    let granted = |number, after| granted(&deputy, number, begun + after);
    assert_eq!(granted(Some(1), Duration::ZERO), 3);
    assert_eq!(granted(Some(2), per - MOMENT), 0);
    assert_eq!(granted(None, per - MOMENT), 0);
    assert_eq!(granted(None, per), 3);
    assert_eq!(granted(Some(7), per * 2 - MOMENT), 0);
    // A caller that is late renews nothing.
    assert_eq!(granted(Some(1), Duration::ZERO), 0);
    // The next period begins with its first grant.
    assert_eq!(granted(Some(7), per * 5), 3);
    assert_eq!(granted(Some(7), per * 6 - MOMENT), 0);
    // A period of which everything came back is over.
    let outage = at(None, begun + per * 6);
    let (all, episode) = deputy.take(b"a", 3, outage).unwrap();
    assert_eq!(deputy.undo(b"a", all, episode), 3);
    assert_eq!(granted(None, per * 6 + per / 2), 3);
    assert_eq!(granted(None, per * 7), 0);
}

#[test]
fn calls_that_fail_without_an_outage_have_a_bound_for_each_minute() {
    let deputy = deputy(Fallback::OpenAtMost {
        at_most: 3,
        per: None,
    });
    let minute = Duration::from_secs(60);
    assert_eq!(granted(&deputy, None, minute - MOMENT), 3);
    assert_eq!(granted(&deputy, None, minute * 2 - MOMENT * 2), 0);
    assert_eq!(granted(&deputy, None, minute * 2 - MOMENT), 3);
    // An outage has a count of its own, however long it is.
    assert_eq!(granted(&deputy, Some(1), minute * 2), 3);
    assert_eq!(granted(&deputy, Some(1), minute * 2000), 0);
}

#[test]
fn what_a_late_caller_takes_in_another_outage_comes_back() {
    let deputy = deputy(Fallback::OpenAtMost {
        at_most: 3,
        per: None,
    });
    assert!(deputy.take(b"a", 1, outage(0, 2)).is_ok());
    // Its outage was over when it took.
    let (late, episode) = deputy.take(b"a", 2, outage(0, 1)).unwrap();
    assert!(deputy.check(b"a", 1, outage(0, 1)).is_err());
    assert_eq!(deputy.undo(b"a", late, episode), 2);
    for _ in 0..9 {
        assert!(deputy.check(b"a", 2, outage(0, 1)).is_ok());
    }
    let (two, episode) = deputy.take(b"a", 2, outage(0, 2)).unwrap();
    // Those of an earlier outage are of no use.
    assert!(deputy.take(b"a", 3, outage(0, 3)).is_ok());
    assert_eq!(deputy.undo(b"a", two, episode), 0);
}
