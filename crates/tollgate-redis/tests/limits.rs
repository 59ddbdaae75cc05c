//! Limits as text: what is written is read again, and what can't be read is an error that says why.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use tollgate::Quota;
use tollgate_redis::client::{Client, ClientError, Command, Reply};
use tollgate_redis::{
    AllError, Decider, Denial, Fallback, FallbackError, Grant, Keys, KeysError, Limit, LimitError,
    OutageEvent, ParseLimitError, RedisAll, RedisKey, RedisLimiter, RedisServer, Stats,
    Unavailable,
};

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
            "limit is 0, but must be from 1 to 2000",
        ),
        (
            "concurrency 5 lease 5us",
            "lease is 5\u{b5}s, but must be from 1ms",
        ),
        (
            "sliding-log 20001/h",
            "n is 20001, but must be at most 20000, because the server stores each permit of a log: a \
             sliding window or a bucket can have more",
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
        (
            "concurrency 2001 lease 60s",
            "limit is 2001, but must be from 1 to 2000, because the server stores each slot: split it \
             over several names, or limit the rate by a bucket",
        ),
    ] {
        let error = text.parse::<Limit>().expect_err(text).to_string();
        assert!(error.starts_with(starts), "{text}: {error}");
    }
    for (text, at) in [
        ("5/x", 2),
        (" 5/x", 3),
        ("gcra 5/x", 7),
        (" gcra ", 5),
        ("concurrency 5 lease x", 20),
        ("sliding-window  5/s first-hit", 20),
        ("leaky-queue 5/x free 3", 14),
    ] {
        let error = text.parse::<Limit>().expect_err(text).to_string();
        assert!(
            error.starts_with(&format!("at byte {at}: ")),
            "{text}: {error}"
        );
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

/// The traits required of every public type.
fn is_shared<T: Send + Sync + Debug>() {}

fn is_sent<F: Future + Send>(_: F) {}

/// The futures of a key and of several can move between the threads of a runtime.
fn futures_are_sent<C: Client>(key: &RedisKey<'_, C>, all: &RedisAll<'_, C>) {
    is_sent(key.try_acquire());
    is_sent(key.reserve_within(1, Duration::ZERO));
    is_sent(key.available());
    is_sent(key.reset());
    is_sent(all.try_acquire());
    is_sent(all.undo(Vec::new()));
    is_sent(all.settle(Vec::new(), 1));
}

#[derive(Debug)]
struct NoServer;

impl Client for NoServer {
    async fn send(&self, _: &Command<'_>) -> Result<Reply, ClientError> {
        Err(ClientError::NotSent("there is no server".into()))
    }
}

#[test]
fn everything_public_is_send_and_sync_and_debug() {
    is_shared::<(RedisServer<NoServer>, RedisLimiter<NoServer>)>();
    is_shared::<(RedisKey<'_, NoServer>, RedisAll<'_, NoServer>)>();
    is_shared::<(Keys, Limit, Fallback, Stats, Decider, OutageEvent)>();
    is_shared::<(Grant, Denial, Unavailable)>();
    is_shared::<(
        KeysError,
        LimitError,
        ParseLimitError,
        FallbackError,
        AllError,
    )>();
    is_shared::<(Command<'_>, Reply, ClientError)>();
    #[cfg(feature = "redis-rs")]
    is_shared::<tollgate_redis::client::Connection>();
    #[cfg(feature = "cluster")]
    is_shared::<tollgate_redis::client::Cluster>();
    let _futures = futures_are_sent::<NoServer>;
}
