//! The first program of the page.

use axum::{Router, routing::get};
use tollgate::{Keyed, Quota};
use tollgate_http::Fields;
use tollgate_tower::RateLimitLayer;
use tower_governor::{GovernorLayer, governor::GovernorConfigBuilder};

use crate::support::{Result, from, send};

#[tokio::test]
async fn both_programs_answer_alike() -> Result {
    let config = GovernorConfigBuilder::default()
        .per_millisecond(200)
        .burst_size(10)
        .use_headers()
        .finish()
        .ok_or("a number is zero")?;
    let app = Router::new()
        .route("/", get(async || "hello\n"))
        .layer(GovernorLayer::new(config));
    let theirs = app;

    let table = Keyed::token_bucket(Quota::per_second(5).burst(10), 100_000)?;
    let app = Router::new()
        .route("/", get(async || "hello\n"))
        .layer(RateLimitLayer::by_address(table).fields(Fields::X_SECONDS));
    let ours = app;

    for app in [theirs, ours] {
        let (status, headers, body) = send(&app, from("192.0.2.1")).await;
        assert_eq!((status, &*body), (200, &b"hello\n"[..]));
        assert_eq!(headers["x-ratelimit-limit"], "10");
        assert_eq!(headers["x-ratelimit-remaining"], "9");
    }
    Ok(())
}
