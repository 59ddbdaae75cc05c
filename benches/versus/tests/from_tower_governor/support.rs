//! Services and requests.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, Response};
use tollgate::clock::Clock;
use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
use tower::{Layer, Service, ServiceExt};

pub(crate) type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Answers each request with `ok`, behind a layer.
pub(crate) fn behind<L>(layer: L) -> L::Service
where
    L: Layer<tower::util::BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>>,
{
    let answer = |_: Request<Body>| async { Ok(Response::new(Body::from("ok"))) };
    layer.layer(tower::util::BoxCloneSyncService::new(tower::service_fn(
        answer,
    )))
}

/// A request from an address.
pub(crate) fn from(address: &str) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    let address = SocketAddr::new(address.parse().expect("an address"), 40_000);
    request.extensions_mut().insert(ConnectInfo(address));
    request
}

/// A request from an address with one line of a header.
pub(crate) fn with(address: &str, name: &'static str, value: &str) -> Request<Body> {
    let mut request = from(address);
    let value = value.parse().expect("a value");
    request.headers_mut().append(name, value);
    request
}

/// Sends a request. Returns the status, the headers and the body.
pub(crate) async fn send<S, B>(service: &S, request: Request<Body>) -> (u16, HeaderMap, Bytes)
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone,
    B: axum::body::HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
{
    let answer = service.clone().oneshot(request).await;
    let (parts, body) = answer.unwrap_or_else(|never| match never {}).into_parts();
    let body = axum::body::to_bytes(Body::new(body), 10_000).await;
    (parts.status.as_u16(), parts.headers, body.expect("a body"))
}

/// Sends requests one after another. Returns the statuses.
pub(crate) async fn statuses<S, B>(
    service: &S,
    requests: impl IntoIterator<Item = Request<Body>>,
) -> Vec<u16>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone,
    B: axum::body::HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
{
    let mut statuses = Vec::new();
    for request in requests {
        statuses.push(send(service, request).await.0);
    }
    statuses
}

/// Sends requests from an address until one is refused. Returns its headers, and how many were
/// granted.
pub(crate) async fn until_refused<S, B>(service: &S, address: &str) -> (usize, HeaderMap)
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone,
    B: axum::body::HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
{
    for granted in 0..10_000 {
        let (status, headers, _) = send(service, from(address)).await;
        if status == 429 {
            return (granted, headers);
        }
    }
    panic!("10 000 requests were granted");
}

/// A table with room for 1000 clients, on this clock.
pub(crate) fn table<C: Clock + Clone>(quota: Quota, clock: &C) -> Result<Keyed<TokenBucket, C>> {
    Ok(Keyed::with_clock(
        TokenBucket::new(quota)?,
        1000,
        clock.clone(),
    )?)
}

/// The same on a clock that stands still.
pub(crate) fn still(quota: Quota) -> Result<Keyed<TokenBucket, ManualClock>> {
    table(quota, &ManualClock::new())
}

/// Returns a header that is a number.
pub(crate) fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}
