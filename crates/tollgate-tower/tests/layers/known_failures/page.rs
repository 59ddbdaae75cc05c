//! A service, and layers before it.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tollgate::keyed::SeededHasher;
use tollgate::{Keyed, Limiter, ManualClock, Quota, TokenBucket};
use tollgate_policy::{LivePolicy, Policy};
use tollgate_tower::{
    Admission, ByAddress, PeerAddr, PerKey, Rate, RateLimitLayer, RateLimitService,
};
use tower::{Service, ServiceExt};

/// Answers with a page, which says in `x-tokens` what the request asks for.
#[derive(Debug, Clone)]
pub(crate) struct Page;

impl Service<Request<()>> for Page {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let mut answer = Response::new(Full::new(Bytes::from_static(b"a page")));
        if let Some(tokens) = request.headers().get("x-tokens") {
            answer.headers_mut().insert("x-tokens", tokens.clone());
        }
        ready(Ok(answer))
    }
}

/// A request from an address.
pub(crate) fn from(address: &str) -> http::request::Builder {
    let address: IpAddr = address.parse().unwrap();
    Request::get("/").extension(PeerAddr(SocketAddr::new(address, 4711)))
}

/// Sends a request to its end. Returns the status and `Retry-After`.
pub(crate) async fn send<A: Admission>(
    service: &RateLimitService<Page, A>,
    request: http::request::Builder,
) -> (u16, Option<u64>) {
    let answer = service
        .clone()
        .oneshot(request.body(()).unwrap())
        .await
        .unwrap();
    let (parts, body) = answer.into_parts();
    body.collect().await.unwrap();
    let wait = parts.headers.get("retry-after");
    let wait = wait.map(|wait| wait.to_str().unwrap().parse().unwrap());
    (parts.status.as_u16(), wait)
}

pub(crate) fn bucket(quota: Quota) -> TokenBucket {
    TokenBucket::new(quota).unwrap()
}

pub(crate) fn shared(quota: Quota, clock: &ManualClock) -> RateLimitLayer<impl Admission + use<>> {
    RateLimitLayer::shared(Limiter::with_clock(bucket(quota), clock.clone()))
}

pub(crate) type ByAddresses = PerKey<TokenBucket, ManualClock, SeededHasher, ByAddress>;

pub(crate) fn by_address(quota: Quota) -> RateLimitLayer<Rate<ByAddresses>> {
    RateLimitLayer::by_address(Keyed::with_clock(bucket(quota), 1000, ManualClock::new()).unwrap())
}

pub(crate) fn live(text: &str, clock: &ManualClock) -> Arc<LivePolicy<ManualClock>> {
    let policy = Policy::builder().clock(clock.clone()).build_toml(text);
    Arc::new(LivePolicy::new(policy.unwrap()))
}
