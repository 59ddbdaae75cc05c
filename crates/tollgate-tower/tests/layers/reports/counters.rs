//! Counters of the crate `metrics`.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use http::{HeaderName, Request};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tollgate::clock::TokioClock;
use tollgate::keyed::KeyedConcurrency;
use tollgate::{Concurrency, Keyed, LeakyBucket, Limiter, ManualClock, Quota, TokenBucket};
use tollgate_policy::Policy;
use tollgate_tower::{ByHeader, RateLimitLayer};

use crate::reports::requests::{from, send};

/// Runs a future on paused time, and returns the counters by rule and decision.
fn counted(run: impl Future<Output = ()>) -> BTreeMap<(String, String), u64> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || runtime.block_on(run));
    let mut counters = BTreeMap::new();
    for (key, _, _, value) in recorder.snapshotter().snapshot().into_vec() {
        let key = key.key();
        assert_eq!(key.name(), "tollgate_requests_total");
        let labels: Vec<_> = key
            .labels()
            .map(|label| (label.key(), label.value()))
            .collect();
        let [("rule", rule), ("decision", decision)] = labels[..] else {
            panic!("other labels: {labels:?}");
        };
        let DebugValue::Counter(count) = value else {
            panic!("not a counter: {key}");
        };
        counters.insert((rule.to_owned(), decision.to_owned()), count);
    }
    counters
}

/// A request without an API key.
fn without_key() -> Request<()> {
    let mut request = from(1);
    request.headers_mut().clear();
    request
}

fn expected<const N: usize>(counts: [(&str, &str, u64); N]) -> BTreeMap<(String, String), u64> {
    let counts = counts.into_iter();
    counts
        .map(|(rule, decision, count)| ((rule.to_owned(), decision.to_owned()), count))
        .collect()
}

fn bucket(quota: Quota) -> TokenBucket {
    TokenBucket::new(quota).unwrap()
}

#[test]
fn one_limit() {
    let counted = counted(async {
        let limiter = Limiter::with_clock(bucket(Quota::per_hour(3)), ManualClock::new());
        let layer = RateLimitLayer::shared(limiter).name("hourly");
        let layer = layer.exempt_if(|facts| facts.headers().contains_key("x-exempt"));
        for number in 0..5 {
            send(&layer, from(number)).await;
        }
        let exempt = Request::get("/").header("x-exempt", "1").body(()).unwrap();
        assert_eq!(send(&layer, exempt).await, 200);
        let unnamed = Limiter::with_clock(bucket(Quota::per_hour(3)), ManualClock::new());
        send(&RateLimitLayer::shared(unnamed), from(1)).await;
    });
    let counts = [
        ("hourly", "allowed", 3),
        ("hourly", "denied", 2),
        ("default", "allowed", 1),
    ];
    assert_eq!(counted, expected(counts));
}

#[test]
fn a_limit_for_each_key() {
    let counted = counted(async {
        let table = Keyed::with_clock(bucket(Quota::per_hour(2)), 9, ManualClock::new()).unwrap();
        let key = ByHeader(HeaderName::from_static("x-api-key"));
        let layer = RateLimitLayer::by_key(table, key).name("key");
        for number in [1, 1, 1, 2, 2, 2, 2] {
            send(&layer, from(number)).await;
        }
        assert_eq!(send(&layer, without_key()).await, 400);
    });
    assert_eq!(
        counted,
        expected([("key", "allowed", 4), ("key", "denied", 4)])
    );
}

#[test]
fn requests_that_wait() {
    let counted = counted(async {
        let limiter = Limiter::with_clock(bucket(Quota::per_second(1)), TokioClock);
        let layer = RateLimitLayer::shared(limiter).name("line");
        let layer = layer.wait(Duration::from_secs(2), 9).unwrap();
        let sent = (0..5).map(|number| send(&layer, from(number)));
        let statuses = join(sent.collect()).await;
        assert_eq!(statuses, [200, 200, 200, 429, 429]);

        let queue = LeakyBucket::queue(Quota::per_second(1).burst(3)).unwrap();
        let layer = RateLimitLayer::shared(Limiter::with_clock(queue, TokioClock)).name("queue");
        let sent = (0..5).map(|number| send(&layer, from(number)));
        let statuses = join(sent.collect()).await;
        assert_eq!(statuses, [200, 200, 200, 429, 429]);
    });
    let counts = [
        ("line", "allowed", 3),
        ("line", "denied", 2),
        ("line", "waited", 2),
        ("queue", "allowed", 3),
        ("queue", "denied", 2),
        ("queue", "waited", 2),
    ];
    assert_eq!(counted, expected(counts));
}

/// Polls futures together until all are over.
async fn join<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<_> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none() {
                if let std::task::Poll::Ready(ready) = future.as_mut().poll(context) {
                    *output = Some(ready);
                }
            }
        }
        match outputs.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

#[test]
fn places() {
    let counted = counted(async {
        let places = std::sync::Arc::new(Concurrency::new(1).unwrap());
        let guard = places.try_enter_owned(1).unwrap();
        let layer = RateLimitLayer::concurrency(places).name("places");
        let layer = layer.wait(Duration::from_secs(2), 1).unwrap();
        let later = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(guard);
            0
        };
        let (one, two) = (send(&layer, from(1)), send(&layer, from(2)));
        let sent: Vec<std::pin::Pin<Box<dyn Future<Output = u16>>>> =
            vec![Box::pin(one), Box::pin(two), Box::pin(later)];
        assert_eq!(join(sent).await, [200, 503, 0]);
        let places = KeyedConcurrency::new(1, 9).unwrap();
        let key = ByHeader(HeaderName::from_static("x-api-key"));
        let layer = RateLimitLayer::concurrency_by_key(places, key).name("places of a key");
        assert_eq!(send(&layer, from(1)).await, 200);
        assert_eq!(send(&layer, without_key()).await, 400);
    });
    let counts = [
        ("places", "allowed", 1),
        ("places", "denied", 1),
        ("places", "waited", 1),
        ("places of a key", "allowed", 1),
        ("places of a key", "denied", 1),
    ];
    assert_eq!(counted, expected(counts));
}

#[test]
fn rules_of_a_policy() {
    let text = "
        apply = 'all'
        [[deny]]
        name = 'blocked'
        when = { client-ip = '10.0.0.66' }
        [[allow]]
        name = 'office'
        when = { client-ip = '10.0.0.77' }
        [[rule]]
        name = 'address'
        key = 'client-ip'
        limit = ['2/s', '1k/h']
        [[rule]]
        name = 'trial'
        limit = ['3/h', '4/h']
        shadow = true
        [[rule]]
        name = 'all'
        limit = '5/h'";
    let counted = counted(async {
        let policy = Policy::builder()
            .clock(TokioClock)
            .build_toml(text)
            .unwrap();
        let layer = RateLimitLayer::policy(policy)
            .wait(Duration::from_millis(800), 1)
            .unwrap();
        // Two go at once. The third one waits for half a second.
        for _ in 0..3 {
            assert_eq!(send(&layer, from(1)).await, 200);
        }
        // The rule on trial has no permit left.
        for number in 2..4 {
            assert_eq!(send(&layer, from(number)).await, 200);
        }
        assert_eq!(send(&layer, from(4)).await, 429);
        assert_eq!(send(&layer, from(66)).await, 403);
        assert_eq!(send(&layer, from(77)).await, 200);
    });
    let counts = [
        ("address", "allowed", 5),
        ("address", "waited", 1),
        ("all", "allowed", 5),
        ("all", "denied", 1),
        ("blocked", "denied", 1),
        ("trial", "shadow", 3),
        ("trial", "shadow-allowed", 3),
    ];
    assert_eq!(counted, expected(counts));
}

/// A hundred thousand keys make no new label.
#[test]
fn no_label_has_a_key() {
    let counted = counted(async {
        let quota = Quota::per_hour(2);
        let table = Keyed::with_clock(bucket(quota), 1000, ManualClock::new()).unwrap();
        let by_address = RateLimitLayer::by_address(table).name("address");
        let text = "[[rule]]\nname = 'key'\nkey = 'header:x-api-key'\nlimit = '2/h'\n\
                    capacity = 1000";
        let policy = Policy::builder()
            .clock(ManualClock::new())
            .build_toml(text)
            .unwrap();
        let by_policy = RateLimitLayer::policy(policy);
        for number in 0..50_000 {
            send(&by_address, from(number)).await;
            send(&by_policy, from(50_000 + number)).await;
        }
        for _ in 0..3 {
            send(&by_address, from(0)).await;
            send(&by_policy, from(0)).await;
        }
    });
    let labels: Vec<_> = counted
        .keys()
        .map(|(rule, decision)| (&**rule, &**decision))
        .collect();
    let both = [
        ("address", "allowed"),
        ("address", "denied"),
        ("key", "allowed"),
        ("key", "denied"),
    ];
    assert_eq!(labels, both);
    assert_eq!(counted.values().sum::<u64>(), 100_006);
}

#[test]
fn a_queue_in_shadow_lets_no_request_wait() {
    let counted = counted(async {
        let queue = || LeakyBucket::queue(Quota::per_second(1).burst(3)).unwrap();
        let limiter = Limiter::with_clock(queue(), ManualClock::new());
        let layer = RateLimitLayer::shared(limiter).name("queue").shadow();
        for number in 0..4 {
            assert_eq!(send(&layer, from(number)).await, 200);
        }
        let rule = "[[rule]]\nname = 'rule'\nlimit = 'leaky-queue 1/s burst 3'";
        let policy = Policy::builder().clock(ManualClock::new());
        let layer = RateLimitLayer::policy(policy.build_toml(rule).unwrap()).shadow();
        for number in 0..4 {
            assert_eq!(send(&layer, from(number)).await, 200);
        }
    });
    let counts = [
        ("queue", "allowed", 3),
        ("queue", "shadow", 1),
        ("rule", "allowed", 3),
        ("rule", "shadow", 1),
    ];
    assert_eq!(counted, expected(counts));
}
