//! One limit over many connections, clones and routes.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use http::Version;
use http_body_util::BodyExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tollgate::{Concurrency, Limiter, ManualClock, Quota, TokenBucket};
use tollgate_tower::{Rate, RateLimitLayer, Shared};
use tower::{Layer, ServiceBuilder};

use crate::sockets::client::{Client, VERSIONS};
use crate::sockets::server::Server;

/// Opens so many connections, each for one request, and returns how many requests were answered
/// with 200. All others were answered with 429 and `Retry-After: 1`.
async fn admitted(server: &Server, version: Version, connections: usize) -> usize {
    let mut admitted = 0;
    let mut left = connections;
    while left > 0 {
        let mut tasks = JoinSet::new();
        for number in 0..left.min(100) {
            let address = server.address;
            tasks.spawn(async move {
                let mut client = Client::connect(address, version).await;
                let path = ["/a", "/b", "/nested/c"][number % 3];
                let answer = client.send(client.get(path)).await.unwrap();
                let (parts, body) = answer.into_parts();
                body.collect().await.unwrap();
                parts
            });
            left -= 1;
        }
        while let Some(answer) = tasks.join_next().await {
            let answer = answer.unwrap();
            match answer.status.as_u16() {
                200 => admitted += 1,
                429 => assert_eq!(answer.headers["retry-after"], "1"),
                status => panic!("status {status}"),
            }
        }
    }
    admitted
}

fn routes() -> Router {
    Router::new()
        .route("/a", get(|| async { "a" }))
        .route("/b", get(|| async { "b" }))
        .nest("/nested", Router::new().route("/c", get(|| async { "c" })))
}

type SharedLayer = RateLimitLayer<Rate<Shared<Limiter<TokenBucket, ManualClock>>>>;

/// A cap of 5/s lets 5 of 1500 connections through, and 5 more after a second.
/// (tower's `RateLimit` has a limit for each connection: axum #3682.)
async fn is_shared(limit: impl FnOnce(Router, SharedLayer) -> Router, version: Version) {
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(Quota::per_second(5)).unwrap();
    let limiter = Limiter::with_clock(bucket, clock.clone());
    let router = limit(routes(), RateLimitLayer::shared(limiter));
    let server = Server::axum(router).await;
    assert_eq!(admitted(&server, version, 1500).await, 5);
    for (millis, more) in [(200, 1), (199, 0), (1, 1), (1000, 5), (60_000, 5)] {
        clock.advance(Duration::from_millis(millis));
        assert_eq!(admitted(&server, version, 20).await, more, "{millis} ms");
    }
    server.stop().await;
}

#[tokio::test]
async fn routes_of_a_router_share_a_limit_over_http1() {
    is_shared(|router, layer| router.layer(layer), Version::HTTP_11).await;
}

#[tokio::test]
async fn routes_of_a_router_share_a_limit_over_http2() {
    is_shared(|router, layer| router.layer(layer), Version::HTTP_2).await;
}

#[tokio::test]
async fn clones_of_a_layer_share_a_limit() {
    let clones = |_: Router, layer: SharedLayer| {
        let other = layer.clone();
        let third = ServiceBuilder::new().layer(layer.clone());
        let nested = Router::new().route("/c", get(|| async { "c" }).layer(third));
        Router::new()
            .route("/a", get(|| async { "a" }).layer(layer))
            .route_service("/b", other.layer(get(|| async { "b" })))
            .nest("/nested", nested)
    };
    is_shared(clones, Version::HTTP_11).await;
}

/// Waits until something holds that a server does on its own.
async fn eventually(what: impl Fn() -> bool) {
    let until = tokio::time::Instant::now() + Duration::from_secs(30);
    while !what() {
        assert!(tokio::time::Instant::now() < until, "it does not come");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn panics() {
    std::panic::resume_unwind(Box::new("the handler"));
}

/// A client that resets its stream, closes its connection, or gets no answer because the handler
/// panics, leaves its place.
#[tokio::test]
async fn a_request_that_is_cut_off_leaves_its_place() {
    let places = Arc::new(Concurrency::new(3).unwrap());
    let layer = RateLimitLayer::concurrency(Arc::clone(&places));
    let layer = layer.wait(Duration::from_secs(600), 2).unwrap();
    let router = Router::new()
        .route(
            "/never",
            get(|| async { std::future::pending::<()>().await }),
        )
        .route("/panic", get(panics))
        .route("/page", get(|| async { "a page" }))
        .layer(layer);
    let server = Server::axum(router).await;
    for version in VERSIONS {
        for stays_open in [true, false] {
            let mut clients = Vec::new();
            for _ in 0..5 {
                clients.push(Client::connect(server.address, version).await);
            }
            let (cut, cut_off) = watch::channel(());
            let mut tasks = JoinSet::new();
            for mut client in clients {
                let mut cut_off = cut_off.clone();
                tasks.spawn(async move {
                    let answer = client.send(client.get("/never"));
                    tokio::select! {
                        answer = answer => panic!("{answer:?}"),
                        changed = cut_off.changed() => changed.unwrap(),
                    }
                    // A connection of HTTP/1.1 can't be used any more.
                    stays_open.then_some(client)
                });
            }
            eventually(|| places.inside() == 3 && places.waiting() == 2).await;
            cut.send(()).unwrap();
            let clients = tasks.join_all().await;
            if version == Version::HTTP_2 {
                eventually(|| places.inside() == 0).await;
            }
            drop(clients);
            eventually(|| places.inside() == 0 && places.waiting() == 0).await;
        }
        let mut client = Client::connect(server.address, version).await;
        assert!(client.send(client.get("/panic")).await.is_err());
        eventually(|| places.inside() == 0).await;
        let mut client = Client::connect(server.address, version).await;
        assert_eq!(
            client.send(client.get("/page")).await.unwrap().status(),
            200
        );
        eventually(|| places.inside() == 0).await;
    }
    server.stop().await;
}
