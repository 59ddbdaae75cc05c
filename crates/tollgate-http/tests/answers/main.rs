//! How answers are written: fields, statuses and bodies.

mod bodies;
mod fields;
#[cfg(feature = "grpc")]
mod grpc;
mod layers;
mod most_at_once;
mod parsed;
#[cfg(feature = "policy")]
mod policies;
#[path = "../support/states.rs"]
mod states;
mod window;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use tollgate_http::{Answers, Fields, LimitState};

const NOW: Duration = Duration::from_secs(1_700_000_000);

fn now() -> SystemTime {
    UNIX_EPOCH + NOW
}

/// Writes the fields of an answer to a granted request.
fn written(fields: Fields, limits: &[LimitState<'_>]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let answers = Answers::new().fields(fields);
    answers.write_at(limits.iter().copied(), now(), &mut headers);
    headers
}

/// Returns all fields as lines, in the order of their names.
fn lines(headers: &HeaderMap) -> Vec<String> {
    let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        format!("{name}: {}", value.to_str().expect("visible text"))
    };
    let mut lines: Vec<_> = headers.iter().map(line).collect();
    lines.sort();
    lines
}
