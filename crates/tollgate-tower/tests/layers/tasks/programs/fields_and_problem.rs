use axum::{Router, routing::get};
use tollgate_tower::tollgate::{Keyed, Quota, error::LimiterError};
use tollgate_tower::{Fields, RateLimitLayer, RefusalBody};

pub(crate) fn app() -> Result<Router, LimiterError> {
    let limits = Keyed::token_bucket(Quota::per_hour(3), 100_000)?;
    let limit = RateLimitLayer::by_address(limits)
        .name("address")
        .fields(Fields::LIST)
        .body(RefusalBody::Problem);
    Ok(Router::new().route("/", get(async || "hello")).layer(limit))
}
