//! What the retry budget counts.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use tokio::time::sleep;
use tollgate_client::{ClientLimitLayer, RetryBudget};
use tower::{Layer, ServiceExt, service_fn};

#[tokio::test(start_paused = true)]
async fn a_request_that_was_never_sent_pays_for_no_retry() {
    // Time begins before the test.
    sleep(Duration::from_secs(60)).await;
    let [held, down] = [(); 2].map(|()| Arc::new(Mutex::new(0_usize)));
    let counts = [Arc::clone(&held), Arc::clone(&down)];
    let servers = service_fn(move |request: Request<()>| {
        let answer = Response::builder();
        let answer = match request.uri().host() {
            Some("held.example.com") => {
                *counts[0].lock().unwrap() += 1;
                answer.status(429).header("retry-after", "3600")
            }
            _ => {
                *counts[1].lock().unwrap() += 1;
                answer.status(503)
            }
        };
        async move { Ok::<_, Infallible>(answer.body(()).unwrap()) }
    });
    let client = ClientLimitLayer::new()
        .budget(RetryBudget::new(20, 0).unwrap())
        .layer(servers);
    for number in 0..10_000 {
        let host = match number % 20 {
            0 => "down",
            _ => "held", // These give up at once, since the first one was refused.
        };
        let request = Request::get(format!("https://{host}.example.com/")).body(());
        tokio::spawn(client.clone().oneshot(request.unwrap()));
        sleep(Duration::from_millis(1)).await;
    }
    sleep(Duration::from_secs(5)).await;
    assert!((1..=4).contains(&*held.lock().unwrap()), "{held:?}");
    let retries = *down.lock().unwrap() - 500;
    // A fifth of the 500 requests and of the few that were held.
    assert!((95..=101).contains(&retries), "{retries} retries");
}
