//! Rules see the path that the client sent, wherever in a router the layer is.

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::Request;
use tollgate_policy::{LivePolicy, Policy};
use tollgate_tower::RateLimitLayer;
use tower::ServiceExt;

async fn page() -> &'static str {
    "a page"
}

/// A rule for one path, and none for others.
fn policy() -> LivePolicy {
    let text = "[[rule]]\nname = 'users'\nwhen = { path = '/api/v1/users/*' }\nlimit = '1/d'";
    LivePolicy::new(Policy::from_toml(text).unwrap())
}

#[tokio::test]
async fn rules_see_the_whole_path_in_nested_routers() {
    let users = || {
        Router::new()
            .route("/users/{id}", get(page))
            .route("/other", get(page))
    };
    let layer = || RateLimitLayer::policy(policy());
    let routers = [
        Router::new().nest("/api/v1", users()).layer(layer()),
        Router::new().nest("/api/v1", users().layer(layer())),
        Router::new().nest("/api", Router::new().nest("/v1", users().layer(layer()))),
        Router::new().nest(
            "/api",
            Router::new().nest("/v1", users()).route_layer(layer()),
        ),
        Router::new().nest_service("/api/v1", users().layer(layer())),
    ];
    for (number, router) in routers.into_iter().enumerate() {
        let paths = [
            "/api/v1/users/7",
            "/api/v1/users/7?a=b",
            "/api/v1/users/%38",
            "/api/v1/other",
        ];
        for (path, status) in paths.into_iter().zip([200, 429, 429, 200]) {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let answer = router.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), status, "router {number}: {path}");
        }
    }
}
