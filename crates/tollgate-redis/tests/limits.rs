//! Limits as text: what is written is read again, and what can't be read is an error that says why.

use std::time::Duration;

use tollgate::Quota;
use tollgate_redis::{Limit, LimitError, ParseLimitError};

#[test]
fn each_limit_is_read_from_its_text() {
    let lease = Duration::from_millis(1500);
    for (text, limit, written) in [
        (
            "100/s burst 20",
            Limit::token_bucket(Quota::per_second(100).burst(20)),
            "token-bucket 100/s burst 20",
        ),
        (
            "gcra 5 per second",
            Limit::token_bucket(Quota::per_second(5)),
            "token-bucket 5/s",
        ),
        (
            "leaky-queue 10/s burst 5 free 3",
            Limit::leaky_queue(Quota::per_second(10).burst(5), 3),
            "leaky-queue 10/s burst 5 free 3",
        ),
        (
            "leaky-queue 10/s",
            Limit::leaky_queue(Quota::per_second(10), 0),
            "leaky-queue 10/s",
        ),
        (
            "  fixed-window\t7/d ",
            Limit::fixed_window(Quota::per_day(7)),
            "fixed-window 7/d utc",
        ),
        (
            "fixed-window 5/15min first-hit",
            Limit::first_hit_window(Quota::per(5, Duration::from_secs(900))),
            "fixed-window 5/15min first-hit",
        ),
        (
            "sliding-window 1000/min utc",
            Limit::sliding_window(Quota::per_minute(1000)),
            "sliding-window 1000/min utc",
        ),
        (
            "sliding-log 30/h",
            Limit::sliding_log(Quota::per_hour(30)),
            "sliding-log 30/h",
        ),
        (
            "concurrency 3 lease 1500ms",
            Limit::concurrency(3, lease),
            "concurrency 3 lease 1500ms",
        ),
    ] {
        let limit = limit.expect("accepted");
        assert_eq!(text.parse(), Ok(limit), "{text}");
        assert_eq!(limit.to_string(), written);
        assert_eq!(written.parse(), Ok(limit), "{written}");
    }
}

#[test]
fn what_cant_be_read_is_an_error_that_says_why() {
    for (text, starts) in [
        ("", "algorithm is \"\", but must be one of"),
        ("bucket 5/s", "algorithm is \"bucket\", but must be one of"),
        (
            "leaky-queue 5/s free -1",
            "free is \"-1\", but must be a whole number",
        ),
        (
            "leaky-queue 5/s free +1",
            "free is \"+1\", but must be a whole number",
        ),
        ("concurrency 5", "lease is missing"),
        ("concurrency lease 5s", "lease is missing"),
        (
            "concurrency x lease 5s",
            "limit is \"x\", but must be a whole number",
        ),
        (
            "concurrency 0 lease 5s",
            "n is 0, but must be at least 1 permit",
        ),
        (
            "concurrency 5 lease 5us",
            "lease is 5\u{b5}s, but must be from 1ms",
        ),
        (
            "sliding-log 100001/h",
            "n is 100001, but must be at most 100000",
        ),
        (
            "sliding-log 1/3ns",
            "period is 3ns, but must be a whole number of microseconds",
        ),
        (
            "fixed-window 5/s burst 6",
            "burst is 6, but must be n, which is 5",
        ),
        ("0/s", "n is 0, but must be at least 1 permit"),
    ] {
        let error = text.parse::<Limit>().expect_err(text).to_string();
        assert!(error.starts_with(starts), "{text}: {error}");
    }
    for text in [
        "5",
        "5/",
        "gcra",
        "concurrency 5 lease x",
        "5/s burst",
        "sliding-window 5/s first-hit",
    ] {
        let error = text.parse::<Limit>().expect_err(text);
        assert!(
            matches!(error, ParseLimitError::Quota(_)),
            "{text}: {error:?}"
        );
    }
    let zero = ParseLimitError::Limit(LimitError::ZeroPermits);
    assert_eq!("0/s".parse::<Limit>(), Err(zero));
}
