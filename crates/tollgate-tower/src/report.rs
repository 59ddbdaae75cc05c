//! Reports of decisions: counters of the crate `metrics`, and events of the crate `tracing`.
//!
//! Reports name the rule, and never the key.

use tollgate_http::Cause;

/// Whether decisions are reported.
#[cfg(feature = "policy")]
pub(crate) const IS_ON: bool = cfg!(any(feature = "metrics", feature = "tracing"));

/// Counts a decision.
fn count(rule: &str, decision: &'static str) {
    #[cfg(feature = "metrics")]
    metrics::counter!("tollgate_requests_total", "rule" => rule.to_owned(), "decision" => decision)
        .increment(1);
    let _ = (rule, decision);
}

/// A rule allows a request.
#[inline]
pub(crate) fn allowed(rule: &str) {
    count(rule, "allowed");
    #[cfg(feature = "tracing")]
    tracing::trace!(target: "tollgate", rule, "allowed");
}

/// A rule denies a request.
#[inline]
pub(crate) fn denied(rule: &str, cause: Cause) {
    count(rule, "denied");
    #[cfg(feature = "tracing")]
    tracing::debug!(target: "tollgate", rule, ?cause, "denied");
    let _ = cause;
}

/// The fallback of a rule decides a request, because its store does not answer.
#[cfg(any(feature = "policy", feature = "redis"))]
pub(crate) fn fallback(rule: &str, fallback: &'static str, decision: &'static str) {
    #[cfg(feature = "metrics")]
    metrics::counter!(
        "tollgate_fallbacks_total",
        "rule" => rule.to_owned(), "fallback" => fallback, "decision" => decision,
    )
    .increment(1);
    #[cfg(feature = "tracing")]
    tracing::debug!(target: "tollgate", rule, fallback, decision, "decided without the store");
    let _ = (rule, fallback, decision);
}

/// A limit in shadow would deny a request.
pub(crate) fn shadow(rule: &str) {
    count(rule, "shadow");
    #[cfg(feature = "tracing")]
    tracing::debug!(target: "tollgate", rule, "would be denied");
}

/// A shadow rule would allow a request.
#[cfg(feature = "policy")]
pub(crate) fn shadow_allowed(rule: &str) {
    count(rule, "shadow-allowed");
}

/// A request waits.
#[inline]
pub(crate) fn waited(rule: &str) {
    count(rule, "waited");
    #[cfg(feature = "tracing")]
    tracing::trace!(target: "tollgate", rule, "waits");
}

/// A request has no key, and the address of its connection is not known. If the address is the key,
/// the server does not say addresses, and each request is refused: this is said once.
pub(crate) fn no_peer(rule: &str) {
    #[cfg(feature = "tracing")]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            tracing::warn!(
                target: "tollgate",
                rule,
                "a request has no key: the server does not say the addresses of its connections",
            );
        });
    }
    let _ = rule;
}
