//! Facts of answers.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use tollgate_http::AnswerFacts;
use tollgate_policy::{FactName, Facts};

fn text(facts: &AnswerFacts<'_>, name: &str) -> Option<String> {
    let name = FactName::new(name);
    let values = facts.values(&name);
    let values: Vec<_> = values.iter().map(|value| value.as_text()).collect();
    (!values.is_empty()).then(|| values.join(" and "))
}

#[test]
fn an_answer_has_its_status_headers_size_and_time() {
    let mut headers = HeaderMap::new();
    headers.append("x-tokens", "640".parse().unwrap());
    headers.append("x-tokens", "2".parse().unwrap());
    let plain = AnswerFacts::new(StatusCode::NOT_FOUND, &headers);
    for (name, value) in [
        ("response-header:X-Tokens", Some("640 and 2")),
        ("response-header:x-none", None),
        ("response-status", Some("404")),
        ("response-bytes", None),
        ("response-time-ms", None),
        // Facts of the request are not those of the answer.
        ("header:x-tokens", None),
        ("method", None),
        ("path", None),
        ("client-ip", None),
        ("user", None),
    ] {
        assert_eq!(text(&plain, name).as_deref(), value, "{name}");
    }
    assert_eq!(
        text(&plain.bytes(7), "response-bytes").as_deref(),
        Some("7")
    );
}

#[test]
fn time_is_rounded_up_to_milliseconds() {
    let headers = HeaderMap::new();
    for (time, ms) in [
        (Duration::ZERO, 0),
        (Duration::from_nanos(1), 1),
        (Duration::from_millis(1), 1),
        (Duration::from_nanos(1_000_001), 2),
        (Duration::from_secs(3), 3000),
        (Duration::MAX, u64::MAX),
    ] {
        let facts = AnswerFacts::new(StatusCode::OK, &headers).time(time);
        assert_eq!(text(&facts, "response-time-ms"), Some(ms.to_string()));
    }
}
