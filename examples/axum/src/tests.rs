//! The service on a manual clock. Requests go directly to the router.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::response::Response;
use tollgate::ManualClock;
use tower::ServiceExt;

const HOME: &str = "192.0.2.1:40000";

fn service() -> (Router, ManualClock) {
    let clock = ManualClock::new();
    (super::router(clock.clone()).expect("good quotas"), clock)
}

/// Sends a request from this address, with this API key if there is one.
async fn ask(router: &Router, key: Option<&str>, client: &str) -> Response {
    let client: SocketAddr = client.parse().expect("an address");
    let mut request = Request::get("/").extension(ConnectInfo(client));
    if let Some(key) = key {
        request = request.header("x-api-key", key);
    }
    let request = request.body(Body::empty()).expect("a request");
    let answer = router.clone().oneshot(request).await;
    answer.unwrap_or_else(|never| match never {})
}

/// Returns the status of `n` requests with this API key, which must all be the same.
async fn same_status(router: &Router, n: usize, key: &str) -> StatusCode {
    let first = ask(router, Some(key), HOME).await.status();
    for _ in 1..n {
        assert_eq!(ask(router, Some(key), HOME).await.status(), first);
    }
    first
}

/// `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset` and `Retry-After`.
fn headers(answer: &Response) -> [Option<u64>; 4] {
    [
        "ratelimit-limit",
        "ratelimit-remaining",
        "ratelimit-reset",
        "retry-after",
    ]
    .map(|name| {
        let value = answer.headers().get(name)?;
        Some(value.to_str().ok()?.parse().expect("a number"))
    })
}

#[tokio::test]
async fn a_free_customer_gets_a_burst_of_5_and_one_more_a_second() {
    let (router, clock) = service();
    for remaining in (0..5).rev() {
        let answer = ask(&router, Some("bob"), HOME).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let reset = 5 - remaining;
        let expected = [Some(5), Some(remaining), Some(reset), None];
        assert_eq!(headers(&answer), expected);
    }
    clock.advance(Duration::from_millis(1));
    let answer = ask(&router, Some("bob"), HOME).await;
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    // 999 milliseconds are rounded up.
    assert_eq!(headers(&answer), [Some(5), Some(0), Some(5), Some(1)]);

    clock.advance(Duration::from_millis(999));
    let answer = ask(&router, Some("bob"), HOME).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(headers(&answer), [Some(5), Some(0), Some(5), None]);
}

#[tokio::test]
async fn a_paying_customer_gets_a_burst_of_50_regardless_of_others() {
    let (router, _) = service();
    assert_eq!(same_status(&router, 5, "bob").await, StatusCode::OK);
    let denied = StatusCode::TOO_MANY_REQUESTS;
    assert_eq!(same_status(&router, 5, "bob").await, denied);
    assert_eq!(same_status(&router, 50, "alice").await, StatusCode::OK);
    let answer = ask(&router, Some("alice"), HOME).await;
    assert_eq!(answer.status(), denied);
    assert_eq!(headers(&answer), [Some(50), Some(0), Some(5), Some(1)]);
}

#[tokio::test]
async fn the_third_wrong_key_bans_the_address_for_15_minutes() {
    let (router, clock) = service();
    for key in [Some("carol"), None, Some("mallory")] {
        let answer = ask(&router, key, HOME).await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    }
    let banned = StatusCode::TOO_MANY_REQUESTS;
    let answer = ask(&router, Some("bob"), HOME).await;
    assert_eq!(answer.status(), banned);
    // The first permit comes 10 milliseconds after the ban, which is rounded up to a second.
    assert_eq!(headers(&answer), [None, None, None, Some(901)]);
    let elsewhere = ask(&router, Some("bob"), "192.0.2.2:40000").await;
    assert_eq!(elsewhere.status(), StatusCode::OK);

    clock.advance(Duration::from_secs(899));
    assert_eq!(same_status(&router, 1, "bob").await, banned);
    clock.advance(Duration::from_secs(2));
    assert_eq!(same_status(&router, 1, "bob").await, StatusCode::OK);
}

#[tokio::test]
async fn each_wrong_key_in_the_hour_of_a_ban_bans_again_and_later_it_takes_three() {
    let (router, clock) = service();
    let wrong = StatusCode::UNAUTHORIZED;
    let banned = StatusCode::TOO_MANY_REQUESTS;
    // Just before a full hour: the hour begins with the first wrong key.
    clock.advance(Duration::from_secs(3599));
    for strikes in [3, 1, 3] {
        for _ in 0..strikes {
            assert_eq!(same_status(&router, 1, "mallory").await, wrong);
            clock.advance(Duration::from_secs(1));
        }
        assert_eq!(same_status(&router, 1, "mallory").await, banned);
        let later = if strikes == 1 { 3600 } else { 901 };
        clock.advance(Duration::from_secs(later));
    }
}

#[tokio::test]
async fn an_address_is_limited_even_if_its_keys_differ() {
    let (router, _) = service();
    for _ in 0..50 {
        assert_eq!(same_status(&router, 1, "alice").await, StatusCode::OK);
        ask(&router, Some("bob"), HOME).await;
    }
    let answer = ask(&router, Some("alice"), "[::ffff:192.0.2.1]:1").await;
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(headers(&answer), [None, None, None, Some(1)]);
}

#[tokio::test]
async fn an_ipv6_network_counts_as_one_address() {
    let (router, _) = service();
    for client in ["[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::3]:1"] {
        let answer = ask(&router, Some("mallory"), client).await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    }
    let answer = ask(&router, Some("bob"), "[2001:db8::4]:1").await;
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    let answer = ask(&router, Some("bob"), "[2001:db8:0:1::4]:1").await;
    assert_eq!(answer.status(), StatusCode::OK);
}
