//! Several limits for a request.

use tollgate::{ManualClock, Quota};
use tollgate_http::RequestFacts;
use tollgate_policy::{LivePolicy, Policy};
use tollgate_tower::RateLimitLayer;
use tower::Layer;
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::GlobalKeyExtractor;

use crate::support::{Result, behind, from, statuses, still};

/// Three requests an hour in all, and one of each client. A client sends three, and others follow.
#[tokio::test]
async fn a_client_that_is_refused_takes_nothing_from_the_others() -> Result {
    let clients = [
        "192.0.2.1",
        "192.0.2.1",
        "192.0.2.1",
        "192.0.2.2",
        "192.0.2.3",
    ];
    let mut builder = GovernorConfigBuilder::default();
    builder.per_second(3600);
    let each = builder.burst_size(1).finish().ok_or("zero")?;
    let mut builder = builder.burst_size(3).key_extractor(GlobalKeyExtractor);
    let all = GovernorLayer::new(builder.finish().ok_or("zero")?);
    let theirs = all.layer(behind(GovernorLayer::new(each)));
    assert_eq!(
        statuses(&theirs, clients.map(from)).await,
        [200, 429, 429, 429, 429]
    );

    let client = RateLimitLayer::by_address(still(Quota::per_hour(1))?);
    let everyone = RateLimitLayer::by_key(
        still(Quota::per_hour(1).burst(3))?,
        |_: &RequestFacts<'_>| Some(()),
    );
    let layers = everyone.layer(behind(client));
    assert_eq!(
        statuses(&layers, clients.map(from)).await,
        [200, 429, 429, 429, 429]
    );

    let policy = r#"
        apply = "all"

        [[rule]]
        name  = "client"
        key   = "client-ip"
        limit = "1/h"

        [[rule]]
        name  = "everyone"
        limit = "1/h burst 3"
    "#;
    let policy = Policy::builder()
        .clock(ManualClock::new())
        .build_toml(policy)?;
    let ours = behind(RateLimitLayer::policy(LivePolicy::new(policy)));
    assert_eq!(
        statuses(&ours, clients.map(from)).await,
        [200, 429, 429, 200, 200]
    );
    Ok(())
}
