//! What servers say of their limits, as a client reads it.

mod as_sfv;
mod corpus;
mod hostile;
mod malformed;
mod round_trip;
#[path = "../../../tollgate-http/tests/support/states.rs"]
mod states;
mod times;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue};
use tollgate_client::{ServerLimit, ServerLimits};

const NOW: u64 = 1_700_000_000;

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW)
}

/// Reads these fields.
fn read(fields: &[(&str, &str)]) -> ServerLimits {
    ServerLimits::read(&headers(fields), now())
}

fn headers(fields: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let name: HeaderName = name.parse().expect("a name");
        headers.append(
            name,
            HeaderValue::from_bytes(value.as_bytes()).expect("a value"),
        );
    }
    headers
}

/// Returns what one limit says, in the form of the corpus.
fn line(limit: &ServerLimit) -> String {
    let mut line = format!("{:?}", limit.name);
    let mut say = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            line += &format!(" {name}={value}");
        }
    };
    say("quota", limit.quota.map(|n| n.to_string()));
    say("window", limit.window.map(|time| format!("{time:?}")));
    say("remaining", limit.remaining.map(|n| n.to_string()));
    say("reset", limit.reset.map(|time| format!("{time:?}")));
    let unit = format!("{:?}", limit.unit);
    say("unit", (unit != "Requests").then_some(unit));
    let key = limit.partition.as_ref();
    say(
        "partition",
        key.map(|key| format!("{:?}", String::from_utf8_lossy(key))),
    );
    line
}

/// Returns what the limits say, one line for each.
fn lines(limits: &ServerLimits) -> Vec<String> {
    limits.limits.iter().map(line).collect()
}

#[test]
fn without_fields_nothing_is_known() {
    let said = read(&[("content-type", "text/html"), ("x-ratelimit", "")]);
    assert_eq!(said, ServerLimits::default());
}
