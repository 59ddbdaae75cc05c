//! One limit, a limit for each address, and a policy.

use std::time::Duration;

use tollgate::clock::TokioClock;
use tollgate::{Keyed, Limiter, ManualClock, Quota, TokenBucket};
use tollgate_http::Fields;
use tollgate_policy::Policy;
use tollgate_tower::RateLimitLayer;
use tower::Layer;

use crate::server::support::{Ok200, from, send};

#[tokio::test]
async fn clones_share_one_limit() {
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(Quota::per_second(2)).unwrap();
    let layer = RateLimitLayer::shared(Limiter::with_clock(bucket, clock.clone()));
    let services = [layer.layer(Ok200), layer.layer(Ok200)];
    for (service, status) in [(0, 200), (1, 200), (0, 429), (1, 429)] {
        let answer = send(&services[service], from("192.0.2.1", "/")).await;
        assert_eq!(answer.status(), status);
    }
    clock.advance(Duration::from_millis(500));
    assert_eq!(
        send(&services[0], from("192.0.2.1", "/")).await.status(),
        200
    );
    let denied = send(&services[0], from("192.0.2.1", "/")).await;
    assert_eq!(denied.headers()["retry-after"], "1");
}

#[tokio::test]
async fn addresses_have_limits_of_their_own() {
    let bucket = TokenBucket::new(Quota::per_second(1)).unwrap();
    let table = Keyed::with_clock(bucket, 100, ManualClock::new()).unwrap();
    let service = RateLimitLayer::by_address(table)
        .fields(Fields::LIST)
        .name("address")
        .layer(Ok200);
    let answer = send(&service, from("192.0.2.1", "/")).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["ratelimit"], r#""address";r=0;t=1"#);
    assert_eq!(send(&service, from("192.0.2.1", "/")).await.status(), 429);
    assert_eq!(send(&service, from("192.0.2.2", "/")).await.status(), 200);
    assert_eq!(
        send(&service, from("[2001:db8::1]", "/")).await.status(),
        200
    );
    assert_eq!(
        send(&service, from("[2001:db8::2]", "/")).await.status(),
        429
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_is_not_banned_for_it() {
    let text = "[[rule]]\nname = 'api'\nkey = 'client-ip'\nlimit = '5/s burst 1'\n\
                ban = { after = 3, for = '1h' }";
    let policy = Policy::builder()
        .clock(TokioClock)
        .build_toml(text)
        .unwrap();
    let layer = RateLimitLayer::policy(policy);
    let service = layer.wait(Duration::from_secs(5), 1).unwrap().layer(Ok200);
    for _ in 0..20 {
        let answer = send(&service, from("192.0.2.1", "/")).await;
        assert_eq!(answer.status(), 200);
    }
    // Only one request may wait. Denials of others count.
    let first = tokio::spawn({
        let service = service.clone();
        async move { send(&service, from("192.0.2.1", "/")).await.status() }
    });
    tokio::task::yield_now().await;
    for _ in 0..3 {
        let denied = send(&service, from("192.0.2.1", "/")).await;
        assert_eq!(denied.status(), 429);
    }
    assert_eq!(first.await.unwrap(), 429);
    let banned = send(&service, from("192.0.2.1", "/")).await;
    assert_eq!(banned.headers()["retry-after"], "3600");
}
