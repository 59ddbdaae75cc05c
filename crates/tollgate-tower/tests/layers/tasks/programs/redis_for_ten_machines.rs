use std::sync::Arc;

use axum::{Router, http::HeaderName, routing::get};
use tollgate_tower::tollgate::Quota;
use tollgate_tower::tollgate_redis::client::connect_lazily;
use tollgate_tower::tollgate_redis::{Fallback, Keys, RedisLimiter, RedisServer};
use tollgate_tower::{ByHeader, RateLimitLayer};

pub(crate) fn app(redis: &str) -> Result<Router, Box<dyn std::error::Error>> {
    let server = Arc::new(RedisServer::new(connect_lazily(redis)?));
    let tenth = Fallback::Local {
        processes: 10,
        keys: 100_000,
    };
    let (keys, quota) = (Keys::new("shop")?, Quota::per_hour(60).burst(30));
    let limiter = RedisLimiter::new(server, &keys, "api", quota, tenth)?;
    let by_key = ByHeader(HeaderName::from_static("x-api-key"));
    let limit = RateLimitLayer::redis(limiter, by_key);
    Ok(Router::new().route("/", get(async || "hello")).layer(limit))
}
