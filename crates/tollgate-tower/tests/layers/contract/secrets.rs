//! No `Debug` text shows what clients send: headers, cookies, queries and user names of URIs are
//! often secret, and such texts end in logs.

use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use http_body_util::Full;
use tollgate::keyed::KeyedConcurrency;
use tollgate::{Concurrency, Keyed, Limiter, Quota};
use tollgate_http::{AnswerFacts, Fields, LimitStates, Refusal};
use tollgate_policy::Policy;
use tollgate_tower::{ByHeader, CountedRequests, RateLimitLayer, RequestFacts};
use tower::{Layer, Service, service_fn};

/// It is part of all that a client or the service sends.
const SECRET: &str = "hunter2";

fn request() -> Request<()> {
    Request::get(format!(
        "http://ann:{SECRET}@example.com/page?token={SECRET}"
    ))
    .header("authorization", format!("Bearer {SECRET}"))
    .header("cookie", format!("session={SECRET}"))
    .header("x-api-key", SECRET)
    .extension(SECRET)
    .body(())
    .expect("a request")
}

type Answer = Response<Full<bytes::Bytes>>;

async fn answer(_: Request<()>) -> Result<Answer, Infallible> {
    let answer = Response::builder().header("set-cookie", format!("session={SECRET}"));
    let answer = answer.extension(SECRET).body(Full::from(SECRET));
    Ok(answer.expect("an answer"))
}

/// Checks both forms of a value's `Debug` text.
fn hides(value: &impl Debug) {
    for text in [format!("{value:?}"), format!("{value:#?}")] {
        assert!(!text.contains(SECRET), "{text}");
        assert!(!text.is_empty());
    }
}

#[test]
fn facts_hide_what_is_sent() {
    let request = request();
    let facts = RequestFacts::new(&request);
    hides(&facts);
    hides(&facts.clone().client_ip([192, 0, 2, 1].into()));
    let path = format!("/users?token={SECRET}");
    hides(&facts.with_path(&path));
    let (parts, ()) = request.into_parts();
    hides(&RequestFacts::of_parts(&parts));

    let headers = HeaderMap::from_iter([(
        HeaderName::from_static("set-cookie"),
        SECRET.parse().expect("a value"),
    )]);
    let answer = AnswerFacts::new(StatusCode::OK, &headers);
    hides(&answer.bytes(7).time(Duration::from_secs(1)));
}

/// The facts that are useful in a log and not secret are shown.
#[test]
fn facts_show_the_rest() {
    let request = request();
    let facts = RequestFacts::new(&request).client_ip([192, 0, 2, 1].into());
    let text = format!("{facts:?}");
    for part in ["GET", "example.com", "/page", "192.0.2.1"] {
        assert!(text.contains(part), "{text}");
    }
    let text = format!("{:?}", AnswerFacts::new(StatusCode::OK, request.headers()));
    assert!(text.contains("200"), "{text}");
}

/// All that a layer shows, to a function of the program and of itself.
#[tokio::test]
async fn layers_hide_what_is_sent() {
    let ends = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&ends);
    let quota = Quota::per_hour(9);
    let key = ByHeader(HeaderName::from_static("x-api-key"));
    let by_key = RateLimitLayer::by_key(Keyed::token_bucket(quota, 9).unwrap(), key.clone())
        .count(CountedRequests::Successes)
        .fields(Fields::LIST)
        .settle(move |ended| {
            seen.lock().unwrap().push(format!("{ended:?} {ended:#?}"));
            assert_eq!(ended.headers().map(HeaderMap::len), Some(1));
            1
        });
    hides(&by_key);
    let mut service = by_key.layer(service_fn(answer));
    hides(&service);
    let future = service.call(request());
    hides(&future);
    let answer_of_key = future.await.unwrap();
    hides(&answer_of_key.body());
    drop(answer_of_key);
    let ends = ends.lock().unwrap();
    assert_eq!(ends.len(), 1);
    assert!(
        ends[0].contains("200") && ends[0].contains("Dropped"),
        "{ends:?}"
    );
    hides(&*ends);

    hides(&RateLimitLayer::shared(
        Limiter::token_bucket(quota).unwrap(),
    ));
    hides(&RateLimitLayer::concurrency(Concurrency::new(1).unwrap()));
    hides(&RateLimitLayer::concurrency_by_key(
        KeyedConcurrency::new(1, 9).unwrap(),
        key,
    ));
}

#[test]
fn decisions_hide_what_is_sent() {
    let text = "[[rule]]\nname = 'key'\nkey = ['header:x-api-key', 'query:token']\nlimit = '1/h'\n\
                [[deny]]\nname = 'listed'\nwhen = { cookie.session = 'other' }";
    let policy = Policy::from_toml(text).unwrap();
    for _ in 0..2 {
        let request = request();
        let facts = RequestFacts::new(&request);
        let decision = policy.decide(&facts);
        hides(&decision);
        hides(&LimitStates::of(&decision));
        hides(&decision.reason());
        hides(&decision.asked().collect::<Vec<_>>());
        hides(&Refusal::of_decision(&decision));
    }
    hides(&policy);
}
