//! What `scripts/fuzz` runs.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::FutureExt;
use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::Value;
use tollgate_policy::{LivePolicy, Policy};

use crate::counters::Counters;
use crate::held::Held;
use crate::service::{Answer, Service};
use crate::settings::Limits;

const POLICY: &str = "
    [[deny]]
    name = 'deny'
    when = { a = 'deny' }
    [[rule]]
    name = 'address'
    when = { client-ip = true, path = '/a/**' }
    key = ['client-ip', 'path']
    limit = ['5/min', 'sliding-window 9/h']
    [[rule]]
    name = 'places'
    key = 'a'
    limit = 'concurrency 2'
    [[rule]]
    name = 'failures'
    key = 'a'
    limit = '10/s'
    count = 'failures'
    [[rule]]
    name = 'cost'
    key = 'b'
    limit = '1000/s'
    cost = { estimate = 'b', default = 1, max = 500 }
    shadow = true
";

static SERVICE: LazyLock<Service> = LazyLock::new(|| {
    let policy = Policy::from_toml(POLICY).expect("a policy");
    let live = Arc::new(LivePolicy::new(policy));
    let held = Held::new(Duration::from_secs(1), 100);
    Service::new(live, Counters::default(), held, Limits::default())
});

/// Any body: it is a question that is answered, or an error that says why. What is held can be
/// ended once.
pub fn body(body: &[u8]) {
    let (status, said) = said(super::decide(&SERVICE, body));
    match status {
        StatusCode::OK => {}
        StatusCode::BAD_REQUEST => {
            assert!(said["error"].is_string(), "{said}");
            return;
        }
        _ => panic!("{status} {said}"),
    }
    // What is no JSON is no question.
    let asked: Value = serde_json::from_slice(body).expect("it was read before");
    let answers = match said {
        Value::Array(answers) => answers,
        answer => vec![answer],
    };
    assert_eq!(answers.len(), asked.as_array().map_or(1, Vec::len));
    for answer in answers {
        let is_allowed = answer["allowed"].as_bool().expect("a decision");
        assert_eq!(is_allowed, answer.get("cause").is_none(), "{answer}");
        let Some(token) = answer.get("token") else {
            continue;
        };
        let finish = format!("{{\"token\": {token}, \"outcome\": \"failure\"}}");
        for known in [StatusCode::OK, StatusCode::NOT_FOUND] {
            let (status, said) = self::said(super::finish(&SERVICE, finish.as_bytes()));
            assert_eq!(status, known, "{said}");
        }
    }
    for verb in [true, false] {
        let (status, _) = match verb {
            true => self::said(super::finish(&SERVICE, body)),
            false => self::said(super::undo(&SERVICE, body)),
        };
        assert_ne!(status, StatusCode::OK);
    }
}

fn said(answering: impl Future<Output = Answer>) -> (StatusCode, Value) {
    let answer = answering.now_or_never().expect("no store is asked");
    let (head, body) = answer.into_parts();
    let body = body.collect().now_or_never().expect("it is there");
    let body = body.expect("it is there").to_bytes();
    let said = serde_json::from_slice(&body).expect("JSON");
    (head.status, said)
}

#[cfg(test)]
mod tests {
    /// The seeds of the target pass, also if nothing fuzzes.
    #[test]
    fn bodies_of_each_kind_pass() {
        let bodies = [
            "",
            "{}",
            "[]",
            r#"{"facts": {}}"#,
            r#"{"facts": {"a": "deny"}}"#,
            r#"{"facts": {"client-ip": "192.0.2.1", "path": "/a/b"}}"#,
            r#"{"facts": {"a": "x", "b": 7}, "hold": true}"#,
            r#"[{"facts": [{"a": "x"}, {"b": [1, 2]}], "hold": true}, {"facts": {"a": null}}]"#,
            r#"{"token": "00000000000000000000000000000000", "status": 401}"#,
        ];
        for body in bodies {
            super::body(body.as_bytes());
        }
    }
}
