//! Any bytes as the fields of an answer: what a client reads is within the caps, and the lines of a
//! field may come in any number.
#![no_main]

use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use tollgate_client::ServerLimits;

const NAMES: [&str; 16] = [
    "retry-after",
    "date",
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-reset-after",
    "x-ratelimit-used",
    "x-ratelimit-fillrate",
    "x-ratelimit-interval-seconds",
    "x-ratelimit-bucket",
    "x-ratelimit-reset-tokens",
];

/// Each line of the input is a field. Its first byte says its name: one of those above, or the text
/// up to a colon.
fn headers(input: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in input.split(|byte| *byte == b'\n').take(1000) {
        let Some((first, rest)) = line.split_first() else {
            continue;
        };
        let (name, value) = match NAMES.get(usize::from(first.wrapping_sub(b'0'))) {
            Some(name) => (HeaderName::from_static(name), rest),
            None => {
                let colon = line.iter().position(|byte| *byte == b':').unwrap_or(0);
                let Ok(name) = HeaderName::from_bytes(&line[..colon]) else {
                    continue;
                };
                (name, &line[colon + 1..])
            }
        };
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(name, value);
        }
    }
    headers
}

fuzz_target!(|input: &[u8]| {
    let headers = headers(input);
    let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let said = ServerLimits::read(&headers, now);
    let is_wait = |wait: Duration| wait <= ServerLimits::MAX_WAIT;
    assert!(said.retry_after.is_none_or(is_wait));
    assert!(said.limits.len() <= ServerLimits::MAX_LIMITS);
    for limit in &said.limits {
        assert!(limit.name.len() <= ServerLimits::MAX_NAME);
        assert!(limit.reset.is_none_or(is_wait));
        assert!(limit.window.is_none_or(|window| window <= ServerLimits::MAX_WINDOW));
        for number in [limit.quota, limit.remaining].into_iter().flatten() {
            assert!(number <= ServerLimits::MAX_PERMITS);
        }
        let key = limit.partition.as_ref();
        assert!(key.is_none_or(|key| key.len() <= ServerLimits::MAX_NAME));
    }
});
