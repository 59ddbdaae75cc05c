//! Services and requests for the tests.

use std::convert::Infallible;
use std::future::Ready;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tollgate_tower::PeerAddr;
use tower::{Service, ServiceExt};

/// Answers each request with `ok`.
#[derive(Debug, Clone)]
pub(crate) struct Ok200;

impl<B> Service<Request<B>> for Ok200 {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        std::future::ready(Ok(Response::new(Full::new(Bytes::from_static(b"ok")))))
    }
}

/// A request to a path, from an address.
pub(crate) fn from(address: &str, path: &str) -> Request<()> {
    let address: SocketAddr = format!("{address}:40000").parse().unwrap();
    let request = Request::get(path).extension(PeerAddr(address));
    request.body(()).unwrap()
}

/// Sends a request, and reads the whole answer.
pub(crate) async fn send<S, B, R>(service: &S, request: Request<B>) -> Response<Bytes>
where
    S: Service<Request<B>, Response = Response<R>, Error = Infallible> + Clone,
    R: http_body::Body<Data = Bytes, Error = Infallible>,
{
    let answer = service.clone().oneshot(request).await.unwrap();
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Response::from_parts(parts, body)
}
