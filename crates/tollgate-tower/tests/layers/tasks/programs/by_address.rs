use axum::{Router, routing::get};
use tollgate_tower::tollgate::{Keyed, Quota};
use tollgate_tower::{ClientAddress, RateLimitLayer};

pub(crate) fn app() -> Result<Router, Box<dyn std::error::Error>> {
    let limits = Keyed::token_bucket(Quota::per_hour(3), 100_000)?;
    let behind_proxy = ClientAddress::peer().trust("10.0.0.0/8")?.x_forwarded_for();
    let limit = RateLimitLayer::by_address(limits).client_address(behind_proxy);
    Ok(Router::new().route("/", get(async || "hello")).layer(limit))
}
