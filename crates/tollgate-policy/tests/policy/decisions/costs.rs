//! Costs at their bounds, and what comes back when a request ends.

use std::time::Duration;

use tollgate::Denied;
use tollgate_policy::{Outcome, Reason};

use crate::decisions::policy;

const NONE: [(&str, &str); 0] = [];

fn used(text: &str) -> [(&str, &str); 1] {
    [("used", text)]
}

#[test]
fn a_cost_that_is_no_number_is_the_default() {
    let policy = policy(
        "[[rule]]\nname = 'a'\nlimit = '1000/h'\ncost = { estimate = 'n', default = 7, max = 50 }",
    );
    let cost = |text: &str| {
        let decision = policy.decide(&[("n", text)]);
        let cost = decision.asked().next().map(|asked| asked.cost());
        decision.undo();
        cost.expect("it asks one limit")
    };
    let most = u64::MAX.to_string();
    let more = "18446744073709551616";
    let costs = [
        "0", "3", "50", "51", &most, more, "-5", "x", "", "1.5", " 4 ",
    ]
    .map(cost);
    // A cost of 0 is at least 1, and a number that is too large for a word is the largest.
    assert_eq!(costs, [1, 3, 50, 50, 50, 50, 7, 7, 7, 7, 4]);
    assert_eq!(policy.decide(&()).remaining(), Some(993));
}

#[test]
fn a_cost_above_the_burst_is_never_granted_and_takes_nothing() {
    let policy =
        policy("[[rule]]\nname = 'a'\nlimit = ['10/h', '5/h']\ncost = { estimate = 'n', min = 0 }");
    for n in ["6", "11", "18446744073709551615"] {
        let decision = policy.decide(&[("n", n)]);
        assert_eq!(decision.retry_after(), None, "{n}");
        let denied = match decision.reason() {
            Some(Reason::Limit { denied, .. }) => denied,
            other => panic!("{n}: {other:?}"),
        };
        assert!(matches!(denied, Denied::Never { .. }), "{n}: {denied:?}");
    }
    assert_eq!(policy.decide(&[("n", "5")]).remaining(), Some(0));
    // It costs nothing, so it is allowed.
    assert!(policy.decide(&[("n", "0")]).is_allowed());
    assert!(!policy.decide(&[("n", "1")]).is_allowed());
}

#[test]
fn the_actual_cost_is_settled_whatever_it_is() {
    for limit in [
        "'100/h'",
        "['100/h', '1000/h']",
        "['concurrency 9', '100/h']",
    ] {
        for (actual, left) in [("0", 99), ("4", 95), ("10", 89), ("60", 39)] {
            let policy = policy(&format!(
                "[[rule]]\nname = 'a'\nlimit = {limit}\ncost = {{ default = 10, settle = 'used' }}"
            ));
            let _ = policy.decide(&()).settle(&used(actual));
            let decision = policy.decide(&());
            // Of this request ten.
            let asked = decision.asked().find(|it| it.limit() == "100/h");
            assert_eq!(
                asked.map(|it| it.remaining() + 9),
                Some(left),
                "{limit} {actual}"
            );
        }
        for actual in ["", "x", "-1"] {
            let policy = policy(&format!(
                "[[rule]]\nname = 'a'\nlimit = {limit}\ncost = {{ default = 10, settle = 'used' }}"
            ));
            let settled = policy.decide(&()).settle(&used(actual));
            assert_eq!(
                (settled.returned, settled.charged),
                (0, 0),
                "{limit} {actual}"
            );
        }
    }
}

#[test]
fn an_actual_cost_of_all_numbers_is_a_debt_that_ends() {
    let policy =
        policy("[[rule]]\nname = 'a'\nlimit = '100/s'\ncost = { default = 1, settle = 'used' }");
    let most = u64::MAX.to_string();
    let _ = policy.decide(&()).settle(&used(&most));
    let denied = policy.decide(&());
    assert!(!denied.is_allowed());
    let wait = denied.retry_after();
    assert!(
        wait.is_none_or(|wait| wait > Duration::from_secs(1)),
        "{wait:?}"
    );
}

/// Settles a cost of this rule, and returns how long the next request waits.
fn owed(rule: &str, actual: u64) -> Option<Duration> {
    let policy = policy(&format!("[[rule]]\nname = 'a'\nkey = 'user'\n{rule}"));
    let ann = [("user", "ann")];
    let _ = policy.decide(&ann).settle(&used(&actual.to_string()));
    policy.decide(&ann).retry_after()
}

#[test]
fn the_largest_cost_bounds_what_is_settled_too() {
    let rule = "limit = '60/h'\ncost = { default = 10, max = 100, settle = 'used' }";
    let minutes = |minutes: u64| Some(Duration::from_secs(60 * minutes));
    // 90 are above the limit of 60, with the ten of the next request.
    assert_eq!(owed(rule, 90), minutes(40));
    assert_eq!(owed(rule, 100), minutes(50));
    for actual in [101, 1000, u64::MAX] {
        assert_eq!(owed(rule, actual), minutes(50));
    }
}

#[test]
fn without_a_largest_cost_it_is_the_limit_or_what_an_hour_brings() {
    let hour = Duration::from_secs(3600);
    for (limit, wait) in [
        // An hour of this limit, besides the burst that was there, and for one more permit.
        (
            "100/s",
            hour - Duration::from_secs(1) + Duration::from_millis(10),
        ),
        ("60/min burst 1", hour),
        // All of this limit.
        ("24/d", hour),
        ("10/d burst 100", Duration::from_secs(8640)),
    ] {
        let rule = format!("limit = '{limit}'\ncost = {{ settle = 'used' }}");
        assert_eq!(owed(&rule, u64::MAX), Some(wait), "{limit}");
    }
    // Each limit of a rule has its own, and each plan.
    for limit in [
        "limit = ['100/s', '24/d']",
        "plan = { by = 'user', ann = '24/d', bob = '9/s' }",
    ] {
        let rule = format!("{limit}\ncost = {{ settle = 'used' }}");
        assert_eq!(owed(&rule, u64::MAX), Some(hour), "{limit}");
    }
}

#[test]
fn permits_come_back_once() {
    for limit in ["'100/h'", "['100/h', '90/h']", "['concurrency 9', '100/h']"] {
        let policy = policy(&format!(
            "[[rule]]\nname = 'a'\nkey = 'user'\nlimit = {limit}\ncost = 10\n\
             ban = {{ after = 3, for = '1h' }}\n\
             [[rule]]\nname = 'never'\nwhen = 'never'\nlimit = '1/h'"
        ));
        let ann = [("user", "ann")];
        let left = || {
            let decision = policy.decide(&ann);
            let left: Vec<_> = decision.asked().map(|asked| asked.remaining()).collect();
            decision.undo();
            left
        };
        let before = left();
        assert_eq!(left(), before);
        let rates = limit.matches("/h").count() as u64;
        let concurrency = u64::from(limit.contains("concurrency"));
        assert_eq!(
            policy.decide(&ann).undo(),
            10 * rates + concurrency,
            "{limit}"
        );
        assert_eq!(left(), before, "{limit}");
    }
}

#[test]
fn a_rule_in_the_shadow_that_would_deny_returns_nothing() {
    let shadow =
        "[[rule]]\nname = 's'\nlimit = '1/h'\nshadow = true\ncost = 2\ncount = 'failures'\n";
    let several = shadow.replace("'1/h'", "['1/h', '9/h']");
    for shadow in [shadow, &several] {
        let policy = policy(&format!(
            "{shadow}[[rule]]\nname = 'a'\nlimit = '100/h'\ncost = 3"
        ));
        assert_eq!(policy.decide(&()).undo(), 3);
        let settled = policy.decide(&()).finish(Outcome::Success, &NONE);
        assert_eq!((settled.returned, settled.charged), (0, 0));
    }
}

#[test]
fn outcomes_that_do_not_count_leave_a_concurrency_limit_too() {
    for count in ["failures", "successes"] {
        let policy = policy(&format!(
            "[[rule]]\nname = 'a'\nlimit = ['concurrency 1', '100/h']\ncount = '{count}'\n\
             cost = {{ default = 10, settle = 'used' }}"
        ));
        let free = match count {
            "failures" => Outcome::Success,
            _ => Outcome::Failure,
        };
        for _ in 0..20 {
            let decision = policy.decide(&());
            assert!(decision.is_allowed());
            let _ = decision.finish(free, &used("1000"));
        }
    }
}

#[test]
fn a_request_in_the_middle_of_a_queue_returns_nothing() {
    let queue = "leaky-queue 10/s burst 30";
    for limit in [
        format!("'{queue}'"),
        format!("['{queue}', '1000/h']"),
        format!("['concurrency 9', '{queue}']"),
    ] {
        let policy = policy(&format!(
            "[[rule]]\nname = 'a'\nlimit = {limit}\ncost = {{ default = 3, settle = 'used' }}"
        ));
        let [undone, settled, failed, last] = [(); 4].map(|()| policy.decide(&()));
        undone.undo();
        let _ = settled.settle(&used("1"));
        let _ = failed.finish(Outcome::Failure, &used("0"));
        let next = policy.decide(&());
        assert_eq!(next.delay(), Duration::from_millis(1400), "{limit}");
        next.undo();
        let _ = last.settle(&used("1"));
        let next = policy.decide(&());
        assert_eq!(next.delay(), Duration::from_millis(1200), "{limit}");
    }
}
