//! Fields and bodies of answers.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Response, StatusCode};
use tollgate::Quota;
use tollgate_http::{Answers, Cause, Fields};
use tollgate_tower::RateLimitLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::{GovernorError, GovernorLayer};

use crate::support::{Result, behind, from, number, send, still};

/// One request each hour, and at most ten at once.
fn quota() -> Quota {
    Quota::per(1, Duration::from_secs(3600)).burst(10)
}

#[tokio::test]
async fn the_fields_of_both_say_the_same() -> Result {
    let mut builder = GovernorConfigBuilder::default();
    let builder = builder.per_second(3600).burst_size(10);
    let config = builder.use_headers().finish();
    let theirs = behind(GovernorLayer::new(config.ok_or("zero")?));
    let layer = RateLimitLayer::by_address(still(quota())?);
    let ours = behind(layer.fields(Fields::X_SECONDS));
    for request in 1..=12 {
        let (status, headers, _) = send(&theirs, from("192.0.2.1")).await;
        let (our_status, our_headers, _) = send(&ours, from("192.0.2.1")).await;
        assert_eq!((status, our_status == 200), (our_status, request <= 10));
        for name in ["x-ratelimit-limit", "x-ratelimit-remaining"] {
            let value = number(&headers, name);
            assert!(value.is_some(), "{name}");
            assert_eq!(
                number(&our_headers, name),
                value,
                "{name} of request {request}"
            );
        }
        assert!(number(&our_headers, "x-ratelimit-reset").is_some());
        let wait = number(&headers, "retry-after");
        assert_eq!(number(&headers, "x-ratelimit-after"), wait);
        assert_eq!(wait.is_some(), request > 10);
        assert_eq!(number(&our_headers, "retry-after"), wait.map(|_| 3600));
    }
    Ok(())
}

#[tokio::test]
async fn an_exempt_request_has_no_field_that_says_so() -> Result {
    let mut builder = GovernorConfigBuilder::default();
    let builder = builder.methods(vec![Method::POST]);
    let config = builder.use_headers().finish();
    let theirs = behind(GovernorLayer::new(config.ok_or("zero")?));
    let (_, headers, _) = send(&theirs, from("192.0.2.1")).await;
    assert_eq!(headers["x-ratelimit-whitelisted"], "true");

    let layer = RateLimitLayer::by_address(still(quota())?).fields(Fields::X_SECONDS);
    let ours = behind(layer.exempt_if(|request| request.method() != Method::POST));
    let (_, headers, _) = send(&ours, from("192.0.2.1")).await;
    assert!(
        headers
            .keys()
            .all(|name| !name.as_str().starts_with("x-ratelimit"))
    );
    Ok(())
}

#[tokio::test]
async fn a_refusal_says_when_to_come_back() -> Result {
    let mut builder = GovernorConfigBuilder::default();
    let config = builder.per_second(3600).burst_size(1).finish();
    let theirs = behind(GovernorLayer::new(config.ok_or("zero")?));
    let ours = behind(RateLimitLayer::by_address(still(quota().burst(1))?));
    for _ in 0..2 {
        send(&theirs, from("192.0.2.1")).await;
        send(&ours, from("192.0.2.1")).await;
    }
    let (status, headers, body) = send(&theirs, from("192.0.2.1")).await;
    assert_eq!((status, headers.contains_key("content-type")), (429, false));
    assert!(body.starts_with(b"Too Many Requests! Wait for"));
    let (status, headers, body) = send(&ours, from("192.0.2.1")).await;
    assert_eq!(
        (status, &*body),
        (429, &b"too many requests: retry in 3600 s\n"[..])
    );
    assert_eq!(headers["content-type"], "text/plain; charset=utf-8");
    Ok(())
}

#[tokio::test]
async fn an_answer_of_the_programs_own_keeps_the_fields() -> Result {
    let handler = |error: GovernorError| {
        let mut response = Response::new(Body::from("<h1>Slow down</h1>"));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        if let GovernorError::TooManyRequests {
            headers: Some(headers),
            ..
        } = error
        {
            *response.headers_mut() = headers;
        }
        response
    };
    let mut builder = GovernorConfigBuilder::default();
    let config = builder.per_second(3600).burst_size(1).finish();
    let config = config.ok_or("zero")?;
    let theirs = behind(GovernorLayer::new(config).error_handler(handler));

    let answers = Answers::new()
        .status(Cause::Limit, StatusCode::SERVICE_UNAVAILABLE)
        .edit(|_refusal, response| *response.body_mut() = "<h1>Slow down</h1>".into());
    let table = still(quota().burst(1))?;
    let ours = behind(RateLimitLayer::by_address(table).answers(answers));
    send(&theirs, from("192.0.2.1")).await;
    send(&ours, from("192.0.2.1")).await;
    let refused = [
        send(&theirs, from("192.0.2.1")).await,
        send(&ours, from("192.0.2.1")).await,
    ];
    for (status, headers, body) in refused {
        assert_eq!((status, &*body), (503, &b"<h1>Slow down</h1>"[..]));
        assert!(number(&headers, "retry-after") > Some(1800));
    }
    Ok(())
}
