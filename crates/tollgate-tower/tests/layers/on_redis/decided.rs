//! The server decides.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, Request, Response, StatusCode};
use tollgate_redis::client::{Connection, connect_lazily};
use tollgate_redis::{Fallback, Keys, Leasing, Limit, RedisLimiter, RedisServer};
use tollgate_tower::{ByHeader, CountedRequests, Fields, RateLimitLayer};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::private_server::PrivateServer;

/// Starts a server, or says that the test is skipped.
fn server() -> Option<PrivateServer> {
    let server = PrivateServer::start().unwrap();
    if server.is_none() {
        eprintln!("skipped: redis-server can't be started; TOLLGATE_REDIS_SERVER can name another");
    }
    server
}

/// Returns a limit that one process has on the server, when it is connected.
async fn limiter(server: &PrivateServer, limit: &str) -> Arc<RedisLimiter<Connection>> {
    let limit: Limit = limit.parse().unwrap();
    let client = connect_lazily(server.url()).unwrap();
    let server = Arc::new(RedisServer::new(client).with_budget(Duration::from_secs(20)));
    let keys = Keys::new("test").unwrap();
    let limiter = RedisLimiter::new(server, &keys, "api", limit, Fallback::Closed).unwrap();
    while limiter.key("nobody").available().await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Arc::new(limiter)
}

fn by_user() -> ByHeader {
    ByHeader(HeaderName::from_static("x-user"))
}

fn of(user: &str) -> Request<StatusCode> {
    answered(user, StatusCode::OK)
}

/// A request that is answered with this status.
fn answered(user: &str, status: StatusCode) -> Request<StatusCode> {
    Request::get("/")
        .header("x-user", user)
        .body(status)
        .unwrap()
}

async fn echo(request: Request<StatusCode>) -> Result<Response<String>, Infallible> {
    let mut answer = Response::new("hello".into());
    *answer.status_mut() = *request.body();
    Ok(answer)
}

/// Waits until a key has this many permits.
async fn until_available(limiter: &RedisLimiter<Connection>, user: &str, permits: u64) {
    while limiter.key(user).available().await != Ok(permits) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn two_processes_share_a_limit() {
    let Some(server) = server() else { return };
    let layer = async || {
        let limiter = limiter(&server, "3/h").await;
        let limit = RateLimitLayer::redis(limiter, by_user()).fields(Fields::LIST);
        limit.layer(service_fn(echo))
    };
    let services = [layer().await, layer().await];
    for (turn, left) in [2, 1, 0].into_iter().enumerate() {
        let answer = services[turn % 2].clone().oneshot(of("ann")).await.unwrap();
        assert_eq!(answer.status(), 200);
        let said = answer.headers()["ratelimit"].to_str().unwrap();
        assert!(
            said.starts_with(&format!("\"default\";r={left};")),
            "{said}"
        );
    }
    for service in &services {
        let answer = service.clone().oneshot(of("ann")).await.unwrap();
        assert_eq!(answer.status(), 429);
        let said = answer.headers()["ratelimit"].to_str().unwrap();
        assert!(said.starts_with("\"default\";r=0;"), "{said}");
        assert!(answer.headers().contains_key("retry-after"));
        let other = service.clone().oneshot(of("bob")).await.unwrap();
        assert_eq!(other.status(), 200);
    }
}

/// Asks until an answer is as wanted, and returns it.
async fn until<S, B>(service: &S, is_it: impl Fn(&Response<B>) -> bool) -> Response<B>
where
    S: Service<Request<StatusCode>, Response = Response<B>, Error = Infallible> + Clone,
{
    let asked = async {
        loop {
            let answer = service.clone().oneshot(of("ann")).await.unwrap();
            if is_it(&answer) {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    };
    let asked = tokio::time::timeout(Duration::from_secs(60), asked).await;
    asked.expect("such an answer")
}

/// A process that leases permits does not know what the limit has left.
#[tokio::test]
async fn only_refusals_and_the_server_say_what_is_left_of_a_limit_with_leases() {
    let Some(server) = server() else { return };
    let leased = limiter(&server, "1/h burst 10000").await;
    let leased = Arc::into_inner(leased).unwrap();
    let leased = Arc::new(leased.leased(Leasing::new()).unwrap());
    let limit = RateLimitLayer::redis(Arc::clone(&leased), by_user()).fields(Fields::LIST);
    let service = limit.layer(service_fn(echo));
    let answer = service.clone().oneshot(of("ann")).await.unwrap();
    let said = answer.headers()["ratelimit"].to_str().unwrap();
    assert!(said.starts_with("\"default\";r=9999;"), "{said}");

    let is_bare = |answer: &Response<_>| !answer.headers().contains_key("ratelimit");
    let answer = until(&service, is_bare).await;
    assert_eq!(answer.status(), 200);
    assert!(!answer.headers().contains_key("ratelimit-policy"));
    assert!(leased.lease_stats().unwrap().drawn > 0);

    let answer = until(&service, |answer| answer.status() == 429).await;
    let said = answer.headers()["ratelimit"].to_str().unwrap();
    assert!(said.starts_with("\"default\";r=0;"), "{said}");
    assert!(answer.headers().contains_key("retry-after"));
}

#[tokio::test]
async fn failures_alone_are_counted() {
    let Some(server) = server() else { return };
    let limiter = limiter(&server, "5/h").await;
    let limit = RateLimitLayer::redis(Arc::clone(&limiter), by_user());
    let limit = limit.count(CountedRequests::Failures);
    let service = limit.layer(service_fn(echo));
    for status in [StatusCode::OK, StatusCode::UNAUTHORIZED, StatusCode::OK] {
        let request = answered("ann", status);
        let answer = service.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), status);
    }
    until_available(&limiter, "ann", 4).await;
}

#[tokio::test]
async fn requests_are_settled() {
    let Some(server) = server() else { return };
    let limiter = limiter(&server, "100/h").await;
    let limit = RateLimitLayer::redis(Arc::clone(&limiter), by_user());
    let limit = limit.cost(|_| 10).settle(|ended| ended.bytes() * 3);
    let service = limit.layer(service_fn(echo));
    // Nothing of the body is read, so it cost nothing.
    drop(service.clone().oneshot(of("ann")).await.unwrap());
    until_available(&limiter, "ann", 100).await;
    let answer = service.oneshot(of("bob")).await.unwrap();
    http_body_util::BodyExt::collect(answer).await.unwrap();
    until_available(&limiter, "bob", 85).await;
}

#[tokio::test]
async fn a_denied_request_waits_for_its_permit() {
    let Some(server) = server() else { return };
    let limiter = limiter(&server, "20/s burst 1").await;
    let limit = RateLimitLayer::redis(limiter, by_user());
    let limit = limit.wait(Duration::from_secs(60), 10).unwrap();
    let service = limit.layer(service_fn(echo));
    for _ in 0..5 {
        let answer = service.clone().oneshot(of("ann")).await.unwrap();
        assert_eq!(answer.status(), 200);
    }
}

#[tokio::test]
async fn a_request_that_would_wait_for_too_long_is_refused() {
    let Some(server) = server() else { return };
    let limiter = limiter(&server, "1/h").await;
    let limit = RateLimitLayer::redis(limiter, by_user());
    let limit = limit.wait(Duration::from_secs(60), 10).unwrap();
    let service = limit.layer(service_fn(echo));
    let first = service.clone().oneshot(of("ann")).await.unwrap();
    let second = service.clone().oneshot(of("ann")).await.unwrap();
    assert_eq!(
        (first.status().as_u16(), second.status().as_u16()),
        (200, 429)
    );
}

#[tokio::test]
async fn a_queue_delays_requests() {
    let Some(server) = server() else { return };
    let limiter = limiter(&server, "leaky-queue 20/s burst 10").await;
    let service = RateLimitLayer::redis(limiter, by_user()).layer(service_fn(echo));
    let began = tokio::time::Instant::now();
    for _ in 0..3 {
        let answer = service.clone().oneshot(of("ann")).await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    assert!(began.elapsed() >= Duration::from_millis(90));
}

#[tokio::test]
async fn a_slot_of_a_concurrency_is_held_until_the_body_ends() {
    let Some(server) = server() else { return };
    let limiter = limiter(&server, "concurrency 2 lease 60s").await;
    let limit = RateLimitLayer::redis(Arc::clone(&limiter), by_user()).fields(Fields::LIST);
    let service = limit.layer(service_fn(echo));
    let mut inside = Vec::new();
    for left in ["1", "0"] {
        let answer = service.clone().oneshot(of("ann")).await.unwrap();
        assert_eq!(answer.status(), 200);
        let said = answer.headers()["ratelimit"].to_str().unwrap();
        assert_eq!(said, format!("\"default\";r={left}"));
        inside.push(answer);
    }
    let answer = service.clone().oneshot(of("ann")).await.unwrap();
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.headers()["ratelimit"], "\"default\";r=0");
    inside.pop();
    until_available(&limiter, "ann", 1).await;
    inside.pop();
    until_available(&limiter, "ann", 2).await;
}

#[tokio::test]
async fn a_client_that_goes_away_while_the_server_decides_loses_nothing() {
    let Some(server) = server() else { return };
    for limit in ["10/h", "concurrency 10 lease 60s"] {
        let limiter = limiter(&server, limit).await;
        let service = RateLimitLayer::redis(Arc::clone(&limiter), by_user());
        let service = service.layer(service_fn(echo));
        let answered = || limiter.server().stats().server;
        let before = answered();
        for _ in 0..10 {
            tokio::select! {
                biased;
                _ = service.clone().oneshot(of("ann")) => panic!("it was answered at once"),
                () = std::future::ready(()) => {}
            }
        }
        // The server grants each, and takes each grant back.
        while answered() < before + 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(limiter.key("ann").available().await, Ok(10));
        limiter.key("ann").reset().await.unwrap();
    }
}
