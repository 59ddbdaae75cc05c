//! The share of one process, and the bounds of open limits, with the outage as an argument.

use std::time::Duration;

use super::*;

const RETRY: Duration = Duration::from_secs(7);

fn outage(node: u64, number: u64) -> Outage {
    at(Some(number), Duration::ZERO, node)
}

fn at(number: Option<u64>, age: Duration, node: u64) -> Outage {
    Outage {
        node,
        number,
        age,
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
    let deputy = deputy(Fallback::OpenAtMost {
        at_most: 3,
        per: None,
    });
    let granted = deputy.take(b"a", 3, outage(0, 1)).unwrap();
    assert!(deputy.take(b"a", 3, outage(0, 2)).is_ok());
    let settled = deputy.settle(b"a", granted, 1, deputy.episode(outage(0, 1)));
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
        let granted = deputy.take(b"a", 3, outage(0, 1)).unwrap();
        // Answers say that a key has no more than its limit.
        assert_eq!((granted.n(), granted.remaining()), (3, 2));
        assert!(deputy.check(b"a", 5, outage(0, 1)).is_ok());
    }
}

#[test]
fn an_open_limit_with_a_period_grants_its_bound_in_each_period_of_an_outage() {
    let per = Duration::from_secs(90);
    let deputy = deputy(Fallback::OpenAtMost {
        at_most: 3,
        per: Some(per),
    });
    let granted = |number, age| {
        let outage = at(number, age, 0);
        let taken = (0..9).map(|_| deputy.take(b"a", 1, outage));
        taken.filter(Result::is_ok).count()
    };
    let moment = Duration::from_nanos(1);
    assert_eq!(granted(Some(1), Duration::ZERO), 3);
    assert_eq!(granted(Some(1), per - moment), 0);
    assert_eq!(granted(Some(1), per), 3);
    assert_eq!(granted(Some(1), per * 2 - moment), 0);
    // A caller that is late renews nothing.
    assert_eq!(granted(Some(1), Duration::ZERO), 0);
    assert_eq!(granted(Some(2), Duration::ZERO), 3);
    assert_eq!(granted(Some(1), per * 9), 0);
    // Calls that fail without an outage have a count of their own.
    assert_eq!(granted(None, per), 3);
    assert_eq!(granted(None, per * 2 - moment), 0);
    assert_eq!(granted(None, per * 2), 3);
}

#[test]
fn calls_that_fail_without_an_outage_have_a_bound_for_each_minute() {
    let deputy = deputy(Fallback::OpenAtMost {
        at_most: 3,
        per: None,
    });
    let episodes =
        [0, 59, 60, 7 * 60].map(|age| deputy.episode(at(None, Duration::from_secs(age), 0)));
    assert_eq!(episodes, [0, 0, 1, 7].map(Episode::Alone));
    let outage = at(Some(1), Duration::from_secs(24 * 3600), 0);
    assert_eq!(deputy.episode(outage), Episode::Outage(1, 0));
}

#[test]
fn an_open_outage_grants_its_bound_once_however_long_it_is() {
    let mut bound = GrantedIn::default();
    let [first, second] = [1, 2].map(|number| Episode::Outage(number, 0));
    let mut granted = 0;
    for _ in 0..1000 {
        granted += u64::from(bound.take(first, 3, 10).is_some()) * 3;
    }
    assert_eq!(granted, 9);
    assert_eq!(bound.take(first, 1, 10), Some(0));
    assert_eq!(bound.give(first, 4), 4);
    assert_eq!(bound.take(first, 4, 10), Some(0));
    assert_eq!(bound.take(second, 10, 10), Some(0));
    // A decision that is late, from an earlier outage, does not renew it.
    assert!(bound.take(first, 1, 10).is_none());
    assert!(bound.take(second, 1, 10).is_none());
    assert_eq!(bound.give(first, 5), 0);
    // A minute has a count of its own.
    let minute = Episode::Alone(2);
    assert_eq!(bound.take(minute, 10, 10), Some(0));
    assert!(bound.take(minute, 1, 10).is_none());
    assert_eq!(bound.give(second, 1), 1);
    assert!(bound.take(minute, 1, 10).is_none());
}
