use axum::{Router, http::HeaderName, routing::get};
use tollgate_tower::tollgate::{
    Keyed, Quota, TokenBucket, clock::SystemClock, error::LimiterError,
};
use tollgate_tower::{ByHeader, RateLimitLayer};

pub(crate) fn app(paying: &'static [&str]) -> Result<Router, LimiterError> {
    let free = TokenBucket::new(Quota::per_hour(60).burst(1))?;
    let paid = TokenBucket::new(Quota::per_hour(600).burst(3))?;
    let limits = Keyed::with_plans([free, paid], 100_000, SystemClock)?;
    let by_key = ByHeader(HeaderName::from_static("x-api-key"));
    let limit = RateLimitLayer::by_key(limits, by_key).plan(|facts| {
        let key = facts.header("x-api-key").ok()??;
        Some(usize::from(paying.contains(&&*key)))
    });
    Ok(Router::new().route("/", get(async || "hello")).layer(limit))
}
