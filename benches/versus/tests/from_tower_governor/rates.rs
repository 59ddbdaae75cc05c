//! Rates and bursts.

use std::time::Duration;

use axum::http::Method;
use governor::middleware::{NoOpMiddleware, StateInformationMiddleware};
use tollgate::{Keyed, ManualClock, Quota};
use tollgate_tower::RateLimitLayer;
use tower_governor::GovernorLayer;
use tower_governor::governor::{
    DEFAULT_BURST_SIZE, DEFAULT_PERIOD, GovernorConfig, GovernorConfigBuilder,
};
use tower_governor::key_extractor::PeerIpKeyExtractor;

use crate::support::{Result, behind, from, number, send, statuses, still, table, until_refused};

#[tokio::test]
async fn a_burst_is_as_large_in_both() -> Result {
    let mut builder = GovernorConfigBuilder::default();
    let config = builder.per_second(3600).burst_size(10).finish();
    let theirs = behind(GovernorLayer::new(config.ok_or("zero")?));
    let quota = Quota::per(1, Duration::from_secs(3600)).burst(10);
    let ours = behind(RateLimitLayer::by_address(still(quota)?));
    assert_eq!(until_refused(&theirs, "192.0.2.1").await.0, 10);
    assert_eq!(until_refused(&ours, "192.0.2.1").await.0, 10);
    Ok(())
}

/// tower_governor's issue 55.
#[tokio::test]
async fn per_second_of_tower_governor_is_one_in_as_many_seconds() -> Result {
    let mut builder = GovernorConfigBuilder::default();
    let config = builder.per_second(3600).burst_size(1).finish();
    let theirs = behind(GovernorLayer::new(config.ok_or("zero")?));
    let (_, refused) = until_refused(&theirs, "192.0.2.1").await;
    let wait = number(&refused, "retry-after").ok_or("no wait")?;
    assert!((1800..3600).contains(&wait), "{wait}");

    let translated = Quota::per(1, Duration::from_secs(3600)).burst(1);
    for (quota, wait) in [(translated, 3600), (Quota::per_second(3600).burst(1), 1)] {
        let ours = behind(RateLimitLayer::by_address(still(quota)?));
        let (_, refused) = until_refused(&ours, "192.0.2.1").await;
        assert_eq!(number(&refused, "retry-after"), Some(wait), "{quota}");
    }
    Ok(())
}

/// tower_governor's issue 65.
#[tokio::test]
async fn a_client_that_comes_back_after_retry_after_is_granted() -> Result {
    let mut builder = GovernorConfigBuilder::default();
    let config = builder.per_millisecond(900).burst_size(1).finish();
    let theirs = behind(GovernorLayer::new(config.ok_or("zero")?));
    let (_, refused) = until_refused(&theirs, "192.0.2.1").await;
    assert_eq!(number(&refused, "retry-after"), Some(0));

    for millis in [900, 1000, 1001, 1900] {
        let clock = ManualClock::new();
        let quota = Quota::per(1, Duration::from_millis(millis));
        let ours = behind(RateLimitLayer::by_address(table(quota, &clock)?));
        let (_, refused) = until_refused(&ours, "192.0.2.1").await;
        let wait = number(&refused, "retry-after").ok_or("no wait")?;
        assert_eq!(wait, millis.div_ceil(1000));
        clock.advance(Duration::from_secs(wait));
        assert_eq!(send(&ours, from("192.0.2.1")).await.0, 200);
    }
    Ok(())
}

#[tokio::test]
async fn periods_of_every_unit_have_a_quota() -> Result {
    let period = Duration::from_secs(7);
    let mut builder = GovernorConfigBuilder::default();
    assert!(builder.per_second(60).finish().is_some());
    assert!(builder.per_millisecond(200).finish().is_some());
    assert!(builder.per_nanosecond(500).finish().is_some());
    assert!(builder.period(period).finish().is_some());
    assert!(builder.burst_size(10).finish().is_some());
    type Builder = GovernorConfigBuilder<PeerIpKeyExtractor, NoOpMiddleware>;
    let builder = Builder::const_default()
        .const_per_second(60)
        .const_per_millisecond(200);
    let builder = builder.const_per_nanosecond(500).const_period(period);
    assert!(builder.const_burst_size(10).finish().is_some());

    for quota in [
        Quota::per(1, Duration::from_secs(60)),
        Quota::per(1, Duration::from_millis(200)),
        Quota::per(1, Duration::from_nanos(500)),
        Quota::per(1, period),
    ] {
        assert_eq!(quota.burst(10).burst_size(), 10);
        Keyed::token_bucket(quota, 100_000)?;
    }
    // Both are five a second.
    assert_eq!(
        Quota::per(1, Duration::from_millis(200))
            .burst(1)
            .to_string(),
        "1/200ms"
    );
    assert_eq!(
        Quota::per_second(5).period() / 5,
        Duration::from_millis(200)
    );
    Ok(())
}

#[test]
fn zero_is_refused_and_the_error_says_what() {
    let mut builder = GovernorConfigBuilder::default();
    assert!(builder.burst_size(0).finish().is_none());
    let quota = Quota::per_second(5).burst(0);
    let error = Keyed::token_bucket(quota, 100_000).expect_err("no burst");
    assert!(error.to_string().contains("burst"), "{error}");
    let quota = Quota::per(1, Duration::ZERO);
    let error = Keyed::token_bucket(quota, 100_000).expect_err("no period");
    assert!(error.to_string().contains("period"), "{error}");
}

#[tokio::test]
async fn the_defaults_of_tower_governor_can_be_written() -> Result {
    let default = GovernorConfigBuilder::default().finish();
    let theirs = behind(GovernorLayer::new(default.ok_or("zero")?));
    assert_eq!(send(&theirs, from("192.0.2.1")).await.0, 200);
    assert_eq!(
        (DEFAULT_PERIOD, DEFAULT_BURST_SIZE),
        (Duration::from_millis(500), 8)
    );
    let quota = Quota::per_second(2).burst(8);
    assert_eq!(quota.period() / 2, DEFAULT_PERIOD);
    let ours = behind(RateLimitLayer::by_address(still(quota)?));
    assert_eq!(until_refused(&ours, "192.0.2.1").await.0, 8);

    type WithHeaders = GovernorConfig<PeerIpKeyExtractor, StateInformationMiddleware>;
    let secure: WithHeaders = GovernorConfig::secure();
    let theirs = behind(GovernorLayer::new(secure));
    let (_, refused) = until_refused(&theirs, "192.0.2.1").await;
    assert_eq!(number(&refused, "x-ratelimit-limit"), Some(2));
    // It is cut.
    assert!(number(&refused, "retry-after") < Some(4));
    let quota = Quota::per(1, Duration::from_secs(4)).burst(2);
    let ours = behind(RateLimitLayer::by_address(still(quota)?));
    let (granted, refused) = until_refused(&ours, "192.0.2.1").await;
    assert_eq!((granted, number(&refused, "retry-after")), (2, Some(4)));
    Ok(())
}

#[tokio::test]
async fn other_methods_can_be_exempt() -> Result {
    let mut builder = GovernorConfigBuilder::default();
    let config = builder
        .per_second(3600)
        .burst_size(1)
        .methods(vec![Method::POST])
        .finish();
    let theirs = behind(GovernorLayer::new(config.ok_or("zero")?));
    let layer = RateLimitLayer::by_address(still(Quota::per_hour(1))?)
        .exempt_if(|request| request.method() != Method::POST);
    let ours = behind(layer);
    let requests = || {
        [Method::POST, Method::GET, Method::POST, Method::GET].map(|method| {
            let mut request = from("192.0.2.1");
            *request.method_mut() = method;
            request
        })
    };
    let expected = [200, 200, 429, 200];
    assert_eq!(statuses(&theirs, requests()).await, expected);
    assert_eq!(statuses(&ours, requests()).await, expected);
    Ok(())
}
