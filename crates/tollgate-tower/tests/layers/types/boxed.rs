//! A boxed layer decides, answers, waits and settles as the same layer that is not boxed.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Request, Response};
use http_body_util::{BodyExt, Full};
use tokio::time::{Instant, sleep};
use tollgate::{Concurrency, Keyed, LeakyBucket, Limiter, Quota, TokenBucket};
use tollgate_policy::Policy;
use tollgate_tower::{
    Admission, BoxedLimits, ByHeader, CountedRequests, Fields, RateLimitLayer, RefusalBody,
};
use tower::{Layer, ServiceExt, service_fn};

use crate::clock::RuntimeClock;

/// An answer after 100 ms, which says that the request cost three.
async fn page(_: Request<()>) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
    sleep(Duration::from_millis(100)).await;
    let answer = Response::builder().header("x-cost", "3");
    Ok(answer.body("page".into()).unwrap())
}

/// Sends requests, two at a time, and returns the answers and when each came.
async fn answers<A: Admission>(layer: RateLimitLayer<A>) -> Vec<String> {
    let layer = layer.fields(Fields::LIST).body(RefusalBody::Problem);
    let (service, began) = (layer.layer(service_fn(page)), Instant::now());
    let ask = |key: &'static str| {
        let request = Request::get("/").header("x-key", key).body(()).unwrap();
        let answer = service.clone().oneshot(request);
        async move {
            let (head, body) = answer.await.unwrap().into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let after = began.elapsed().as_millis();
            format!("{after} ms: {} {:?} {body:?}", head.status, head.headers)
        }
    };
    let mut answers = Vec::new();
    for _ in 0..4 {
        let (one, two) = tokio::join!(ask("a"), ask("b"));
        answers.extend([one, two, ask("a").await]);
        // A client that goes away.
        drop(tokio::time::timeout(Duration::from_millis(50), ask("b")).await);
    }
    answers
}

/// Compares a layer with the same layer in a box, on limits of its own.
async fn compare<A: Admission>(layer: impl Fn() -> RateLimitLayer<A>, statuses: &[&str]) {
    let expected = answers(layer()).await;
    assert_eq!(answers(layer().boxed()).await, expected);
    let twice: RateLimitLayer<BoxedLimits> = layer().boxed().boxed();
    assert_eq!(answers(twice).await, expected);
    for status in statuses {
        assert!(
            expected.iter().any(|it| it.contains(status)),
            "{expected:#?}"
        );
    }
}

fn bucket(burst: u64) -> TokenBucket {
    TokenBucket::new(Quota::per_second(4).burst(burst)).unwrap()
}

fn by_key() -> ByHeader {
    ByHeader(HeaderName::from_static("x-key"))
}

#[tokio::test(start_paused = true)]
async fn rates() {
    let table = || Keyed::with_clock(bucket(2), 100, RuntimeClock::new()).unwrap();
    compare(
        || RateLimitLayer::by_key(table(), by_key()),
        &["200", "429"],
    )
    .await;
    let settled = || {
        let layer = RateLimitLayer::shared(Limiter::with_clock(bucket(9), RuntimeClock::new()));
        layer.settle(|ended| ended.header_number("x-cost").unwrap_or(1))
    };
    compare(settled, &["200", "429"]).await;
    let failures = || {
        let layer = RateLimitLayer::shared(Limiter::with_clock(bucket(2), RuntimeClock::new()));
        layer.count(CountedRequests::Failures)
    };
    compare(failures, &["200"]).await;
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait() {
    let wait = Duration::from_millis(300);
    let line = || {
        let layer = RateLimitLayer::shared(Limiter::with_clock(bucket(2), RuntimeClock::new()));
        layer.wait(wait, 2).unwrap()
    };
    compare(line, &["200", "429", "350 ms"]).await;
    let queue = || {
        let queue = LeakyBucket::queue(Quota::per_second(4).burst(2)).unwrap();
        RateLimitLayer::shared(Limiter::with_clock(queue, RuntimeClock::new()))
    };
    compare(queue, &["200", "429"]).await;
    let places = || {
        let layer = RateLimitLayer::concurrency(Concurrency::new(1).unwrap());
        layer.wait(wait, 1).unwrap()
    };
    compare(places, &["200", "200 ms"]).await;
}

#[tokio::test(start_paused = true)]
async fn policies() {
    let text = "apply = 'all'\n\
                [[rule]]\nname = 'key'\nkey = 'header:x-key'\nlimit = '4/s burst 2'\n\
                cost = { default = 1, settle = 'x-cost' }\n\
                [[rule]]\nname = 'all'\nlimit = ['9/s', 'concurrency 1']\n";
    let layer = || {
        let policy = Policy::builder()
            .clock(RuntimeClock::new())
            .build_toml(text);
        let layer = RateLimitLayer::policy(policy.unwrap());
        layer.answer_fact("x-cost", |ended| ended.header_number("x-cost"))
    };
    compare(layer, &["200", "429", "503"]).await;
    let wait = Duration::from_millis(300);
    compare(|| layer().wait(wait, 2).unwrap(), &["200", "429"]).await;
}
