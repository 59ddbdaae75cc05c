//! Limits that let requests wait.

use std::time::Duration;

use crate::support::{Service, descriptor, request};

#[tokio::test]
async fn a_wait_that_envoy_has_no_time_for_is_a_denial_that_takes_nothing() {
    let policy = "[[rule]]\nname = 'queue'\nkey = 'user'\nlimit = 'leaky-queue 6/min burst 3'";
    let service = Service::start(policy);
    let mut client = service.client();
    let ann = || request([descriptor([("user", "ann")])]);
    let second = Duration::from_secs(5);
    assert!(client.ask_within(ann(), second).await.is_ok());
    // The place in the queue is given back, so each gets the same answer.
    for _ in 0..9 {
        let denied = client.ask_within(ann(), second).await;
        assert_eq!(denied.left(), [None]);
        let wait: u64 = denied.header("retry-after").unwrap().parse().unwrap();
        assert!((6..=10).contains(&wait), "{wait}");
    }
}

#[tokio::test]
async fn a_wait_that_envoy_has_time_for_comes_before_the_answer() {
    let policy = "[[rule]]\nname = 'queue'\nkey = 'user'\nlimit = 'leaky-queue 20/s burst 3'";
    let service = Service::start(policy);
    let mut client = service.client();
    let ann = || request([descriptor([("user", "ann")])]);
    let start = std::time::Instant::now();
    for _ in 0..5 {
        assert!(
            client
                .ask_within(ann(), Duration::from_secs(60))
                .await
                .is_ok()
        );
    }
    // The first does not wait, and each other one 50 ms after the one before.
    assert!(start.elapsed() >= Duration::from_millis(200));
}
