use std::{path::Path, sync::Arc, time::Duration};

use axum::{Router, routing::get};
use tollgate_tower::RateLimitLayer;
use tollgate_tower::tollgate_policy::{LivePolicy, Policy, Watch};

pub(crate) fn app(file: &Path) -> Result<(Router, Watch), Box<dyn std::error::Error>> {
    let policy = Arc::new(LivePolicy::from_file(file, Policy::builder())?);
    let watch = policy.watch(file, Duration::from_secs(10), |report| match report {
        Ok(reloaded) => println!("new limits: {reloaded:?}"),
        Err(error) => eprintln!("the limits stay as they are: {error}"),
    })?;
    let limit = RateLimitLayer::policy(policy);
    let router = Router::new().route("/", get(async || "hello"));
    Ok((router.layer(limit), watch))
}
