//! Eight clients that don't know of each other use a server's whole limit, and are hardly refused.
//!
//! ```text
//! cargo run --release -p tollgate-client --features reqwest --example eight_clients
//! cargo run ... --example eight_clients -- "sliding-window 1000/s"
//! ```

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::{Router, routing::get};
use reqwest::{Method, Request, Url};
use tokio::net::TcpListener;
use tokio::time::sleep;
use tollgate::algorithm::ChangeQuota;
use tollgate::{AnyAlgorithm, Limiter};
use tollgate_client::ClientLimitLayer;
use tollgate_tower::{Fields, RateLimitLayer};
use tower::{Layer, ServiceExt};

const WARM_UP: Duration = Duration::from_secs(10);
const MEASURED: Duration = Duration::from_secs(20);

/// How many requests were granted, and how many refused.
type Counts = Arc<Mutex<[u32; 2]>>;

/// A client of its own that always has 16 requests waiting. Each 429 is counted, and none retried.
fn start_client(url: &Url, counts: &Counts) {
    let layer = ClientLimitLayer::new().max_attempts(1);
    let client = layer.layer(reqwest::Client::new());
    for _ in 0..16 {
        let (client, url, counts) = (client.clone(), url.clone(), Arc::clone(counts));
        tokio::spawn(async move {
            loop {
                let request = Request::new(Method::GET, url.clone());
                match client.clone().oneshot(request).await {
                    Ok(answer) => count(&counts, answer.status() == 429),
                    Err(_) => sleep(Duration::from_secs(1)).await,
                }
            }
        });
    }
}

fn count(counts: &Counts, refused: bool) {
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    counts[usize::from(refused)] += 1;
}

fn take(counts: &Counts) -> [f64; 2] {
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut *counts).map(f64::from)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let limit = std::env::args().nth(1);
    let limit: AnyAlgorithm = limit.as_deref().unwrap_or("token-bucket 200/s").parse()?;
    let rate = limit.quota().permits() as f64 / limit.quota().period().as_secs_f64();
    let layer = RateLimitLayer::shared(Limiter::new(limit)).fields(Fields::LIST);
    let app = Router::new().route("/", get(async || "hello")).layer(layer);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?).parse()?;
    tokio::spawn(async move { axum::serve(listener, app).await });

    let counts = Counts::default();
    (0..8).for_each(|_| start_client(&url, &counts));
    sleep(WARM_UP).await;
    take(&counts);
    sleep(MEASURED).await;
    let [granted, refused] = take(&counts);
    let part = refused / (granted + refused) * 100.0;
    let used = granted / MEASURED.as_secs_f64() / rate * 100.0;
    println!("{limit}: {part:.2} % were 429, and {used:.1} % of the limit was used");
    Ok(())
}
