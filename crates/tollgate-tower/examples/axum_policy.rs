//! axum with limits from a file, which is reloaded while the service runs. A restart keeps what
//! the limits know.
//!
//! ```text
//! cargo run -p tollgate-tower --features axum,policy --example axum_policy
//! ```

use std::error::Error;
use std::net::SocketAddr;
use std::{env, fs, process, sync::Arc};

use axum::{Router, routing::get};
use tokio::net::TcpListener;
use tollgate_policy::{LivePolicy, Policy, RuleState};
use tollgate_tower::{Fields, RateLimitLayer, RefusalBody};

type Failed = Box<dyn Error + Send + Sync>;

const LIMITS: &str = r#"
[[rule]]
name  = "reports"
when  = { path = "/reports/**" }
key   = "client-ip"
limit = "3/h"
"#;

/// Starts the service, and returns its URL.
async fn start(policy: &Arc<LivePolicy>) -> Result<String, Failed> {
    let limit = RateLimitLayer::policy(Arc::clone(policy))
        .fields(Fields::LIST)
        .body(RefusalBody::Problem);
    let router = Router::new().route("/{*path}", get(async || "hello\n"));
    let router = router.layer(limit);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    Ok(url)
}

async fn status(url: &str, path: &str) -> Result<u16, reqwest::Error> {
    let answer = reqwest::get(format!("{url}{path}")).await?;
    let status = answer.status().as_u16();
    println!("{path}: {status} {}", answer.text().await?.trim_end());
    Ok(status)
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let file = env::temp_dir().join(format!("tollgate-limits-{}.toml", process::id()));
    let state = file.with_extension("state");

    fs::write(&file, LIMITS)?;
    let policy = Arc::new(LivePolicy::from_file(&file, Policy::builder())?);
    let url = start(&policy).await?;
    assert_eq!(status(&url, "/reports/1").await?, 200);
    assert_eq!(status(&url, "/other").await?, 200);

    fs::write(&file, LIMITS.replace("3/h", "2/h"))?;
    let reloaded = policy.reload_file(&file)?; // `LivePolicy::watch` does this by itself
    assert_eq!(reloaded.state("reports"), Some(RuleState::Migrated)); // 1 of 2 is used
    assert_eq!(status(&url, "/reports/2").await?, 200);
    assert_eq!(status(&url, "/reports/3").await?, 429);

    fs::write(&file, LIMITS.replace("3/h", "1/fortnight"))?;
    println!("{}", policy.reload_file(&file).unwrap_err()); // the limits stay as they are
    policy.load().snapshot(&mut fs::File::create(&state)?)?;

    // The next process goes on where this one ended.
    fs::write(&file, LIMITS)?;
    let builder = Policy::builder().restore(&mut fs::File::open(&state)?)?;
    let policy = Arc::new(LivePolicy::from_file(&file, builder)?);
    let url = start(&policy).await?;
    assert_eq!(status(&url, "/reports/4").await?, 429);

    [file, state].iter().try_for_each(fs::remove_file)?;
    Ok(())
}
