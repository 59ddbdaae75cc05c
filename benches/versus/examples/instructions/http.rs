//! The rows of HTTP layers: an empty service alone, limited by the address of the peer, and limited
//! by a policy of one rule. Each row sends a request and reads the whole answer.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use tollgate_http::Fields;
use tower_layer::Layer;
use tower_service::Service;

use crate::service::{
    ADDRESSES, Empty, Limit, by_address, by_policy, governor, governor_with_fields, peer, request,
    send,
};
use crate::{Row, times};

/// callgrind recognizes it by `counted_` in its name.
#[inline(never)]
fn counted_send<S, B>(service: &mut S, request: Request<Body>) -> StatusCode
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible>,
    B: http_body::Body<Error: std::fmt::Debug>,
{
    send(service, request).status()
}

/// Sends requests of many addresses in turn, each of which has made two before: a table protects a
/// key from its second grant on.
fn each<S, B>(mut service: S, allowed: bool, count: u64) -> u64
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible>,
    B: http_body::Body<Error: std::fmt::Debug>,
{
    let numbers = 0..ADDRESSES.min(u32::try_from(count).unwrap_or(u32::MAX));
    for number in numbers.clone().chain(numbers) {
        send(&mut service, request(peer(number)));
    }
    let wanted = match allowed {
        true => StatusCode::OK,
        false => StatusCode::TOO_MANY_REQUESTS,
    };
    let mut turn = 0_u32;
    times(count, || {
        let number = turn;
        turn = turn.wrapping_add(1);
        counted_send(&mut service, request(peer(number))) == wanted
    })
}

const fn limit(allowed: bool) -> Limit {
    match allowed {
        true => Limit::WIDE,
        false => Limit::TWO,
    }
}

fn address(fields: Fields, allowed: bool, count: u64) -> u64 {
    let layer = by_address(limit(allowed)).expect("a limit");
    each(layer.fields(fields).layer(Empty), allowed, count)
}

fn policy(fields: Fields, allowed: bool, count: u64) -> u64 {
    let layer = by_policy(limit(allowed)).expect("a policy");
    each(layer.fields(fields).layer(Empty), allowed, count)
}

pub(crate) static HTTP: &[Row] = &[
    ("http-none", |count| each(Empty, true, count)),
    ("http-allowed", |count| address(Fields::OFF, true, count)),
    ("http-denied", |count| address(Fields::OFF, false, count)),
    ("http-fields-allowed", |count| {
        address(Fields::LIST, true, count)
    }),
    ("http-fields-denied", |count| {
        address(Fields::LIST, false, count)
    }),
    ("http-policy-allowed", |count| {
        policy(Fields::OFF, true, count)
    }),
    ("http-policy-denied", |count| {
        policy(Fields::OFF, false, count)
    }),
    ("http-policy-fields-allowed", |count| {
        policy(Fields::LIST, true, count)
    }),
    ("http-governor-allowed", |count| {
        each(governor(Limit::WIDE).layer(Empty), true, count)
    }),
    ("http-governor-fields-allowed", |count| {
        each(governor_with_fields(Limit::WIDE).layer(Empty), true, count)
    }),
];
