//! Several limits, many threads, reloads, and stores that are down.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use tollgate::{ManualClock, Quota};
use tollgate_http::RequestFacts;
use tollgate_policy::redis::RedisStore;
use tollgate_policy::{LivePolicy, Policy};
use tollgate_redis::Keys;
use tollgate_tower::RateLimitLayer;
use tower::{Layer, Service, ServiceExt};

use crate::known_failures::page::{Page, from, live, send, shared};

/// Of several limits, those before the one that denied kept what they had taken: in axum-governor,
/// in Envoy's ratelimit (#348, #427), and in the chained limiters of System.Threading.
#[tokio::test]
async fn axum_governor_and_others_a_denied_request_takes_nothing_from_any_limit() {
    let text = "
        apply = 'all'
        [[rule]]
        name = 'loose'
        limit = '100/h'
        [[rule]]
        name = 'places'
        limit = 'concurrency 2'
        [[rule]]
        name = 'tight'
        key = 'client-ip'
        limit = '3/h'
        [[rule]]
        name = 'last'
        limit = ['50/h', '60/d']";
    let live = live(text, &ManualClock::new());
    let service = RateLimitLayer::policy(Arc::clone(&live)).layer(Page);
    for number in 0..200 {
        let (status, _) = send(&service, from("192.0.2.1")).await;
        assert_eq!(status, if number < 3 { 200 } else { 429 });
    }
    let facts = Request::new(());
    let facts = RequestFacts::new(&facts).client_ip([192, 0, 2, 2].into());
    let decision = live.decide(&facts);
    let left: Vec<_> = decision
        .asked()
        .map(|asked| (asked.rule(), asked.remaining()))
        .collect();
    // Three requests before this one.
    let expected = [
        ("loose", 96),
        ("places", 1),
        ("tight", 2),
        ("last", 46),
        ("last", 56),
    ];
    assert_eq!(left, expected);
}

/// The service was not `Clone`, or each connection had a limit of its own: a cap of 5/s let 1500
/// through (axum #3682). The tests over sockets have connections; here are clones.
#[tokio::test]
async fn tower_rate_limit_clones_share_a_limit() {
    let clock = ManualClock::new();
    let layer = shared(Quota::per_second(5), &clock);
    let mut admitted = 0;
    for _ in 0..300 {
        let service = layer.clone().layer(Page);
        for _ in 0..5 {
            let (status, _) = send(&service.clone(), from("192.0.2.1")).await;
            admitted += usize::from(status == 200);
        }
    }
    assert_eq!(admitted, 5);
}

/// It checked first and added later: 1001 of 1000 got through.
#[test]
fn limitador_threads_admit_no_more_than_the_limit() {
    let clock = ManualClock::new();
    let layer = shared(Quota::per_hour(1000), &clock);
    let admitted = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let mut service = layer.layer(Page);
                scope.spawn(move || {
                    let mut context = Context::from_waker(Waker::noop());
                    let mut admitted = 0;
                    for _ in 0..1000 {
                        let request = from("192.0.2.1").body(()).unwrap();
                        let mut answer = std::pin::pin!(service.call(request));
                        let Poll::Ready(Ok(answer)) = answer.as_mut().poll(&mut context) else {
                            panic!("it is decided at once");
                        };
                        admitted += usize::from(answer.status() == 200);
                    }
                    admitted
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum::<usize>()
    });
    assert_eq!(admitted, 1000);
}

/// A tight limit was hidden by a loose one (#513).
#[tokio::test]
async fn limitador_a_tight_limit_is_not_hidden_by_a_loose_one() {
    for limits in ["['2/h', '1k/h']", "['1k/h', '2/h']"] {
        let text = format!("[[rule]]\nname = 'a'\nlimit = {limits}");
        let service = RateLimitLayer::policy(live(&text, &ManualClock::new())).layer(Page);
        for status in [200, 200, 429, 429] {
            assert_eq!(
                send(&service, from("192.0.2.1")).await.0,
                status,
                "{limits}"
            );
        }
    }
}

/// Counters panicked after a reload (#522), and a new file forgot what was counted.
#[tokio::test]
async fn limitador_a_reload_while_requests_are_served() {
    let text = |limit: &str| {
        format!(
            "apply = 'all'\n[[rule]]\nname = 'a'\nlimit = '{limit}'\ncount = 'failures'\n\
             [[rule]]\nname = 'places'\nlimit = 'concurrency 3'"
        )
    };
    let live = live(&text("9/h"), &ManualClock::new());
    let layer = RateLimitLayer::policy(Arc::clone(&live)).failure_if(|_| true);
    let service = layer.layer(Page);
    let mut open = Vec::new();
    for limit in ["8/h", "9/h", "7/h"] {
        let request = from("192.0.2.1").body(()).unwrap();
        open.push(service.clone().oneshot(request).await.unwrap());
        let _ = live.reload_toml(&text(limit)).unwrap();
    }
    assert_eq!(send(&service, from("192.0.2.1")).await.0, 503);
    for answer in open {
        answer.into_body().collect().await.unwrap();
    }
    // Three failures count, and the places are free. They are used of the new limit, which is 7.
    for number in 0..9 {
        let (status, _) = send(&service, from("192.0.2.1")).await;
        assert_eq!(status, if number < 4 { 200 } else { 429 }, "{number}");
    }
}

/// Redis down meant stalls of ten seconds in Envoy's ratelimit (#462, #1143), and 500 in Traefik
/// (#12091). Only a share of the limit says that a client sent too much.
#[tokio::test(start_paused = true)]
async fn envoy_and_traefik_a_store_that_is_down_is_no_stall_and_no_error() {
    for (fallback, statuses) in [
        ("'closed'", [503; 3]),
        ("'open'", [200; 3]),
        ("{ open = { at_most = 2, per = '1m' } }", [200, 200, 503]),
        ("{ local = { processes = 4, keys = 9 } }", [200, 200, 429]),
    ] {
        let text =
            format!("[[rule]]\nname = 'a'\nstore = 'redis'\nlimit = '9/h'\nfallback = {fallback}");
        let store = RedisStore::without_server(Keys::new("tower").unwrap());
        let policy = Policy::builder()
            .store("redis", store)
            .build_toml(&text)
            .unwrap();
        let service = RateLimitLayer::policy(LivePolicy::new(policy)).layer(Page);
        let start = tokio::time::Instant::now();
        for status in statuses {
            let (answered, wait) = send(&service, from("192.0.2.1")).await;
            assert_eq!(answered, status, "{fallback}");
            assert_eq!(wait.is_some(), status != 200, "{fallback}");
        }
        assert_eq!(start.elapsed(), Duration::ZERO, "{fallback}");
    }
}
