//! Checks the layers before they are timed.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use tollgate_http::Fields;
use tower_layer::Layer;
use tower_service::Service;

use super::{
    Empty, Limit, by_address, by_policy, governor, governor_with_fields, peer, request, send,
};

/// Checks that each layer grants an address what its limit says and denies the next request, that
/// another address is not affected, and that answers have their fields.
///
/// # Errors
///
/// Returns what is wrong.
pub fn check() -> Result<(), String> {
    let limit = Limit::TWO;
    let text = |error: &dyn std::error::Error| error.to_string();
    let layer = || by_address(limit).map_err(|error| text(&error));
    let policy = || by_policy(limit).map_err(|error| text(&error));
    let (ours, theirs) = (Some("ratelimit"), Some("x-ratelimit-remaining"));
    of("tollgate", layer()?.layer(Empty), None)?;
    of(
        "tollgate, fields",
        layer()?.fields(Fields::LIST).layer(Empty),
        ours,
    )?;
    of("policy", policy()?.layer(Empty), None)?;
    of(
        "policy, fields",
        policy()?.fields(Fields::LIST).layer(Empty),
        ours,
    )?;
    of("governor", governor(limit).layer(Empty), None)?;
    of(
        "governor, fields",
        governor_with_fields(limit).layer(Empty),
        theirs,
    )
}

fn of<S, B>(name: &str, mut service: S, field: Option<&str>) -> Result<(), String>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible>,
    B: http_body::Body<Error: std::fmt::Debug>,
{
    const GRANTED: StatusCode = StatusCode::OK;
    const DENIED: StatusCode = StatusCode::TOO_MANY_REQUESTS;
    for (number, status) in [
        (0, GRANTED),
        (0, GRANTED),
        (0, DENIED),
        (1, GRANTED),
        (0, DENIED),
    ] {
        let answer = send(&mut service, request(peer(number)));
        let is_denied = status == DENIED;
        let headers = answer.headers();
        if answer.status() != status {
            return Err(format!("{name}: {} instead of {status}", answer.status()));
        }
        if headers.contains_key("retry-after") != is_denied || (*answer.body() > 0) != is_denied {
            return Err(format!("{name}: a wrong answer: {answer:?}"));
        }
        if field.is_some_and(|field| !headers.contains_key(field)) {
            return Err(format!("{name}: no fields: {answer:?}"));
        }
    }
    Ok(())
}
