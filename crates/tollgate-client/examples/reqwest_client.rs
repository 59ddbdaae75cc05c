//! A reqwest client that sends as fast as a server allows, and not faster.
//!
//! ```text
//! cargo run -p tollgate-client --features reqwest-middleware --example reqwest_client
//! ```

use std::error::Error;
use std::time::{Duration, Instant};

use axum::{Router, routing::get};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tollgate::{Limiter, Quota};
use tollgate_client::ClientLimitLayer;
use tollgate_tower::{Fields, RateLimitLayer};

type Failed = Box<dyn Error + Send + Sync>;

/// A server that grants 20 requests at once, and 20 a second.
async fn server() -> Result<String, Failed> {
    let limiter = Limiter::token_bucket(Quota::per_second(20))?;
    let limit = RateLimitLayer::shared(limiter).fields(Fields::LIST);
    let app = Router::new().route("/", get(async || "hello")).layer(limit);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(url)
}

/// Sends 80 requests together. Returns how many were granted, and how many refused.
async fn send(client: &ClientWithMiddleware, url: &str) -> Result<(usize, usize), Failed> {
    let mut tasks = JoinSet::new();
    for _ in 0..80 {
        tasks.spawn(client.get(url).send());
    }
    let mut granted = 0;
    while let Some(answer) = tasks.join_next().await {
        granted += usize::from(answer??.status() == 200);
    }
    Ok((granted, 80 - granted))
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let url = server().await?;
    let plain = ClientBuilder::new(reqwest::Client::new()).build();
    let layer = ClientLimitLayer::new()
        .quota(Quota::per_second(50))? // of your own: never faster than this
        .max_wait(Duration::from_secs(10));
    let polite = ClientBuilder::new(reqwest::Client::new())
        .with(layer)
        .build();

    let (granted, refused) = send(&plain, &url).await?;
    println!("without the layer: {granted} granted, {refused} refused");
    assert!(refused > 50);

    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    let (granted, refused) = send(&polite, &url).await?;
    let time = begun.elapsed().as_secs_f64();
    println!("with the layer: {granted} granted, {refused} refused, in {time:.1} s");
    assert_eq!(granted, 80);
    Ok(())
}
