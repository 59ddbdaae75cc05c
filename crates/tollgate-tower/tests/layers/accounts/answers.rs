//! Answers without a body, answers whose body is not wanted, and connections that are upgraded.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use tollgate::{Concurrency, Limiter, ManualClock, Quota, TokenBucket};
use tollgate_tower::{CountedRequests, End, RateLimitLayer};
use tower::ServiceExt;

/// A request that is sent to the end. Returns whether the body was empty.
async fn send(router: &Router, method: Method, path: &str) -> (StatusCode, bool) {
    let request = Request::builder().method(method).uri(path);
    let answer = router.clone().oneshot(request.body(Body::empty()).unwrap());
    let answer = answer.await.unwrap();
    let status = answer.status();
    (
        status,
        answer
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .is_empty(),
    )
}

#[tokio::test]
async fn answers_without_a_body_end() {
    let places = Arc::new(Concurrency::new(1).unwrap());
    let bucket = TokenBucket::new(Quota::per_hour(9)).unwrap();
    let failures = Arc::new(Limiter::with_clock(bucket, ManualClock::new()));
    let inside = Arc::clone(&places);
    let page = move || async move {
        assert_eq!(inside.inside(), 1);
        "a page"
    };
    let router = Router::new()
        .route("/page", get(page))
        .route("/none", get(|| async { StatusCode::NO_CONTENT }))
        .route("/same", get(|| async { StatusCode::NOT_MODIFIED }))
        .route("/no", get(|| async { StatusCode::FORBIDDEN }))
        .layer(RateLimitLayer::shared(Arc::clone(&failures)).count(CountedRequests::Failures))
        .layer(RateLimitLayer::concurrency(Arc::clone(&places)));
    let cases = [
        (Method::GET, "/page", 200, 9),
        (Method::HEAD, "/page", 200, 9),
        (Method::GET, "/none", 204, 9),
        (Method::HEAD, "/none", 204, 9),
        (Method::GET, "/same", 304, 9),
        (Method::HEAD, "/no", 403, 8),
        (Method::GET, "/no", 403, 7),
        (Method::POST, "/page", 405, 7),
    ];
    for (method, path, status, left) in cases {
        let (answered, is_empty) = send(&router, method.clone(), path).await;
        assert_eq!(answered, status, "{method} {path}");
        assert_eq!(is_empty, (method.as_str(), path) != ("GET", "/page"));
        assert_eq!(places.inside(), 0, "{method} {path}");
        assert_eq!(failures.available(), left, "{method} {path}");
    }
}

/// The answer to an upgrade has no body, so the request ends with it, and the connection goes on.
#[tokio::test]
async fn an_upgrade_ends_with_its_answer() {
    let places = Arc::new(Concurrency::new(1).unwrap());
    let bucket = TokenBucket::new(Quota::per_hour(9)).unwrap();
    let limiter = Arc::new(Limiter::with_clock(bucket, ManualClock::new()));
    let settled = RateLimitLayer::shared(Arc::clone(&limiter)).settle(|ended| {
        assert_eq!(ended.status(), Some(StatusCode::SWITCHING_PROTOCOLS));
        assert_eq!((ended.end(), ended.is_failure()), (End::Complete, false));
        3
    });
    let router = Router::new()
        .route("/socket", get(|| async { StatusCode::SWITCHING_PROTOCOLS }))
        .layer(settled)
        .layer(RateLimitLayer::concurrency(Arc::clone(&places)));
    let request = Request::get("/socket").body(Body::empty()).unwrap();
    let answer = router.oneshot(request).await.unwrap();
    assert_eq!((places.inside(), limiter.available()), (0, 6));
    drop(answer);
    assert_eq!((places.inside(), limiter.available()), (0, 6));
}
