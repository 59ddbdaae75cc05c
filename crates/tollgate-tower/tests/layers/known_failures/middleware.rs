//! tower_governor and axum-governor: rates, waits and keys.

use std::time::Duration;

use http::Request;
use tollgate::{ManualClock, Quota};
use tollgate_http::ClientAddress;
use tollgate_tower::{MissingKey, RateLimitLayer};
use tower::Layer;

use crate::known_failures::page::{Page, by_address, from, live, send, shared};

/// `per_second(n)` was one request every n seconds (#55).
#[tokio::test]
async fn tower_governor_n_per_second_are_n_in_each_second() {
    let clock = ManualClock::new();
    let service = shared(Quota::per_second(5), &clock).layer(Page);
    for second in 0..4 {
        for number in 0..8 {
            let (status, _) = send(&service, from("192.0.2.1")).await;
            assert_eq!(
                status,
                if number < 5 { 200 } else { 429 },
                "{second}: {number}"
            );
        }
        clock.advance(Duration::from_secs(1));
    }
}

/// `Retry-After` was 0 for waits below a second (#65), so clients came back at once.
#[tokio::test]
async fn tower_governor_a_wait_below_a_second_is_one() {
    for per_second in [2, 3, 10, 1000, 1_000_000] {
        let clock = ManualClock::new();
        let quota = Quota::per_second(per_second).burst(1);
        let service = shared(quota, &clock).layer(Page);
        assert_eq!(send(&service, from("192.0.2.1")).await, (200, None));
        assert_eq!(send(&service, from("192.0.2.1")).await, (429, Some(1)));
        clock.advance(Duration::from_secs(1));
        assert_eq!(send(&service, from("192.0.2.1")).await, (200, None));
    }
}

/// The leftmost address of `X-Forwarded-For` was the key, which each client writes as it likes.
#[tokio::test]
async fn tower_governor_the_leftmost_address_is_not_trusted() {
    let address = ClientAddress::peer()
        .trust("10.0.0.0/8")
        .unwrap()
        .x_forwarded_for();
    let service = by_address(Quota::per_hour(3))
        .client_address(address)
        .layer(Page);
    for number in 0..100 {
        // The proxy appends the address of the client, which forges the first.
        let forwarded = format!("198.51.100.{number}, 203.0.113.7");
        let request = from("10.0.0.1").header("x-forwarded-for", forwarded);
        let (status, _) = send(&service, request).await;
        assert_eq!(status, if number < 3 { 200 } else { 429 });
    }
}

/// Each address of IPv6 was a key, and a client has 2^64 of them.
#[tokio::test]
async fn tower_governor_a_network_of_ipv6_is_one_key() {
    let service = by_address(Quota::per_hour(3)).layer(Page);
    for number in 0..100 {
        let (status, _) = send(&service, from(&format!("2001:db8::{number:x}:1"))).await;
        assert_eq!(status, if number < 3 { 200 } else { 429 });
    }
    assert_eq!(send(&service, from("2001:db8:0:1::1")).await.0, 200);
}

/// A request without a key was answered with 500.
#[tokio::test]
async fn tower_governor_a_request_without_a_key_is_no_error_of_the_server() {
    let without = || Request::get("/");
    let service = by_address(Quota::per_hour(1)).layer(Page);
    assert_eq!(send(&service, without()).await, (400, None));
    let service = by_address(Quota::per_hour(1))
        .missing(MissingKey::Share)
        .layer(Page);
    assert_eq!(send(&service, without()).await, (200, None));
    assert_eq!(send(&service, without()).await, (429, Some(3600)));
    let service = by_address(Quota::per_hour(1))
        .missing(MissingKey::Exempt)
        .layer(Page);
    for _ in 0..9 {
        assert_eq!(send(&service, without()).await, (200, None));
    }
    let text = "[[rule]]\nname = 'a'\nkey = 'client-ip'\nlimit = '1/h'";
    let service = RateLimitLayer::policy(live(text, &ManualClock::new())).layer(Page);
    assert_eq!(send(&service, without()).await, (400, None));
}

/// `Retry-After` was rounded down: 1.9 s became 1.
#[tokio::test]
async fn axum_governor_retry_after_is_rounded_up() {
    for (millis, seconds) in [(1001, 2), (1900, 2), (2000, 2), (2001, 3), (59_001, 60)] {
        let clock = ManualClock::new();
        let quota = Quota::per(1, Duration::from_millis(millis));
        let service = shared(quota, &clock).layer(Page);
        assert_eq!(send(&service, from("192.0.2.1")).await, (200, None));
        assert_eq!(
            send(&service, from("192.0.2.1")).await,
            (429, Some(seconds))
        );
        clock.advance(Duration::from_secs(seconds));
        assert_eq!(
            send(&service, from("192.0.2.1")).await,
            (200, None),
            "{millis} ms"
        );
    }
}
