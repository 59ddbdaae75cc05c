//! An empty HTTP service, its requests, and the layers that limit them by the address of the peer.

mod check;
mod layers;

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use ::http::{Request, Response};
use axum::body::Body;
use axum::extract::ConnectInfo;
use tower_service::Service;

pub use check::check;
pub use layers::{
    ByAddress, Governor, GovernorWithFields, Limit, by_address, by_policy, governor,
    governor_with_fields,
};

/// Answers each request with an empty body. It is called as little in line as the services of a
/// server are, which are in boxes.
#[derive(Debug, Clone, Copy)]
pub struct Empty;

impl Service<Request<Body>> for Empty {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    #[inline(never)]
    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Ok(Response::new(Body::empty())))
    }
}

/// How many addresses there are.
pub const ADDRESSES: u32 = 10_000;

/// Returns one of the [`ADDRESSES`].
#[must_use]
pub fn peer(number: u32) -> Ipv4Addr {
    const FIRST: u32 = Ipv4Addr::new(10, 0, 0, 0).to_bits();
    Ipv4Addr::from_bits(FIRST + number % ADDRESSES)
}

/// Returns a request as axum passes it on: with the address of the peer among its extensions.
#[inline]
#[must_use]
pub fn request(from: Ipv4Addr) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    let peer = SocketAddr::from((from, 40_000));
    request.extensions_mut().insert(ConnectInfo(peer));
    request
}

/// Sends a request to a service that answers at once, and reads the whole answer.
///
/// # Panics
///
/// Panics if the service does not answer at once.
#[inline]
pub fn send<S, B>(service: &mut S, request: Request<Body>) -> Response<u64>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible>,
    B: http_body::Body<Error: std::fmt::Debug>,
{
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(service.poll_ready(cx).is_ready(), "the service is ready");
    let answer = pin!(call(service, request));
    let Poll::Ready(Ok(answer)) = poll(answer, cx) else {
        panic!("the service answers at once");
    };
    let (parts, body) = answer.into_parts();
    let mut body = pin!(body);
    let mut bytes = 0;
    while !body.is_end_stream() {
        match body.as_mut().poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let data = frame.into_data().ok();
                bytes += data.map_or(0, |data| bytes::Buf::remaining(&data) as u64);
            }
            Poll::Ready(None) => break,
            _ => panic!("the body is there at once"),
        }
    }
    Response::from_parts(parts, bytes)
}

/// Calls a service as a server does: not in line.
#[inline(never)]
fn call<S: Service<Request<Body>>>(service: &mut S, request: Request<Body>) -> S::Future {
    service.call(request)
}

#[inline(never)]
fn poll<F: Future>(future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
    future.poll(cx)
}
