//! Errors of the service pass through, with their type and value.

use std::task::{Context, Poll};

use http::{Request, Response};
use http_body_util::Empty;
use tollgate::{Concurrency, Limiter, ManualClock, Quota, TokenBucket};
use tollgate_tower::{CountedRequests, RateLimitLayer};
use tower::{Layer, Service, ServiceExt};

use crate::contract::picky::{Exhausted, Picky};

fn error() -> Request<()> {
    Request::get("/error").body(()).unwrap()
}

#[tokio::test]
async fn an_error_of_an_answer() {
    let bucket = TokenBucket::new(Quota::per_hour(9)).unwrap();
    let limiter = Limiter::with_clock(bucket, ManualClock::new());
    let layer = RateLimitLayer::shared(limiter).count(CountedRequests::Successes);
    let mut service = layer.layer(Picky::new());
    for _ in 0..20 {
        let answer: Result<_, Exhausted> = service.ready().await.unwrap().call(error()).await;
        assert_eq!(answer.unwrap_err(), Exhausted(0));
    }
    let stacked = RateLimitLayer::concurrency(Concurrency::new(1).unwrap());
    let mut stacked = stacked.layer(service);
    let answer: Result<_, Exhausted> = stacked.ready().await.unwrap().call(error()).await;
    assert_eq!(answer.unwrap_err(), Exhausted(0));
}

/// Is never ready again.
#[derive(Debug, Clone)]
struct Broken(u64);

impl Service<Request<()>> for Broken {
    type Response = Response<Empty<bytes::Bytes>>;
    type Error = u64;
    type Future = std::future::Pending<Result<Self::Response, u64>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), u64>> {
        Poll::Ready(Err(self.0))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        panic!("it is not ready");
    }
}

#[tokio::test]
async fn an_error_of_readiness() {
    let limiter = Limiter::token_bucket(Quota::per_hour(9)).unwrap();
    let mut service = RateLimitLayer::shared(limiter).layer(Broken(7));
    assert_eq!(service.ready().await.err(), Some(7));
    assert_eq!(service.oneshot(error()).await.err(), Some(7));
}
