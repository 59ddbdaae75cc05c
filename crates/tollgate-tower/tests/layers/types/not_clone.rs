//! A layer none of whose requests waits asks for no clone of the service.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use tollgate::clock::Clock;
use tollgate::keyed::KeyedConcurrency;
use tollgate::{Concurrency, Keyed, LeakyBucket, Limiter, ManualClock, Quota, TokenBucket};
use tollgate_tower::{Ambiguous, Fields, MissingKey, RateLimitLayer, RequestFacts};
use tower::{Layer, Service, ServiceBuilder};

/// It is no `Clone`.
#[derive(Debug)]
struct Page;

impl Service<Request<()>> for Page {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new("page".into())))
    }
}

fn key(facts: &RequestFacts<'_>) -> Result<Option<String>, Ambiguous> {
    Ok(facts.query("key")?.map(|key| key.into_owned()))
}

async fn send<S, B>(service: &mut S, path: &str) -> Response<B>
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible>,
{
    let request = Request::get(path).body(()).expect("a request");
    service.call(request).await.expect("an answer")
}

fn bucket() -> TokenBucket {
    TokenBucket::new(Quota::per_hour(1)).expect("a bucket")
}

#[tokio::test]
async fn rates() {
    let limiter = Limiter::with_clock(bucket(), ManualClock::new());
    let mut service = RateLimitLayer::shared(limiter).at_once().layer(Page);
    assert_eq!(send(&mut service, "/").await.status(), 200);
    assert_eq!(send(&mut service, "/").await.status(), 429);

    let table = Keyed::with_clock(bucket(), 9, ManualClock::new()).expect("a table");
    let layer = RateLimitLayer::by_key(table, key).missing(MissingKey::Exempt);
    let mut service = ServiceBuilder::new().layer(layer.at_once()).service(Page);
    for (path, status) in [
        ("/?key=a", 200),
        ("/?key=a", 429),
        ("/?key=b", 200),
        ("/", 200),
    ] {
        assert_eq!(send(&mut service, path).await.status(), status, "{path}");
    }
}

#[tokio::test]
async fn concurrencies() {
    let places = Concurrency::new(1).expect("a place");
    let mut service = RateLimitLayer::concurrency(places).at_once().layer(Page);
    let answer = send(&mut service, "/").await;
    assert_eq!(send(&mut service, "/").await.status(), 503);
    drop(answer);
    assert_eq!(send(&mut service, "/").await.status(), 200);

    let places = KeyedConcurrency::new(1, 9).expect("places");
    let layer = RateLimitLayer::concurrency_by_key(places, key);
    let mut service = layer.at_once().layer(Page);
    let _answer = send(&mut service, "/?key=a").await;
    assert_eq!(send(&mut service, "/?key=a").await.status(), 503);
    assert_eq!(send(&mut service, "/?key=b").await.status(), 200);
}

/// A limit that says how long a granted request has to wait refuses it here, and loses nothing.
#[tokio::test]
async fn a_queue_refuses_what_it_would_delay() {
    let queue = LeakyBucket::queue(Quota::per_minute(1).burst(3)).expect("a queue");
    let limiter = Arc::new(Limiter::with_clock(queue, ManualClock::new()));
    let layer = RateLimitLayer::shared(Arc::clone(&limiter)).fields(Fields::LIST);
    let mut service = layer.at_once().layer(Page);
    assert_eq!(send(&mut service, "/").await.status(), 200);
    let before = limiter.available();
    for _ in 0..5 {
        let refused = send(&mut service, "/").await;
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.headers()["retry-after"], "60");
        assert_eq!(limiter.available(), before);
    }
    limiter.clock().advance(Duration::from_secs(60));
    assert_eq!(send(&mut service, "/").await.status(), 200);
    assert!(limiter.clock().now() > tollgate::Tick::ZERO);
}

/// It takes back that requests wait.
#[tokio::test]
async fn after_wait() {
    let places = Arc::new(Concurrency::new(1).expect("a place"));
    let layer = RateLimitLayer::concurrency(Arc::clone(&places));
    let layer = layer.wait(Duration::from_secs(9), 9).expect("places");
    let mut service = layer.at_once().layer(Page);
    let _guard = places.try_enter().expect("room");
    assert_eq!(send(&mut service, "/").await.status(), 503);

    let limiter = Limiter::with_clock(bucket(), tollgate::clock::TokioClock);
    let layer = RateLimitLayer::shared(limiter).wait(Duration::from_secs(9999), 9);
    let mut service = layer.expect("places").at_once().layer(Page);
    assert_eq!(send(&mut service, "/").await.status(), 200);
    assert_eq!(send(&mut service, "/").await.status(), 429);
}
