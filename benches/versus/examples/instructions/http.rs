//! The rows of layers that limit requests by address: an empty service alone, and within them. Each
//! request is made and its answer read, so that only the difference between two rows counts.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use tollgate_http::Fields;
use tollgate_versus::http::{
    Empty, Limit, by_address, by_policy, governor, governor_with_fields, peer, request, send,
};
use tower_layer::Layer;
use tower_service::Service;

use crate::{Row, times};

/// The wrapper. callgrind recognizes it by `counted_` in its name.
mod counted {
    use super::*;

    #[inline(never)]
    pub(super) fn counted_send<S, B>(service: &mut S, number: u32) -> StatusCode
    where
        S: Service<Request<Body>, Response = Response<B>, Error = Infallible>,
        B: http_body::Body<Error: std::fmt::Debug>,
    {
        send(service, request(peer(number))).status()
    }
}
use counted::*;

/// Sends requests through a layer. The first two are granted, and are not counted.
fn through<L, B>(layer: &L, status: StatusCode, count: u64) -> u64
where
    L: Layer<Empty>,
    L::Service: Service<Request<Body>, Response = Response<B>, Error = Infallible>,
    B: http_body::Body<Error: std::fmt::Debug>,
{
    let mut service = layer.layer(Empty);
    for _ in 0..2 {
        assert_eq!(send(&mut service, request(peer(0))).status(), GRANTED);
    }
    times(count, || counted_send(&mut service, 0) == status)
}

const GRANTED: StatusCode = StatusCode::OK;
const DENIED: StatusCode = StatusCode::TOO_MANY_REQUESTS;

pub(crate) static HTTP: &[Row] = &[
    ("http-none", |count| {
        times(count, || counted_send(&mut Empty, 0) == GRANTED)
    }),
    ("http-allowed", |count| {
        let layer = by_address(Limit::WIDE).expect("a limit");
        through(&layer, GRANTED, count)
    }),
    ("http-denied", |count| {
        let layer = by_address(Limit::TWO).expect("a limit");
        through(&layer, DENIED, count)
    }),
    ("http-fields-allowed", |count| {
        let layer = by_address(Limit::WIDE).expect("a limit");
        through(&layer.fields(Fields::LIST), GRANTED, count)
    }),
    ("http-fields-denied", |count| {
        let layer = by_address(Limit::TWO).expect("a limit");
        through(&layer.fields(Fields::LIST), DENIED, count)
    }),
    ("http-policy-allowed", |count| {
        let layer = by_policy(Limit::WIDE).expect("a limit");
        through(&layer, GRANTED, count)
    }),
    ("http-policy-denied", |count| {
        let layer = by_policy(Limit::TWO).expect("a limit");
        through(&layer, DENIED, count)
    }),
    ("http-governor-allowed", |count| {
        through(&governor(Limit::WIDE), GRANTED, count)
    }),
    ("http-governor-denied", |count| {
        through(&governor(Limit::TWO), DENIED, count)
    }),
    ("http-governor-fields-allowed", |count| {
        through(&governor_with_fields(Limit::WIDE), GRANTED, count)
    }),
    ("http-governor-fields-denied", |count| {
        through(&governor_with_fields(Limit::TWO), DENIED, count)
    }),
];
