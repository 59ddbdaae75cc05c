//! Requests from many clients, to a service that answers with nothing.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use tollgate_tower::{Admission, PeerAddr, RateLimitLayer};
use tower::{Layer, Service, ServiceExt};

#[derive(Debug, Clone)]
struct Nothing;

impl Service<Request<()>> for Nothing {
    type Response = Response<Empty<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new(Empty::new())))
    }
}

/// A request from a client with a number. Its address and its API key have the number.
pub(crate) fn from(number: u32) -> Request<()> {
    let [_, a, b, c] = number.to_be_bytes();
    let address = SocketAddr::new(IpAddr::from([10, a, b, c]), 4711);
    let request = Request::get("/").extension(PeerAddr(address));
    request
        .header("x-api-key", format!("secret-{number}"))
        .body(())
        .unwrap()
}

/// Sends a request, and returns the status.
pub(crate) async fn send<A: Admission>(layer: &RateLimitLayer<A>, request: Request<()>) -> u16 {
    let answer = layer.layer(Nothing).oneshot(request).await.unwrap();
    answer.status().as_u16()
}
