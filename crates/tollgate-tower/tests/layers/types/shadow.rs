//! A limit in shadow decides, counts and reports, and refuses and delays nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use tollgate::{Concurrency, Keyed, LeakyBucket, Limiter, Quota, TokenBucket};
use tollgate_policy::Policy;
use tollgate_tower::{Admission, Cause, Fields, LayerDecision, MissingKey, RateLimitLayer};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::clock::{RuntimeClock, paused};

async fn page(request: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    Ok(Response::new(request.uri().path().into()))
}

type Told = Arc<Mutex<Vec<(String, Option<Cause>)>>>;

/// Returns a layer whose decisions are told: `Denied` of which cause, or served.
fn told<A>(layer: RateLimitLayer<A>) -> (RateLimitLayer<A>, Told) {
    let told = Told::default();
    let all = Arc::clone(&told);
    let layer = layer.on_decision(move |facts, decision| {
        let (word, cause) = match decision {
            LayerDecision::Allowed => ("allowed", None),
            LayerDecision::Denied(refusal) => ("denied", Some(refusal.cause())),
            LayerDecision::WouldDeny(refusal) => ("would deny", Some(refusal.cause())),
            _ => ("another", None),
        };
        all.lock()
            .unwrap()
            .push((format!("{word} {}", facts.path()), cause));
    });
    (layer, told)
}

/// Sends a request to each path, keeps the answers, and returns their statuses.
async fn statuses(layer: &RateLimitLayer<impl Admission>, paths: &[&str]) -> Vec<u16> {
    let service = layer.layer(service_fn(page));
    let mut answers = Vec::new();
    for path in paths {
        let request = Request::get(*path).body(()).unwrap();
        answers.push(service.clone().oneshot(request).await.unwrap());
    }
    assert!(answers.iter().all(|answer| {
        let is_field = |name: &str| name.contains("ratelimit") || name == "retry-after";
        !answer.headers().keys().any(|name| is_field(name.as_str()))
    }));
    answers.iter().map(|it| it.status().as_u16()).collect()
}

fn words(told: &Told) -> Vec<(String, Option<Cause>)> {
    told.lock().unwrap().clone()
}

fn served(path: &str) -> (String, Option<Cause>) {
    (format!("allowed {path}"), None)
}

fn would(path: &str, cause: Cause) -> (String, Option<Cause>) {
    (format!("would deny {path}"), Some(cause))
}

#[tokio::test]
async fn a_rate_in_shadow_serves_all_and_says_nothing_to_clients() {
    let limiter = Arc::new(Limiter::token_bucket(Quota::per_hour(1)).unwrap());
    let layer = RateLimitLayer::shared(Arc::clone(&limiter)).fields(Fields::LIST);
    let layer = layer.wait(Duration::from_secs(7200), 10).unwrap();
    let (layer, told) = told(layer.shadow());
    assert_eq!(statuses(&layer, &["/a", "/b"]).await, [200, 200]);
    assert_eq!(words(&told), [served("/a"), would("/b", Cause::Limit)]);
    assert_eq!(limiter.available(), 0);
}

#[tokio::test]
async fn a_limit_that_is_used_tells_what_it_denies() {
    let limiter = Limiter::token_bucket(Quota::per_hour(1)).unwrap();
    let (layer, told) = told(RateLimitLayer::shared(limiter).exempt_if(|it| it.path() == "/x"));
    let service = layer.layer(service_fn(page));
    for path in ["/a", "/x", "/b"] {
        let request = Request::get(path).body(()).unwrap();
        service.clone().oneshot(request).await.unwrap();
    }
    let denied = ("denied /b".to_owned(), Some(Cause::Limit));
    assert_eq!(words(&told), [served("/a"), denied]);
}

#[tokio::test(start_paused = true)]
async fn a_queue_in_shadow_delays_nobody() {
    let queue = LeakyBucket::queue(Quota::per_hour(1).burst(2)).unwrap();
    let (layer, told) = told(RateLimitLayer::shared(Limiter::new(queue)).shadow());
    let began = tokio::time::Instant::now();
    assert_eq!(statuses(&layer, &["/a", "/b", "/c", "/d"]).await, [200; 4]);
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(words(&told)[0], served("/a"));
    assert_eq!(words(&told)[3], would("/d", Cause::Limit));
}

#[tokio::test]
async fn a_concurrency_in_shadow_serves_more_at_once() {
    let (layer, told) = told(RateLimitLayer::concurrency(Concurrency::new(1).unwrap()).shadow());
    assert_eq!(statuses(&layer, &["/a", "/b"]).await, [200, 200]);
    assert_eq!(words(&told), [served("/a"), would("/b", Cause::Overload)]);
}

#[tokio::test]
async fn a_request_without_a_key_is_served_in_shadow() {
    let table = Keyed::token_bucket(Quota::per_hour(1), 100).unwrap();
    let (layer, told) = told(RateLimitLayer::by_address(table).shadow());
    assert_eq!(statuses(&layer, &["/a"]).await, [200]);
    assert_eq!(words(&told), [would("/a", Cause::MissingKey)]);
}

#[tokio::test]
async fn a_policy_in_shadow_serves_all() {
    let rules = "[[deny]]\nname = 'admin'\nwhen = { path = '/admin' }\n\
                 [[rule]]\nname = 'api'\nlimit = '1/h'";
    let policy = Policy::from_toml(rules).unwrap();
    let (layer, told) = told(RateLimitLayer::policy(policy).fields(Fields::LIST).shadow());
    let paths = ["/a", "/b", "/admin"];
    assert_eq!(statuses(&layer, &paths).await, [200, 200, 200]);
    let expected = [
        served("/a"),
        would("/b", Cause::Limit),
        would("/admin", Cause::Listed),
    ];
    assert_eq!(words(&told), expected);
}

#[tokio::test]
async fn some_requests_can_be_in_shadow() {
    let limiter = Limiter::token_bucket(Quota::per_hour(1)).unwrap();
    let layer = RateLimitLayer::shared(limiter).shadow_if(|facts| facts.path() != "/strict");
    let (layer, told) = told(layer);
    let service = layer.layer(service_fn(page));
    let mut statuses = Vec::new();
    for path in ["/a", "/b", "/strict"] {
        let request = Request::get(path).body(()).unwrap();
        let answer = service.clone().oneshot(request).await.unwrap();
        statuses.push(answer.status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
    let denied = ("denied /strict".to_owned(), Some(Cause::Limit));
    assert_eq!(
        words(&told),
        [served("/a"), would("/b", Cause::Limit), denied]
    );
}

#[tokio::test]
async fn a_layer_that_is_off_counts_nothing() {
    let limiter = Arc::new(Limiter::token_bucket(Quota::per_hour(1)).unwrap());
    let layer = RateLimitLayer::shared(Arc::clone(&limiter)).fields(Fields::LIST);
    let (layer, told) = told(layer.enabled(false));
    assert_eq!(statuses(&layer, &["/a", "/b"]).await, [200, 200]);
    assert_eq!((words(&told), limiter.available()), (vec![], 1));
    let layer = layer.enabled(true);
    let mut service = layer.layer(service_fn(page));
    let answer = service.ready().await.unwrap().call(Request::new(())).await;
    assert_eq!(
        (answer.unwrap().status().as_u16(), limiter.available()),
        (200, 0)
    );
}

#[test]
fn a_request_that_waited_is_told_once() {
    paused().block_on(async {
        let bucket = TokenBucket::new(Quota::per_second(1)).unwrap();
        let layer = RateLimitLayer::shared(Limiter::with_clock(bucket, RuntimeClock::new()));
        let layer = layer.wait(Duration::from_secs(5), 10).unwrap();
        let (layer, told) = told(layer);
        assert_eq!(statuses(&layer, &["/a", "/b"]).await, [200, 200]);
        assert_eq!(words(&told), [served("/a"), served("/b")]);
    });
}

#[tokio::test]
async fn nothing_is_told_of_a_request_that_is_exempt_since_it_lacks_a_key() {
    let table = Keyed::token_bucket(Quota::per_hour(1), 100).unwrap();
    let layer = RateLimitLayer::by_address(table).missing(MissingKey::Exempt);
    for layer in [layer.clone(), layer.shadow()] {
        let (layer, told) = told(layer);
        assert_eq!(statuses(&layer, &["/a"]).await, [200]);
        assert_eq!(words(&told), []);
    }
}
