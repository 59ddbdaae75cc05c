use std::time::Duration;

use axum::{Router, routing::get};
use tollgate_tower::RateLimitLayer;
use tollgate_tower::tollgate::{Concurrency, error::LimiterError};

pub(crate) fn app() -> Result<Router, LimiterError> {
    let at_once = Concurrency::new(2)?;
    let limit = RateLimitLayer::concurrency(at_once).wait(Duration::from_millis(100), 1)?;
    let slow = async || tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(Router::new().route("/", get(slow)).layer(limit))
}
