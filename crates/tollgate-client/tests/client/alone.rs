//! A client that has a limit for itself is not slowed down while there are permits.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use tollgate_client::ClientLimitLayer;
use tollgate_http::Fields;
use tower::{Layer, ServiceExt};

use crate::served::{Served, get};

/// Returns how long it takes until so many requests that come together have been answered.
async fn time_of(limit: &str, fields: Fields, requests: usize) -> Duration {
    let server = Served::new(limit, fields, Duration::from_millis(50));
    let client = ClientLimitLayer::new().layer(server.service());
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..requests {
        tasks.spawn(client.clone().oneshot(get("https://api.example.com/")));
    }
    while let Some(answer) = tasks.join_next().await {
        assert_eq!(answer.unwrap().unwrap().status(), 200);
    }
    let (granted, refused) = server.counts();
    println!(
        "{limit}: {requests} requests in {:?}, {refused} refused",
        begun.elapsed()
    );
    assert_eq!((granted, refused), (requests as u64, 0));
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn requests_go_at_once_while_many_permits_are_left() {
    for (limit, requests, seconds) in [
        ("token-bucket 60/min", 40, 3),
        ("token-bucket 100/s burst 5000", 2000, 3),
        ("sliding-window 1000/h", 100, 3),
        ("fixed-window 5000/h", 100, 3),
        ("token-bucket 5/h", 3, 3),
    ] {
        for fields in [Fields::LIST, Fields::TRIPLE] {
            let time = time_of(limit, fields, requests).await;
            assert!(time < Duration::from_secs(seconds), "{limit}: {time:?}");
        }
    }
}
