//! Keys of the program's own, and requests without a key.

use axum::body::Body;
use axum::http::{HeaderName, Request};
use tollgate::Quota;
use tollgate_http::RequestFacts;
use tollgate_tower::{ByHeader, MissingKey, RateLimitLayer};
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::KeyExtractor;
use tower_governor::{GovernorError, GovernorLayer};

use crate::support::{Result, behind, from, send, statuses, still, with};

#[derive(Clone)]
struct ApiKey;

impl KeyExtractor for ApiKey {
    type Key = String;

    fn extract<T>(&self, request: &Request<T>) -> Result<String, GovernorError> {
        let key = request.headers().get("x-api-key");
        let key = key.and_then(|key| key.to_str().ok());
        key.map(str::to_owned)
            .ok_or(GovernorError::UnableToExtractKey)
    }
}

/// Two keys, and a request without one.
fn requests() -> Vec<Request<Body>> {
    let keys = ["k1", "k1", "k2"].map(|key| with("192.0.2.1", "x-api-key", key));
    let mut requests = Vec::from(keys);
    requests.push(from("192.0.2.1"));
    requests
}

#[tokio::test]
async fn a_key_of_the_programs_own_has_a_limit() -> Result {
    let mut builder = GovernorConfigBuilder::default();
    let config = builder
        .per_second(3600)
        .burst_size(1)
        .key_extractor(ApiKey)
        .finish();
    let theirs = behind(GovernorLayer::new(config.ok_or("zero")?));
    assert_eq!(statuses(&theirs, requests()).await, [200, 429, 200, 500]);

    let key = |request: &RequestFacts<'_>| {
        let key = request.header("x-api-key")?;
        Ok(key.map(|key| key.into_owned()))
    };
    let table = still(Quota::per_hour(1))?;
    let ours = behind(RateLimitLayer::by_key(table, key));
    assert_eq!(statuses(&ours, requests()).await, [200, 429, 200, 400]);
    let by_header = ByHeader(HeaderName::from_static("x-api-key"));
    let ours = behind(RateLimitLayer::by_key(
        still(Quota::per_hour(1))?,
        by_header,
    ));
    assert_eq!(statuses(&ours, requests()).await, [200, 429, 200, 400]);
    Ok(())
}

/// A service reads one of several lines. tower_governor keys by the first, so a client whose
/// service reads the last has a limit for each random first line.
#[tokio::test]
async fn a_key_whose_lines_differ_is_refused() -> Result {
    let twice = |first: &str| {
        let mut request = with("192.0.2.1", "x-api-key", first);
        let second = "k1".parse().expect("a value");
        request.headers_mut().append("x-api-key", second);
        request
    };
    let requests = || ["k1", "a", "b"].map(twice);
    let mut builder = GovernorConfigBuilder::default();
    let config = builder
        .per_second(3600)
        .burst_size(1)
        .key_extractor(ApiKey)
        .finish();
    let theirs = behind(GovernorLayer::new(config.ok_or("zero")?));
    assert_eq!(statuses(&theirs, requests()).await, [200, 200, 200]);

    let key = |request: &RequestFacts<'_>| {
        let key = request.header("x-api-key")?;
        Ok(key.map(|key| key.into_owned()))
    };
    let ours = behind(RateLimitLayer::by_key(still(Quota::per_hour(1))?, key));
    assert_eq!(statuses(&ours, requests()).await, [200, 400, 400]);
    let by_header = ByHeader(HeaderName::from_static("x-api-key"));
    let table = still(Quota::per_hour(1))?;
    let ours = behind(RateLimitLayer::by_key(table, by_header).missing(MissingKey::Share));
    assert_eq!(statuses(&ours, requests()).await, [200, 400, 400]);
    Ok(())
}

#[tokio::test]
async fn requests_without_a_key_are_refused_or_share_a_limit_or_are_exempt() -> Result {
    let mut builder = GovernorConfigBuilder::default();
    let config = builder.per_second(3600).burst_size(1).finish();
    let theirs = behind(GovernorLayer::new(config.ok_or("zero")?));
    let without = || [Request::new(Body::empty()), Request::new(Body::empty())];
    assert_eq!(statuses(&theirs, without()).await, [500, 500]);

    let layer = || {
        Ok::<_, Box<dyn std::error::Error>>(RateLimitLayer::by_address(still(Quota::per_hour(1))?))
    };
    assert_eq!(statuses(&behind(layer()?), without()).await, [400, 400]);
    let ours = behind(layer()?.missing(MissingKey::Share));
    assert_eq!(statuses(&ours, without()).await, [200, 429]);
    // They do not take from a client's limit.
    assert_eq!(send(&ours, from("192.0.2.1")).await.0, 200);
    let ours = behind(layer()?.missing(MissingKey::Exempt));
    assert_eq!(statuses(&ours, without()).await, [200, 200]);
    Ok(())
}
