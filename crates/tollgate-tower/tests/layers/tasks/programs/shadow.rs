use axum::{Router, routing::get};
use tollgate_tower::tollgate::{Keyed, Quota, error::LimiterError};
use tollgate_tower::{LayerDecision, RateLimitLayer};

pub(crate) fn app(log: impl Fn(&str) + Send + Sync + 'static) -> Result<Router, LimiterError> {
    let limits = Keyed::token_bucket(Quota::per_hour(3), 100_000)?;
    let limit = RateLimitLayer::by_address(limits)
        .shadow()
        .on_decision(move |facts, decision| {
            if let LayerDecision::WouldDeny(_) = decision {
                log(&facts.path());
            }
        });
    Ok(Router::new().route("/", get(async || "hello")).layer(limit))
}
