//! The memory of many clients.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use tollgate::{ManualClock, Quota};
use tollgate_tower::RateLimitLayer;
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;

use crate::support::{Result, behind, from, send, table};

const CLIENTS: u32 = 5000;

fn client(n: u32) -> String {
    IpAddr::from(Ipv4Addr::from_bits(0xC633_0000 + n)).to_string()
}

#[tokio::test]
async fn memory_is_bounded_without_upkeep() -> Result {
    let mut builder = GovernorConfigBuilder::default();
    // Each client's limit is whole again after a nanosecond.
    let config = builder.per_nanosecond(1).burst_size(1).finish();
    let config = Arc::new(config.ok_or("zero")?);
    let theirs = behind(GovernorLayer::new(Arc::clone(&config)));
    for n in 0..CLIENTS {
        assert_eq!(send(&theirs, from(&client(n))).await.0, 200);
    }
    assert_eq!(config.limiter().len(), CLIENTS as usize);
    config.limiter().retain_recent();
    assert_eq!(config.limiter().len(), 0);

    let clock = ManualClock::new();
    let table = Arc::new(table(Quota::per_second(1), &clock)?);
    let ours = behind(RateLimitLayer::by_address(Arc::clone(&table)));
    for n in 0..CLIENTS {
        assert_eq!(send(&ours, from(&client(n))).await.0, 200);
        clock.advance(Duration::from_millis(10));
    }
    // A table for 1000 clients has some more slots.
    assert!(table.len() <= table.slots() && table.slots() <= 2048);
    assert!(CLIENTS as usize > 2 * table.slots());
    Ok(())
}

#[tokio::test]
async fn clones_share_their_limits() -> Result {
    let mut builder = GovernorConfigBuilder::default();
    let config = builder.per_second(3600).burst_size(1).finish();
    let layer = GovernorLayer::new(config.ok_or("zero")?);
    let (first, second) = (behind(layer.clone()), behind(layer));
    assert_eq!(send(&first, from("192.0.2.1")).await.0, 200);
    assert_eq!(send(&second, from("192.0.2.1")).await.0, 429);

    let layer = RateLimitLayer::by_address(table(Quota::per_hour(1), &ManualClock::new())?);
    let (first, second) = (behind(layer.clone()), behind(layer));
    assert_eq!(send(&first, from("192.0.2.1")).await.0, 200);
    assert_eq!(send(&second.clone(), from("192.0.2.1")).await.0, 429);
    Ok(())
}
