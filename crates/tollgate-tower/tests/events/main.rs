//! Events of the crate `tracing`, by the name of the rule and never by key.
//!
//! They are in a process of their own. `tracing` asks once for each place in the source whether a
//! subscriber wants its events. While a process has one subscriber at most, it asks that of the
//! thread that comes there first. A thread without one, such as that of a test of something else,
//! turns the events of this place off for all threads. Here each thread has the same subscriber,
//! and each test sets it before it sends a request.

#[path = "../layers/reports/requests.rs"]
mod requests;

use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use http::Request;
use tollgate::clock::TokioClock;
use tollgate::{Concurrency, Keyed, Quota, TokenBucket};
use tollgate_policy::Policy;
use tollgate_policy::redis::RedisStore;
use tollgate_redis::Keys;
use tollgate_tower::{ByHeader, RateLimitLayer};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::requests::{from, send};

/// The only subscriber of the process.
static SUBSCRIBER: LazyLock<()> = LazyLock::new(|| {
    tracing::subscriber::set_global_default(Lines).expect("no other subscriber");
});

thread_local! {
    /// The events of this thread. Each test has a thread of its own.
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Writes events as lines of text.
#[derive(Debug)]
struct Lines;

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "tollgate"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        LINES.with_borrow_mut(|lines| lines.push(line.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

/// Runs a future on paused time, and returns its events.
fn events(run: impl Future<Output = ()>) -> Vec<String> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    LazyLock::force(&SUBSCRIBER);
    runtime.block_on(run);
    let lines = LINES.take();
    for line in &lines {
        for part in ["secret", "10.0.0", "x-api-key"] {
            assert!(!line.contains(part), "an event has a key: {line}");
        }
    }
    lines
}

#[test]
fn each_decision_is_an_event_of_its_rule() {
    let events = events(async {
        let bucket = TokenBucket::new(Quota::per_second(1)).unwrap();
        let table = Keyed::with_clock(bucket, 9, TokioClock).unwrap();
        let layer = RateLimitLayer::by_address(table).name("address");
        let layer = layer.wait(Duration::from_secs(1), 1).unwrap();
        for _ in 0..2 {
            assert_eq!(send(&layer, from(1)).await, 200);
        }
        let places = Arc::new(Concurrency::new(1).unwrap());
        let _guard = places.try_enter_owned(1).unwrap();
        assert_eq!(
            send(&RateLimitLayer::concurrency(places), from(2)).await,
            503
        );

        let text = "apply = 'all'\n\
                    [[rule]]\nname = 'trial'\nlimit = '1/h'\nshadow = true\n\
                    [[rule]]\nname = 'key'\nkey = 'header:x-api-key'\nlimit = '2/h'";
        let policy = Policy::builder()
            .clock(TokioClock)
            .build_toml(text)
            .unwrap();
        let layer = RateLimitLayer::policy(policy);
        for status in [200, 200, 429] {
            assert_eq!(send(&layer, from(3)).await, status);
        }
    });
    let expected = [
        r#"TRACE message=allowed rule="address""#,
        r#"TRACE message=waits rule="address""#,
        r#"TRACE message=allowed rule="address""#,
        r#"DEBUG message=denied rule="default" cause=Overload"#,
        r#"TRACE message=allowed rule="key""#,
        r#"DEBUG message=would be denied rule="trial""#,
        r#"TRACE message=allowed rule="key""#,
        r#"DEBUG message=would be denied rule="trial""#,
        r#"DEBUG message=denied rule="key" cause=Limit"#,
    ];
    assert_eq!(events, expected);
}

/// A server that does not say the addresses of its connections is warned of once.
#[test]
fn a_server_without_addresses_is_warned_of_once() {
    let events = events(async {
        let table = Keyed::token_bucket(Quota::per_second(1), 9).unwrap();
        let layer = RateLimitLayer::by_address(table).name("address");
        for _ in 0..3 {
            assert_eq!(send(&layer, Request::new(())).await, 400);
        }
        // This one has an address, and no key.
        let table = Keyed::token_bucket(Quota::per_second(1), 9).unwrap();
        let layer = RateLimitLayer::by_key(table, ByHeader(http::header::COOKIE));
        assert_eq!(send(&layer, from(1)).await, 400);
    });
    let warnings = events
        .iter()
        .filter(|line| line.starts_with("WARN"))
        .count();
    let denials = events
        .iter()
        .filter(|line| line.ends_with("cause=MissingKey"))
        .count();
    assert_eq!((warnings, denials, events.len()), (1, 4, 5));
}

/// A policy names a fact that nothing supplies. What a client leaves out is no warning.
#[test]
fn a_rule_whose_key_nothing_supplies_is_warned_of_once() {
    let events = events(async {
        let rule = |name: &str, key: &str| {
            let when = format!("when = {{ path = '/{name}' }}");
            format!("[[rule]]\nname = '{name}'\n{when}\nkey = '{key}'\nlimit = '9/h'\n")
        };
        let text = rule("a", "ip") + &rule("b", "cookie:session") + &rule("c", "host");
        let layer = RateLimitLayer::policy(Policy::from_toml(&text).unwrap());
        for path in ["/a", "/b", "/c", "/a"] {
            let mut request = from(1);
            *request.uri_mut() = path.parse().unwrap();
            assert_eq!(send(&layer, request).await, 400);
        }
    });
    let warnings = events.iter().filter(|line| line.starts_with("WARN"));
    let message = "a request has no key: the program probably does not supply a fact of the key";
    let expected = [format!("WARN message={message} rule=\"a\"")];
    assert_eq!(
        warnings.collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
}

#[test]
fn an_outage_of_a_store_begins_and_ends_with_an_event_and_each_fallback_is_one() {
    let events = events(async {
        let store = RedisStore::without_server(Keys::new("tower").unwrap());
        let text = "[[rule]]\nname = 'a'\nlimit = '9/h'\nstore = 'redis'\n\
                    fallback = { open = { at_most = 1 } }";
        let policy = Policy::builder()
            .store("redis", store)
            .build_toml(text)
            .unwrap();
        let layer = RateLimitLayer::policy(policy);
        for status in [200, 503] {
            assert_eq!(send(&layer, from(1)).await, status);
        }
    });
    let expected = [
        "WARN message=an outage of a store begins why=the command was not sent: there is no server",
        r#"TRACE message=allowed rule="a""#,
        r#"DEBUG message=decided without the store rule="a" fallback="open" decision="allowed""#,
        r#"DEBUG message=denied rule="a" cause=Unavailable"#,
        r#"DEBUG message=decided without the store rule="a" fallback="open" decision="denied""#,
    ];
    assert_eq!(events, expected);
}
