//! What a program is told of decisions.

use tollgate_http::Refusal;

/// What a layer decided about a request.
///
/// ```
/// use tollgate_tower::{LayerDecision, RateLimitLayer};
/// # fn log(_: &str) {}
/// # let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(1)).unwrap();
///
/// let limit = RateLimitLayer::shared(limiter).on_decision(|facts, decision| {
///     if let LayerDecision::Denied(refusal) = decision {
///         log(&format!("{} {}: {:?}", facts.method(), facts.path(), refusal.cause()));
///     }
/// });
/// # let _ = limit;
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum LayerDecision<'a> {
    /// The request is served.
    Allowed,
    /// The request is refused.
    Denied(&'a Refusal<'a>),
    /// The request is served because the limit is in shadow. Otherwise it would be refused.
    WouldDeny(&'a Refusal<'a>),
}
