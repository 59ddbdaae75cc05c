//! What a layer counts as a failure: what clients do wrong, and not what the service does.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tollgate::{Limiter, ManualClock, Quota, TokenBucket};
use tollgate_policy::Policy;
use tollgate_tower::{CountedRequests, RateLimitLayer};
use tower::{Layer, ServiceExt, service_fn};

use crate::server::support::{from, send};

/// Answers with the status that the path says, and with that of gRPC if it says one.
async fn answers(request: Request<()>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().trim_start_matches('/');
    let answer = match path.strip_prefix("grpc/") {
        Some(code) => Response::builder().header("grpc-status", code),
        None => Response::builder().status(path.parse::<u16>().unwrap()),
    };
    Ok(answer.body(Full::default()).unwrap())
}

/// Whether an answer counts as a failure, and whether it counts as a success.
const CASES: [(&str, bool, bool); 11] = [
    ("200", false, true),
    ("204", false, true),
    ("302", false, true),
    ("400", false, false),
    ("401", true, false),
    ("403", true, false),
    ("404", false, false),
    ("422", true, false),
    ("429", false, false),
    ("500", false, false),
    ("503", false, false),
];

#[cfg(feature = "tonic")]
const CALLS: [(&str, bool, bool); 6] = [
    ("grpc/0", false, true),
    ("grpc/3", true, false),
    ("grpc/5", false, false),
    ("grpc/7", true, false),
    ("grpc/13", false, false),
    ("grpc/16", true, false),
];
#[cfg(not(feature = "tonic"))]
const CALLS: [(&str, bool, bool); 0] = [];

#[tokio::test]
async fn a_rate_counts_refusals_of_the_service_and_not_its_errors() {
    for (path, fails, succeeds) in CASES.into_iter().chain(CALLS) {
        for (count, counted) in [
            (CountedRequests::Failures, fails),
            (CountedRequests::Successes, succeeds),
        ] {
            let bucket = TokenBucket::new(Quota::per_hour(9)).unwrap();
            let limiter = Arc::new(Limiter::with_clock(bucket, ManualClock::new()));
            let layer = RateLimitLayer::shared(Arc::clone(&limiter)).count(count);
            send(
                &layer.layer(service_fn(answers)),
                from("192.0.2.1", &format!("/{path}")),
            )
            .await;
            assert_eq!(
                limiter.available(),
                9 - u64::from(counted),
                "{path} {count:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_policy_does_the_same() {
    for (path, fails, succeeds) in CASES.into_iter().chain(CALLS) {
        for (count, counted) in [("failures", fails), ("successes", succeeds)] {
            let text =
                format!("[[rule]]\nname = 'a'\nlimit = 'fixed-window 1/h'\ncount = '{count}'");
            let policy = Policy::builder()
                .clock(ManualClock::new())
                .build_toml(&text)
                .unwrap();
            let service = RateLimitLayer::policy(policy).layer(service_fn(answers));
            let get = || from("192.0.2.1", &format!("/{path}"));
            send(&service, get()).await;
            let next = send(&service, get()).await.status();
            assert_eq!(
                next == 429 && path != "429",
                counted && path != "429",
                "{path} {count}"
            );
        }
    }
}

/// Neither the errors of the service nor pages that are not there ban a client.
#[tokio::test]
async fn a_ban_of_failures_is_for_what_the_client_does() {
    let text = "[[rule]]\nname = 'a'\nkey = 'client-ip'\nban = { after = 3, of = 'failures' }";
    let policy = Policy::builder()
        .clock(ManualClock::new())
        .build_toml(text)
        .unwrap();
    let service = RateLimitLayer::policy(policy).layer(service_fn(answers));
    for path in ["/500", "/404", "/200", "/503"] {
        for _ in 0..9 {
            assert_ne!(send(&service, from("192.0.2.1", path)).await.status(), 429);
        }
    }
    for _ in 0..3 {
        assert_eq!(
            send(&service, from("192.0.2.1", "/401")).await.status(),
            401
        );
    }
    let banned = send(&service, from("192.0.2.1", "/200")).await;
    assert_eq!(banned.status(), 429);
    assert_eq!(banned.headers()["retry-after"], "900");
    assert_eq!(
        send(&service, from("192.0.2.2", "/200")).await.status(),
        200
    );
}

/// A client that does not wait for its answer may have a service that is slow.
#[tokio::test]
async fn a_client_that_goes_away_is_not_banned_whatever_the_program_takes_for_a_failure() {
    let text = "[[rule]]\nname = 'a'\nkey = 'client-ip'\n\
                ban = { after = 2, of = 'failures', within = '1min', for = '1h' }";
    let clock = ManualClock::new();
    let policy = Policy::builder().clock(clock.clone());
    let policy = policy.build_toml(text).unwrap();
    let layer = RateLimitLayer::policy(policy).failure_if(|ended| !ended.is_success());
    let slow = service_fn(async |request: Request<()>| match request.uri().path() {
        "/slow" => std::future::pending().await,
        _ => answers(request).await,
    });
    let service = layer.layer(slow);
    for _ in 0..2 {
        let mut answer = pin!(service.clone().oneshot(from("192.0.2.1", "/slow")));
        let mut context = Context::from_waker(Waker::noop());
        assert!(answer.as_mut().poll(&mut context).is_pending());
    }
    // Their attempts stay taken.
    let get = || from("192.0.2.1", "/200");
    assert_eq!(send(&service, get()).await.status(), 429);
    clock.advance(Duration::from_secs(61));
    assert_eq!(send(&service, get()).await.status(), 200);
}
