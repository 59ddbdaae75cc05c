//! Eight layers that don't know of each other call one server.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tollgate_client::ClientLimitLayer;
use tollgate_http::Fields;
use tower::{Layer, ServiceExt};

use crate::served::{Served, get};

/// Eight clients, each with tasks that always have a next request. Returns which part of the
/// answers were 429, and how many requests were granted a second, after 10 seconds of warm-up.
async fn eight(limit: &str, fields: Fields, tasks: usize, seconds: u64) -> (f64, f64) {
    let server = Served::new(limit, fields, Duration::from_millis(50));
    for _ in 0..8 {
        let client = ClientLimitLayer::new().layer(server.service());
        for _ in 0..tasks {
            let client = client.clone();
            tokio::spawn(async move {
                loop {
                    let sent = client.clone().oneshot(get("https://api.example.com/"));
                    if sent.await.is_err() {
                        sleep(Duration::from_secs(1)).await;
                    }
                }
            });
        }
    }
    sleep(Duration::from_secs(10)).await;
    _ = Arc::clone(&server).counts();
    sleep(Duration::from_secs(seconds)).await;
    let (granted, refused) = server.counts();
    let part = refused as f64 / (granted + refused) as f64;
    (part, granted as f64 / seconds as f64)
}

async fn use_it_all(limit: &str, fields: Fields, rate: f64, tasks: usize) {
    let (refused, granted) = eight(limit, fields, tasks, 30).await;
    println!(
        "{limit:30} 429: {:.2} %, used: {:.2} %",
        refused * 100.0,
        granted / rate * 100.0
    );
    assert!(
        refused <= 0.01,
        "{limit}: {refused} of the answers were 429"
    );
    assert!(
        granted >= 0.95 * rate,
        "{limit}: {granted} a second were granted"
    );
}

#[tokio::test(start_paused = true)]
async fn eight_layers_use_a_token_bucket_and_are_hardly_refused() {
    use_it_all("token-bucket 10/s", Fields::LIST, 10.0, 4).await;
    use_it_all("token-bucket 100/s burst 6000", Fields::LIST, 100.0, 32).await;
    use_it_all("token-bucket 1000/s", Fields::LIST, 1000.0, 32).await;
}

#[tokio::test(start_paused = true)]
async fn eight_layers_use_a_gcra_and_are_hardly_refused() {
    use_it_all("gcra 100/s", Fields::LIST, 100.0, 32).await;
}

#[tokio::test(start_paused = true)]
async fn eight_layers_use_windows_and_are_hardly_refused() {
    // Under constant demand a sliding window grants one permit less in each window.
    use_it_all("sliding-window 100/s", Fields::LIST, 99.0, 32).await;
    use_it_all("fixed-window 100/s", Fields::LIST, 100.0, 32).await;
}

/// One layer, and a neighbor that takes all permits for a minute. Returns which part of the limit
/// the layer uses from two windows later on.
async fn after_a_neighbor(limit: &str, fields: Fields, window: u64, permits: f64) -> f64 {
    let server = Served::new(limit, fields, Duration::from_millis(50));
    let client = ClientLimitLayer::new().layer(server.service());
    for _ in 0..8 {
        let client = client.clone();
        tokio::spawn(async move {
            loop {
                let sent = client.clone().oneshot(get("https://api.example.com/"));
                if sent.await.is_err() {
                    sleep(Duration::from_secs(1)).await;
                }
            }
        });
    }
    sleep(Duration::from_secs(3 * window)).await;
    server.shut(true);
    sleep(Duration::from_secs(60)).await;
    server.shut(false);
    sleep(Duration::from_secs(2 * window)).await;
    _ = server.counts();
    sleep(Duration::from_secs(5 * window)).await;
    server.counts().0 as f64 / (5.0 * permits)
}

#[tokio::test(start_paused = true)]
async fn a_layer_comes_back_when_the_server_has_room() {
    for fields in [Fields::LIST, Fields::OFF] {
        for (limit, window, permits) in [
            ("token-bucket 10/s", 1, 10.0),
            ("gcra 100/min", 60, 100.0),
            ("fixed-window 100/min", 60, 100.0),
        ] {
            let used = after_a_neighbor(limit, fields, window, permits).await;
            println!("{limit}, {fields:?}: {used:.2}");
            let least = if fields == Fields::OFF { 0.5 } else { 0.8 };
            assert!(used >= least, "{limit}, {fields:?}: {used}");
        }
    }
}
