//! What is reported while a store does not answer: counters, the gauge of outages, the events of
//! the server, its statistics and the decisions all say the same.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Request;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tollgate_http::RequestFacts;
use tollgate_policy::redis::RedisStore;
use tollgate_policy::{LivePolicy, Policy, Reason};
use tollgate_redis::client::{Client, ClientError, Command, Reply};
use tollgate_redis::{Keys, OutageEvent, RedisServer};
use tollgate_tower::RateLimitLayer;

use crate::reports::requests::send;

/// A server that grants everything, unless it is down.
#[derive(Debug, Clone, Default)]
struct Switched(Arc<Mutex<bool>>);

impl Client for Switched {
    async fn send(&self, _: &Command<'_>) -> Result<Reply, ClientError> {
        let is_down = *self.0.lock().unwrap();
        match is_down {
            true => Err(ClientError::NotSent("refused".into())),
            false => {
                let state = [0.0_f64, 2_000_000.0, 0.0].map(f64::to_le_bytes);
                Ok(Reply::List(vec![
                    Reply::Int(1),
                    Reply::Int(1_000_000),
                    Reply::Bytes(state.concat()),
                ]))
            }
        }
    }
}

const RULES: &str = "
    [[rule]]
    name = 'closed'
    when = { path = '/closed' }
    limit = '8/d'
    store = 'redis'
    fallback = 'closed'
    [[rule]]
    name = 'open'
    when = { path = '/open' }
    limit = '8/d'
    store = 'redis'
    fallback = { open = { at_most = 3 } }
    [[rule]]
    name = 'local'
    when = { path = '/local' }
    limit = '8/d'
    store = 'redis'
    fallback = { local = { processes = 4, keys = 9 } }";

fn to(path: &str) -> Request<()> {
    Request::get(path).body(()).unwrap()
}

/// Returns what was counted since the last call, and how the gauge of outages has changed.
fn reported(snapshotter: &Snapshotter) -> (BTreeMap<String, u64>, f64) {
    let (mut counts, mut gauge) = (BTreeMap::new(), 0.0);
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let key = key.key();
        let labels: Vec<_> = key.labels().map(|label| label.value()).collect();
        match (key.name(), value) {
            ("tollgate_fallbacks_total", DebugValue::Counter(count)) => {
                let _ = counts.insert(labels.join(" "), count);
            }
            ("tollgate_outages", DebugValue::Gauge(value)) => gauge = value.into_inner(),
            ("tollgate_requests_total", _) => {}
            ("tollgate_redis_call_seconds", DebugValue::Histogram(times)) => {
                let outcome = format!("calls {}", labels.join(" "));
                let _ = counts.insert(outcome, times.len() as u64);
            }
            other => panic!("{other:?}"),
        }
    }
    (counts, gauge)
}

/// A request that a fallback denies is served in shadow, so nothing says that it was denied.
#[cfg(feature = "redis")]
#[test]
fn a_fallback_of_a_limit_in_shadow_denies_nothing() {
    use tollgate_redis::{Fallback, RedisLimiter};

    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    let recorder = DebuggingRecorder::new();
    let run = async {
        let server = Arc::new(RedisServer::new(Switched(Arc::new(Mutex::new(true)))));
        let keys = Keys::new("tower").unwrap();
        let store = RedisStore::new(Arc::clone(&server), keys.clone());
        let builder = Policy::builder().store("redis", store);
        let layer = RateLimitLayer::policy(builder.build_toml(RULES).unwrap());
        assert_eq!(send(&layer.shadow(), to("/closed")).await, 200);
        let (quota, fallback) = (tollgate::Quota::per_hour(8), Fallback::Closed);
        let limiter = RedisLimiter::new(server, &keys, "api", quota, fallback).unwrap();
        let layer = RateLimitLayer::redis(limiter, |_: &RequestFacts<'_>| Some("all"));
        assert_eq!(send(&layer.shadow(), to("/closed")).await, 200);
    };
    metrics::with_local_recorder(&recorder, || runtime.block_on(run));
    let calls = BTreeMap::from([("calls failed".to_owned(), 1)]);
    assert_eq!(reported(&recorder.snapshotter()).0, calls);
}

#[test]
fn counters_the_gauge_events_statistics_and_decisions_agree() {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let run = async {
        let events = Arc::new(Mutex::new(Vec::new()));
        let (client, seen) = (Switched::default(), Arc::clone(&events));
        let server = RedisServer::new(client.clone())
            .on_outage(move |event| seen.lock().unwrap().push(event.clone()));
        let server = Arc::new(server);
        let store = RedisStore::new(Arc::clone(&server), Keys::new("tower").unwrap());
        let builder = Policy::builder().store("redis", store);
        let live = Arc::new(LivePolicy::new(builder.build_toml(RULES).unwrap()));
        let layer = RateLimitLayer::policy(Arc::clone(&live));
        for path in ["/closed", "/open", "/local"] {
            assert_eq!(send(&layer, to(path)).await, 200);
        }
        let calls = BTreeMap::from([("calls answered".to_owned(), 3)]);
        assert_eq!(reported(&snapshotter), (calls, 0.0));

        *client.0.lock().unwrap() = true;
        let mut statuses = BTreeMap::<_, u64>::new();
        for path in ["/closed", "/open", "/local"] {
            for _ in 0..10 {
                let status = send(&layer, to(path)).await;
                *statuses.entry((path, status)).or_default() += 1;
            }
        }
        let expected = [
            (("/closed", 503), 10),
            (("/local", 200), 2),
            (("/local", 429), 8),
            (("/open", 200), 3),
            (("/open", 503), 7),
        ];
        assert_eq!(statuses, expected.into());
        let (counts, gauge) = reported(&snapshotter);
        let expected = [
            ("calls answered", 0),
            ("calls failed", 1), // the outage begins
            ("closed closed denied", 10),
            ("local local allowed", 2),
            ("local local denied", 8),
            ("open open allowed", 3),
            ("open open denied", 7),
        ];
        let expected = expected.map(|(labels, count)| (labels.to_owned(), count));
        assert_eq!(counts, expected.into());
        assert_eq!(gauge, 1.0);
        let stats = server.stats();
        assert_eq!((stats.closed, stats.open, stats.local), (10, 10, 10));
        assert!(server.is_down());
        let request = to("/closed");
        let decision = live.decide_async(&RequestFacts::new(&request)).await;
        assert!(matches!(
            decision.reason(),
            Some(Reason::Unavailable { rule: "closed", .. })
        ));

        *client.0.lock().unwrap() = false;
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(send(&layer, to("/closed")).await, 200);
        assert_eq!(reported(&snapshotter).1, -1.0);
        {
            let events = events.lock().unwrap();
            let [
                OutageEvent::Began { .. },
                OutageEvent::Ended { fallbacks, .. },
            ] = events[..]
            else {
                panic!("{events:?}");
            };
            assert_eq!(fallbacks, 31);
        }

        // A server that is dropped in an outage is in none.
        *client.0.lock().unwrap() = true;
        assert_eq!(send(&layer, to("/closed")).await, 503);
        assert_eq!(reported(&snapshotter).1, 1.0);
        drop((decision, layer, live, server));
        let tasks = tokio::runtime::Handle::current().metrics();
        while tasks.num_alive_tasks() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(reported(&snapshotter).1, -1.0);
    };
    metrics::with_local_recorder(&recorder, || runtime.block_on(run));
}
