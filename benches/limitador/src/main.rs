//! limitador's library behind a handler that does what its server's `/check_and_report` does: it
//! reads a namespace, values and a delta in JSON, counts them, and answers 200 or 429.
//!
//! The server itself is not on crates.io, so `scripts/bench-service` measures this one. It prints
//! its address, and ends with its standard input.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use limitador::RateLimiter;
use limitador::limit::{Context, Expression, Limit};
use serde::Deserialize;
use tokio::net::TcpListener;

#[derive(Deserialize)]
struct Ask {
    namespace: String,
    values: HashMap<String, String>,
    delta: u64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let capacity = std::env::args().nth(1).map_or(Ok(200_000), |it| it.parse())?;
    let limiter = RateLimiter::new(capacity);
    let client = Expression::try_from("client_ip")?;
    limiter.add_limit(Limit::new("bench", 100, 60, [], [client]));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", listener.local_addr()?);
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    let router = Router::new()
        .route("/check_and_report", post(check))
        .with_state(Arc::new(limiter));
    Ok(axum::serve(listener, router).await?)
}

async fn check(State(limiter): State<Arc<RateLimiter>>, Json(ask): Json<Ask>) -> StatusCode {
    let context = Context::from(ask.values);
    let namespace = ask.namespace.into();
    let checked = limiter.check_rate_limited_and_update(&namespace, &context, ask.delta);
    match checked {
        Ok(checked) if checked.limited => StatusCode::TOO_MANY_REQUESTS,
        Ok(_) => StatusCode::OK,
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
