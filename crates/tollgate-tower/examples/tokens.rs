//! The gateway of a language model. A user has tokens and requests, and a call takes from both or
//! from none. It takes an estimate at first, and a header of the answer says the real cost.
//!
//! ```text
//! cargo run -p tollgate-tower --features axum,policy --example tokens
//! ```

use std::error::Error;

use axum::http::HeaderMap;
use axum::{Router, response::IntoResponse, routing::post};
use tokio::net::TcpListener;
use tollgate::ManualClock;
use tollgate_policy::Policy;
use tollgate_tower::{Fields, RateLimitLayer};

const LIMITS: &str = r#"
[[rule]]
name  = "tokens"
key   = "header:x-user"
limit = "10k/min"
also  = ["requests"]
[rule.cost]
estimate = "header:x-max-tokens"
settle   = "response-header:x-tokens"
default  = 1000             # if a request lacks the header
max      = 9000

[[limit]]
name  = "requests"          # it applies where `also` names it
key   = "header:x-user"
limit = "60/min burst 4"
"#;

/// The model. It uses an eighth of the tokens that a call allows.
async fn complete(headers: HeaderMap) -> impl IntoResponse {
    let max = headers
        .get("x-max-tokens")
        .and_then(|max| max.to_str().ok());
    let max: u64 = max.and_then(|max| max.parse().ok()).unwrap_or(1000);
    ([("x-tokens", (max / 8).to_string())], "four\n")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    // The clock of this example stands still. Without it, a policy uses the system's.
    let policy = Policy::builder()
        .clock(ManualClock::new())
        .build_toml(LIMITS)?;
    let limit = RateLimitLayer::policy(policy).fields(Fields::LIST);
    let router = Router::new().route("/", post(complete)).layer(limit);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, router).await });

    for (max, status, left) in [
        (8000, 200, r#""tokens";r=2000;t=48, "requests";r=3;t=1"#),
        // 7000 tokens came back.
        (8000, 200, r#""tokens";r=1000;t=54, "requests";r=2;t=2"#),
        // One limit denies the call, so it takes nothing from the other.
        (9000, 429, r#""tokens";r=8000;t=6, "requests";r=2"#),
        (800, 200, r#""tokens";r=7200;t=17, "requests";r=1;t=3"#),
        (800, 200, r#""tokens";r=7100;t=18, "requests";r=0;t=4"#),
        (800, 429, r#""tokens";r=7800, "requests";r=0;t=1"#),
    ] {
        let call = reqwest::Client::new().post(&url).header("x-user", "ann");
        let answer = call.header("x-max-tokens", max).send().await?;
        println!("{max} tokens: {}, left {left}", answer.status());
        assert_eq!(answer.status(), status);
        assert_eq!(answer.headers()["ratelimit"], left);
    }
    Ok(())
}
