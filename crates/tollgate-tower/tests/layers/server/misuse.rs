//! What clients can't do by what they send, and what operators may get wrong.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, Request};
use tollgate::keyed::Overflow;
use tollgate::keyed::{KeyHasher, KeyedConcurrency};
use tollgate::{Keyed, ManualClock, Quota, TokenBucket};
use tollgate_http::Fields;
use tollgate_tower::{ByHeader, MissingKey, RateLimitLayer, RequestFacts};
use tower::{Layer, ServiceExt};

#[cfg(any(feature = "axum", feature = "tonic"))]
use crate::server::support::from;
use crate::server::support::{Ok200, send};

fn table(quota: Quota, keys: usize) -> Keyed<TokenBucket, ManualClock> {
    Keyed::with_clock(TokenBucket::new(quota).unwrap(), keys, ManualClock::new()).unwrap()
}

fn by_api_key() -> ByHeader {
    ByHeader(HeaderName::from_static("x-api-key"))
}

fn with_key(key: &str) -> Request<()> {
    Request::get("/").header("x-api-key", key).body(()).unwrap()
}

/// A client chooses the content type, so a build with gRPC in it must not answer 200 for it.
#[cfg(feature = "tonic")]
#[tokio::test]
async fn a_content_type_of_grpc_changes_nothing_unless_the_layer_says_so() {
    let limiter = tollgate::Limiter::token_bucket(Quota::per_hour(1)).unwrap();
    let service = RateLimitLayer::shared(limiter).layer(Ok200);
    send(&service, from("192.0.2.1", "/")).await;
    for method in ["GET", "HEAD", "PUT", "POST"] {
        let mut request = from("192.0.2.1", "/page");
        *request.method_mut() = method.parse().unwrap();
        let grpc = http::HeaderValue::from_static("application/grpc");
        request.headers_mut().insert("content-type", grpc);
        let answer = send(&service, request).await;
        assert_eq!(answer.status(), 429, "{method}");
        assert!(!answer.headers().contains_key("grpc-status"));
    }
}

/// A cache stores the answer to a `GET` whose status is 200. So a client could empty a page for
/// all.
#[cfg(feature = "tonic")]
#[tokio::test]
async fn only_a_post_is_refused_as_a_call_of_grpc() {
    let limiter = tollgate::Limiter::token_bucket(Quota::per_hour(1)).unwrap();
    let service = RateLimitLayer::shared(limiter).grpc().layer(Ok200);
    send(&service, from("192.0.2.1", "/")).await;
    for (method, status) in [("GET", 429), ("HEAD", 429), ("PUT", 429), ("POST", 200)] {
        let mut request = from("192.0.2.1", "/page");
        *request.method_mut() = method.parse().unwrap();
        let grpc = http::HeaderValue::from_static("application/grpc");
        request.headers_mut().insert("content-type", grpc);
        let answer = send(&service, request).await;
        assert_eq!(answer.status(), status, "{method}");
        assert_eq!(answer.headers().contains_key("grpc-status"), status == 200);
    }
}

/// A header of the answer may say any number.
#[tokio::test]
async fn a_settled_cost_is_a_debt_that_ends() {
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(Quota::per_second(1)).unwrap();
    let limiter = tollgate::Limiter::with_clock(bucket, clock.clone());
    let service = RateLimitLayer::shared(limiter)
        .settle(|_| u64::MAX)
        .layer(Ok200);
    let get = || Request::get("/").body(()).unwrap();
    assert_eq!(send(&service, get()).await.status(), 200);
    let refused = send(&service, get()).await;
    assert_eq!(refused.status(), 429);
    // The permit that was there, and an hour less one.
    assert_eq!(refused.headers()["retry-after"], "3600");
    clock.advance(std::time::Duration::from_secs(3600));
    assert_eq!(send(&service, get()).await.status(), 200);
}

/// An accept loop that reads the PROXY protocol knows the client's address. The connection's is the
/// proxy's.
#[cfg(feature = "axum")]
#[tokio::test]
async fn an_address_that_the_program_inserts_takes_precedence_over_the_connections() {
    let service = RateLimitLayer::by_address(table(Quota::per_hour(1), 100)).layer(Ok200);
    for client in ["192.0.2.1", "192.0.2.2"] {
        let mut request = from(client, "/");
        let proxy: std::net::SocketAddr = ([10, 0, 0, 1], 40_000).into();
        let proxy = axum::extract::ConnectInfo(proxy);
        request.extensions_mut().insert(proxy);
        assert_eq!(send(&service, request).await.status(), 200, "{client}");
    }
}

#[tokio::test]
async fn no_text_is_the_key_of_requests_without_a_key() {
    let by_name = |facts: &RequestFacts<'_>| {
        let key = facts.header("x-api-key")?;
        Ok(key.map(|it| it.into_owned()))
    };
    let service = RateLimitLayer::by_key(table(Quota::per_hour(1), 100), by_name)
        .missing(MissingKey::Share)
        .layer(Ok200);
    let none = || Request::get("/").body(()).unwrap();
    assert_eq!(send(&service, none()).await.status(), 200);
    assert_eq!(send(&service, none()).await.status(), 429);
    let text = with_key("tollgate: a request without a key");
    assert_eq!(send(&service, text).await.status(), 200);
}

#[tokio::test]
async fn partitions_do_not_show_the_hashes_of_the_table() {
    let table = Arc::new(table(Quota::per_hour(1), 100));
    let layer = || {
        RateLimitLayer::by_key(Arc::clone(&table), by_api_key())
            .fields(Fields::LIST)
            .partitions()
    };
    // Layers of one table name a key's limit alike.
    let services = [layer().layer(Ok200), layer().layer(Ok200)];
    let mut seen = Vec::new();
    for service in &services {
        for key in ["ann", "bob"] {
            let answer = send(service, with_key(key)).await;
            let field = answer.headers()["ratelimit"].to_str().unwrap();
            seen.push(field.split_once("pk=").unwrap().1.to_owned());
        }
    }
    assert_ne!(seen[0], seen[1]);
    assert_eq!(seen[..2], seen[2..]);
    let hash = table.hasher().hash_key("ann");
    let partition = STANDARD.decode(seen[0].trim_matches(':')).unwrap();
    assert_eq!(partition.len(), 8);
    assert_ne!(partition, hash.to_be_bytes());
}

#[tokio::test]
async fn fields_have_the_quota_of_the_key() {
    let table = table(Quota::per_minute(1), 100).with_overrides(10).unwrap();
    table.key("ann").set_quota(Quota::per_minute(3)).unwrap();
    let service = RateLimitLayer::by_key(table, by_api_key())
        .fields(Fields::LIST)
        .layer(Ok200);
    for (key, quota, left) in [("ann", 3, "r=2"), ("bob", 1, "r=0"), ("bob", 1, "r=0")] {
        let answer = send(&service, with_key(key)).await;
        let policy = format!("\"default\";q={quota};w=60");
        assert_eq!(answer.headers()["ratelimit-policy"], policy.as_str());
        let state = answer.headers()["ratelimit"].to_str().unwrap();
        assert!(state.contains(left), "{state}");
    }
}

/// A client that has sent nothing yet did not send too much.
#[tokio::test]
async fn a_table_without_room_is_an_overload() {
    let table = table(Quota::per_hour(1), 1).with_overflow(Overflow::Deny);
    let rate = RateLimitLayer::by_key(table, by_api_key()).layer(Ok200);
    let mut statuses = Vec::new();
    for key in 0..4000 {
        statuses.push(send(&rate, with_key(&key.to_string())).await.status());
    }
    assert_eq!(statuses[0], 200);
    assert!(statuses.contains(&http::StatusCode::SERVICE_UNAVAILABLE));
    assert!(!statuses.contains(&http::StatusCode::TOO_MANY_REQUESTS));

    let inside = KeyedConcurrency::new(1, 1).unwrap();
    let inside = RateLimitLayer::concurrency_by_key(inside, by_api_key()).layer(Ok200);
    let mut held = Vec::new();
    for key in 0..4000 {
        let key = with_key(&key.to_string());
        held.push(inside.clone().oneshot(key).await.unwrap());
    }
    let last = held.last().map(http::Response::status);
    assert_eq!(last, Some(http::StatusCode::SERVICE_UNAVAILABLE));
}

/// A client that sends its key twice must not choose a limit by the second line.
#[tokio::test]
async fn a_key_whose_lines_differ_is_refused_whatever_is_missing() {
    let twice = || {
        let request = Request::get("/").header("x-api-key", "k1");
        request.header("x-api-key", "other").body(()).unwrap()
    };
    let equal = || {
        let request = Request::get("/").header("x-api-key", "k1");
        request.header("x-api-key", "k1").body(()).unwrap()
    };
    for missing in [MissingKey::Refuse, MissingKey::Share, MissingKey::Exempt] {
        let rate = RateLimitLayer::by_key(table(Quota::per_hour(2), 100), by_api_key());
        let rate = rate.missing(missing).layer(Ok200);
        assert_eq!(send(&rate, with_key("k1")).await.status(), 200);
        assert_eq!(send(&rate, equal()).await.status(), 200);
        assert_eq!(send(&rate, with_key("k1")).await.status(), 429);
        assert_eq!(send(&rate, twice()).await.status(), 400, "{missing:?}");

        let inside = KeyedConcurrency::new(1, 100).unwrap();
        let inside = RateLimitLayer::concurrency_by_key(inside, by_api_key());
        let inside = inside.missing(missing).layer(Ok200);
        assert_eq!(send(&inside, equal()).await.status(), 200);
        assert_eq!(send(&inside, twice()).await.status(), 400, "{missing:?}");
    }
}
