//! The service that was ready is the one that is called, also after a wait.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use tollgate::keyed::KeyedConcurrency;
use tollgate::{Concurrency, Keyed, LeakyBucket, Limiter, Quota, TokenBucket};
use tollgate_http::RequestFacts;
use tollgate_policy::{LivePolicy, Policy};
use tollgate_tower::{Admission, RateLimitLayer, RateLimitService};
use tower::buffer::Buffer;
use tower::{Layer, Service, ServiceExt};

use crate::clock::{RuntimeClock, paused};
use crate::contract::picky::{Exhausted, Picky};

fn request() -> Request<()> {
    Request::get("/").header("x-key", "a").body(()).unwrap()
}

fn key(facts: &RequestFacts<'_>) -> Option<String> {
    Some(facts.header("x-key").ok()??.into_owned())
}

/// Ten at once, and ten a second.
fn bucket() -> TokenBucket {
    TokenBucket::new(Quota::per_second(10)).unwrap()
}

const WAIT: Duration = Duration::from_secs(60);

/// Runs a test for a layer of each kind. Each serves a request at once, if the ones before are over
/// and there were fewer than ten.
macro_rules! for_each_layer {
    ($test:ident) => {
        paused().block_on(async {
            let clock = RuntimeClock::new();
            let shared = Limiter::with_clock(bucket(), clock);
            $test(RateLimitLayer::shared(shared), "shared").await;
            let shared = Limiter::with_clock(bucket(), clock);
            let waits = RateLimitLayer::shared(shared).wait(WAIT, 100).unwrap();
            $test(waits, "shared, waits").await;
            let table = Keyed::with_clock(bucket(), 100, clock).unwrap();
            $test(RateLimitLayer::by_key(table, key), "keyed").await;
            let table = Keyed::with_clock(bucket(), 100, clock).unwrap();
            let waits = RateLimitLayer::by_key(table, key).wait(WAIT, 100).unwrap();
            $test(waits, "keyed, waits").await;
            let places = Concurrency::new(1).unwrap();
            $test(RateLimitLayer::concurrency(places), "places").await;
            let places = Concurrency::new(1).unwrap();
            let waits = RateLimitLayer::concurrency(places).wait(WAIT, 100).unwrap();
            $test(waits, "places, waits").await;
            let places = KeyedConcurrency::new(1, 100).unwrap();
            $test(
                RateLimitLayer::concurrency_by_key(places, key),
                "places by key",
            )
            .await;
            let text = "apply = 'all'\n[[rule]]\nname = 'a'\nlimit = '10/s'\n\
                        [[rule]]\nname = 'b'\nlimit = 'concurrency 1'";
            let live = || {
                let policy = Policy::builder().clock(clock).build_toml(text).unwrap();
                LivePolicy::new(policy)
            };
            $test(RateLimitLayer::policy(live()), "policy").await;
            let waits = RateLimitLayer::policy(live()).wait(WAIT, 100).unwrap();
            $test(waits, "policy, waits").await;
        });
    };
}

/// Asks whether a service is ready, once.
fn is_ready<S: Service<Request<()>>>(service: &mut S) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    service.poll_ready(&mut context).is_ready()
}

async fn text<R: Body<Error: std::fmt::Debug>>(answer: Response<R>) -> Bytes {
    answer.into_body().collect().await.unwrap().to_bytes()
}

#[test]
fn the_service_that_was_ready_is_called() {
    async fn test<A: Admission + Clone>(layer: RateLimitLayer<A>, name: &str) {
        let picky = Picky::new();
        let log = picky.log();
        let mut service = layer.layer(picky);
        for _ in 0..5 {
            let answer = service
                .ready()
                .await
                .unwrap()
                .call(request())
                .await
                .unwrap();
            assert_eq!(answer.status(), 200, "{name}");
            assert_eq!(text(answer).await, "0", "{name}");
        }
        assert_eq!(log.lock().called, [0; 5], "{name}");
        // Each was asked three times, and by nobody but the caller.
        assert_eq!(log.lock().polled[&0], 15, "{name}");
        // Clones begin anew.
        for _ in 0..5 {
            let answer = service.clone().oneshot(request()).await.unwrap();
            assert_eq!(answer.status(), 200, "{name}");
            text(answer).await;
        }
        assert!(
            log.lock().polled.values().all(|polls| polls % 3 == 0),
            "{name}"
        );
    }
    for_each_layer!(test);
}

#[test]
fn readiness_is_the_services() {
    async fn test<A: Admission + Clone>(layer: RateLimitLayer<A>, name: &str) {
        let mut service = layer.layer(Picky::new());
        for _ in 0..3 {
            let ready: Vec<_> = (0..5).map(|_| is_ready(&mut service)).collect();
            assert_eq!(ready, [false, false, true, true, true], "{name}");
            text(service.call(request()).await.unwrap()).await;
        }
    }
    for_each_layer!(test);
}

/// A request that waits keeps the service that was ready, and others may be asked meanwhile.
#[test]
fn after_a_wait_the_service_that_was_ready_is_called() {
    async fn test<A: Admission + Clone>(layer: RateLimitLayer<A>, name: &str) {
        if !name.ends_with("waits") {
            return;
        }
        let picky = Picky::new();
        let log = picky.log();
        let mut service = layer.layer(picky);
        let mut bodies = Vec::new();
        // The rates are used up, and the places are taken.
        for _ in 0..if name.starts_with("places") { 1 } else { 10 } {
            let answer = service
                .ready()
                .await
                .unwrap()
                .call(request())
                .await
                .unwrap();
            assert_eq!(answer.status(), 200, "{name}");
            bodies.push(answer);
            if name.starts_with("policy") {
                bodies.clear();
            }
        }
        let mut waiting = Vec::new();
        for _ in 0..3 {
            service.ready().await.unwrap();
            let ready = *log.lock().ready.last().unwrap();
            let mut answer = Box::pin(service.call(request()));
            let mut context = Context::from_waker(Waker::noop());
            assert!(answer.as_mut().poll(&mut context).is_pending(), "{name}");
            waiting.push((ready, answer));
        }
        // Three clones are reserved, and they are different ones.
        let mut reserved: Vec<_> = waiting.iter().map(|(ready, _)| *ready).collect();
        assert_eq!(log.lock().ready, reserved, "{name}");
        reserved.dedup();
        assert_eq!(reserved.len(), 3, "{name}");
        bodies.clear();
        for (ready, answer) in waiting {
            let answer = answer.await.unwrap();
            assert_eq!(text(answer).await, ready.to_string(), "{name}");
        }
        assert!(log.lock().ready.is_empty());
    }
    for_each_layer!(test);
}

/// A request that is refused leaves the service ready. One that goes away while it waits frees the
/// service that it had.
#[test]
fn a_refusal_uses_no_readiness() {
    paused().block_on(async {
        let picky = Picky::new();
        let log = picky.log();
        let places = Arc::new(Concurrency::new(1).unwrap());
        let layer = RateLimitLayer::concurrency(Arc::clone(&places))
            .wait(WAIT, 1)
            .unwrap();
        let mut service = layer.layer(picky);
        let guard = places.try_enter().unwrap();
        let waits = service.ready().await.unwrap().call(request());
        assert_eq!(log.lock().ready, [0]);
        for _ in 0..3 {
            service.ready().await.unwrap();
            let answer = service.call(request()).await.unwrap();
            assert_eq!(answer.status(), 503);
        }
        assert!(log.lock().called.is_empty());
        // It is still ready, at the first time of asking.
        assert!(is_ready(&mut service));
        drop(waits);
        assert_eq!(log.lock().ready.len(), 1);
        drop(guard);
        assert_eq!(service.call(request()).await.unwrap().status(), 200);
    });
}

/// A queue of the limiter delays a request without a wait of the layer's.
#[test]
fn after_a_delay_the_service_that_was_ready_is_called() {
    paused().block_on(async {
        let picky = Picky::new();
        let log = picky.log();
        let queue = LeakyBucket::queue(Quota::per_second(10).burst(5)).unwrap();
        let limiter = Limiter::with_clock(queue, RuntimeClock::new());
        let mut service = RateLimitLayer::shared(limiter).layer(picky);
        for number in 0..5 {
            service.ready().await.unwrap();
            let ready = *log.lock().ready.last().unwrap();
            let answer = service.call(request()).await.unwrap();
            assert_eq!(text(answer).await, ready.to_string(), "{number}");
        }
    });
}

#[test]
fn a_buffer_before_and_behind() {
    async fn test<A>(layer: RateLimitLayer<A>, name: &str)
    where
        A: Admission + Clone + Send + Sync + 'static,
        RateLimitService<Picky, A>:
            Service<Request<()>, Response: IntoStatus, Error = Exhausted, Future: Send> + Send,
    {
        let before = Buffer::new(layer.layer(Picky::new()), 3);
        for _ in 0..5 {
            let answer = before.clone().oneshot(request()).await.unwrap();
            assert_eq!(answer.status(), 200, "{name}");
        }
        let behind: Buffer<Request<()>, _> = Buffer::new(Picky::new(), 1);
        let mut behind = layer.layer(behind);
        for _ in 0..5 {
            let answer = behind.ready().await.unwrap().call(request()).await.unwrap();
            assert_eq!(answer.status(), 200, "{name}");
        }
    }
    for_each_layer!(test);
}

/// An answer, of whatever body.
trait IntoStatus {
    fn status(&self) -> u16;
}

impl<B> IntoStatus for Response<B> {
    fn status(&self) -> u16 {
        Response::status(self).as_u16()
    }
}

/// axum clones its services, and asks each clone.
#[test]
fn behind_a_router() {
    async fn test<A>(layer: RateLimitLayer<A>, name: &str)
    where
        A: Admission + Clone + Send + Sync + 'static,
        A::Grant: Send,
        A::Pending: Send,
    {
        let answers = |error: Exhausted| -> Infallible { panic!("{error}") };
        let service = tower::ServiceBuilder::new().map_err(answers).layer(layer);
        let service = service.map_request(|request: Request<axum::body::Body>| request.map(drop));
        let router = axum::Router::new().route_service("/", service.service(Picky::new()));
        for _ in 0..5 {
            let request = Request::get("/").header("x-key", "a");
            let request = request.body(axum::body::Body::empty()).unwrap();
            let answer = router.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), 200, "{name}");
            text(answer).await;
        }
    }
    for_each_layer!(test);
}
