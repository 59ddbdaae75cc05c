//! Clients that do not read their answers.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http::Version;
use tollgate::Concurrency;
use tollgate_tower::RateLimitLayer;
use tower::ServiceBuilder;

use crate::sockets::client::{Client, VERSIONS};
use crate::sockets::server::Server;

const CLIENTS: u64 = 20;

/// More than the buffers of a connection can have: the kernel's of both ends, and hyper's.
const LARGE: usize = 64 * 1024 * 1024;

/// A body of one frame keeps its place until it is read. It is the same memory for all clients.
#[tokio::test]
async fn clients_that_read_nothing_stay_inside() {
    for version in VERSIONS {
        stay_inside(version).await;
    }
}

async fn stay_inside(version: Version) {
    let page = Bytes::from(vec![7; LARGE]);
    let places = Arc::new(Concurrency::new(CLIENTS).unwrap());
    let sent = Arc::new(Mutex::new(0));
    let limiter = tollgate::Limiter::token_bucket(tollgate::Quota::per_hour(1 << 40)).unwrap();
    let settled = Arc::clone(&sent);
    let bytes = RateLimitLayer::shared(limiter).settle(move |ended| {
        *settled.lock().unwrap() += ended.bytes();
        ended.bytes()
    });
    let limits = ServiceBuilder::new()
        .layer(RateLimitLayer::concurrency(Arc::clone(&places)))
        .layer(bytes);
    let handler = move || async move { Ok::<_, Infallible>(page) };
    let server = Server::axum(Router::new().route("/", get(handler)).layer(limits)).await;

    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = Client::connect(server.address, version).await;
        // Its headers have arrived, so the server has begun to send its body.
        let answer = client.send(client.get("/")).await.unwrap();
        assert_eq!(answer.status(), 200);
        clients.push((client, answer));
    }
    assert_eq!(places.inside(), CLIENTS);
    let mut late = Client::connect(server.address, Version::HTTP_11).await;
    assert_eq!(late.send(late.get("/")).await.unwrap().status(), 503);
    assert_eq!(places.inside(), CLIENTS);
    assert_eq!(*sent.lock().unwrap(), 0);

    drop((late, clients));
    server.stop().await;
    assert_eq!(places.inside(), 0);
    // Each answer was cut off.
    let all = CLIENTS * u64::try_from(LARGE).unwrap();
    let sent = *sent.lock().unwrap();
    assert!(sent < all, "{sent} of {all} bytes");
}
