//! The fallback decides while there is no server.

use std::fmt;
use std::sync::Arc;

use http::{HeaderName, Request, Response};
use tollgate_redis::client::{Client, ClientError, Command, Reply};
use tollgate_redis::{Fallback, Keys, Limit, RedisLimiter, RedisServer};
use tollgate_tower::{ByHeader, Fields, MissingKey, RateLimitLayer, RequestFacts};
use tower::{Layer, Service, ServiceExt, service_fn};

struct Nowhere;

impl Client for Nowhere {
    async fn send(&self, _: &Command<'_>) -> Result<Reply, ClientError> {
        Err(ClientError::NotSent("there is no server".into()))
    }
}

fn limiter(limit: &str, fallback: Fallback) -> RedisLimiter<Nowhere> {
    let limit: Limit = limit.parse().unwrap();
    let server = Arc::new(RedisServer::new(Nowhere));
    RedisLimiter::new(server, &Keys::new("test").unwrap(), "api", limit, fallback).unwrap()
}

fn by_user() -> ByHeader {
    ByHeader(HeaderName::from_static("x-user"))
}

fn of(user: &str) -> Request<()> {
    Request::get("/").header("x-user", user).body(()).unwrap()
}

async fn hello(_: Request<()>) -> Result<Response<String>, std::convert::Infallible> {
    Ok(Response::new("hello".into()))
}

async fn ask<S, B>(service: &S, request: Request<()>) -> Response<B>
where
    S: Service<Request<()>, Response = Response<B>, Error = std::convert::Infallible> + Clone,
{
    service.clone().oneshot(request).await.unwrap()
}

#[tokio::test]
async fn a_closed_fallback_answers_503_and_says_when_the_server_is_asked_again() {
    let limit = RateLimitLayer::redis(limiter("5/min", Fallback::Closed), by_user());
    let service = limit.fields(Fields::LIST).layer(service_fn(hello));
    // The first calls fail, then an outage begins.
    for _ in 0..20 {
        let answer = ask(&service, of("ann")).await;
        assert_eq!(answer.status(), 503);
        assert!(!answer.headers().contains_key("ratelimit"));
    }
    let answer = ask(&service, of("ann")).await;
    assert_eq!(answer.headers()["retry-after"], "1");
}

#[tokio::test]
async fn an_open_fallback_serves_all_and_says_nothing_of_the_limit() {
    let limit = RateLimitLayer::redis(limiter("5/min", Fallback::Open), by_user());
    let service = limit.fields(Fields::LIST).layer(service_fn(hello));
    for _ in 0..20 {
        let answer = ask(&service, of("ann")).await;
        assert_eq!(answer.status(), 200);
        assert!(!answer.headers().contains_key("ratelimit"));
    }
}

#[tokio::test]
async fn a_local_share_denies_what_is_above_it() {
    let share = Fallback::Local {
        processes: 2,
        keys: 100,
    };
    let limit = RateLimitLayer::redis(limiter("10/h", share), by_user());
    let service = limit.fields(Fields::LIST).layer(service_fn(hello));
    for left in (0..5).rev() {
        let answer = ask(&service, of("ann")).await;
        assert_eq!(answer.status(), 200);
        let said = answer.headers()["ratelimit"].to_str().unwrap();
        assert!(
            said.starts_with(&format!("\"default\";r={left};")),
            "{said}"
        );
    }
    let answer = ask(&service, of("ann")).await;
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.headers()["retry-after"], "720");
    assert_eq!(ask(&service, of("bob")).await.status(), 200);
}

#[tokio::test]
async fn a_request_without_a_key_is_refused_or_shares_a_limit_or_is_exempt() {
    let share = Fallback::Local {
        processes: 1,
        keys: 100,
    };
    let layer = || RateLimitLayer::redis(limiter("2/h", share), by_user());
    let without = || Request::get("/").body(()).unwrap();
    let statuses = async |layer: RateLimitLayer<_>| {
        let service = layer.layer(service_fn(hello));
        let mut statuses = Vec::new();
        for _ in 0..3 {
            statuses.push(ask(&service, without()).await.status().as_u16());
        }
        statuses.push(ask(&service, of("")).await.status().as_u16());
        statuses
    };
    assert_eq!(statuses(layer()).await, [400, 400, 400, 200]);
    assert_eq!(
        statuses(layer().missing(MissingKey::Share)).await,
        [200, 200, 429, 200]
    );
    assert_eq!(
        statuses(layer().missing(MissingKey::Exempt)).await,
        [200; 4]
    );
    let service = layer().missing(MissingKey::Exempt).layer(service_fn(hello));
    let two = Request::get("/")
        .header("x-user", "ann")
        .header("x-user", "bob");
    assert_eq!(ask(&service, two.body(()).unwrap()).await.status(), 400);
}

/// A key whose text can't be written.
#[derive(Hash)]
struct NoText;

impl fmt::Display for NoText {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Err(fmt::Error)
    }
}

#[tokio::test]
async fn a_key_without_a_text_is_missing() {
    let key = |_: &RequestFacts<'_>| Some(NoText);
    let limit = RateLimitLayer::redis(limiter("2/h", Fallback::Open), key);
    let service = limit.layer(service_fn(hello));
    assert_eq!(ask(&service, of("ann")).await.status(), 400);
}

#[tokio::test]
async fn a_request_that_costs_more_than_the_burst_is_never_granted() {
    let limit = RateLimitLayer::redis(limiter("5/min", Fallback::Open), by_user()).cost(|_| 6);
    let service = limit.layer(service_fn(hello));
    let answer = ask(&service, of("ann")).await;
    assert_eq!(answer.status(), 429);
    assert!(!answer.headers().contains_key("retry-after"));
}
