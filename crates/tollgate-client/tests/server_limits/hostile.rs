//! Any fields of any length: no panic, and no more than the caps.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::collection::vec;
use proptest::prelude::*;
use tollgate_client::ServerLimits;

use crate::{lines, now, read};

const NAMES: [&str; 16] = [
    "date",
    "retry-after",
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
    "x-ratelimit-replenish-rate",
    "x-ratelimit-burst-capacity",
    "x-ratelimit-interval-seconds",
    "x-ratelimit-bucket",
];

/// The length of a long value.
const LONG: usize = if cfg!(debug_assertions) {
    100_000
} else {
    1_000_000
};

/// Checks that what is read is within the caps.
fn check(headers: &HeaderMap) -> ServerLimits {
    let said = ServerLimits::read(headers, now());
    let is_wait = |wait: Duration| wait <= ServerLimits::MAX_WAIT;
    assert!(said.retry_after.is_none_or(is_wait));
    assert!(said.limits.len() <= ServerLimits::MAX_LIMITS);
    for limit in &said.limits {
        assert!(limit.name.len() <= ServerLimits::MAX_NAME);
        assert!(limit.reset.is_none_or(is_wait));
        assert!(
            limit
                .window
                .is_none_or(|window| window <= ServerLimits::MAX_WINDOW)
        );
        for number in [limit.quota, limit.remaining].into_iter().flatten() {
            assert!(number <= ServerLimits::MAX_PERMITS);
        }
        let key = limit.partition.as_ref();
        assert!(key.is_none_or(|key| key.len() <= ServerLimits::MAX_NAME));
    }
    said
}

#[test]
fn at_most_64_limits_are_read() {
    let list = |field: &str, range: std::ops::Range<u32>| {
        let members: Vec<_> = range.map(|n| format!("\"n{n}\";{field}={n}")).collect();
        members.join(",")
    };
    let states = list("r", 0..100);
    let said = read(&[
        ("ratelimit", &states),
        ("ratelimit-policy", &list("q", 36..200)),
    ]);
    assert_eq!(said.limits.len(), 64);
    assert_eq!(said.limits[63].name, "n63");
    assert_eq!(
        (said.limits[36].quota, said.limits[35].quota),
        (Some(36), None)
    );
    // Lines count together.
    let lines: Vec<_> = (0..100)
        .map(|n| ("ratelimit", format!("\"n{n}\";r={n}")))
        .collect();
    let lines: Vec<_> = lines
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    assert_eq!(read(&lines).limits.len(), 64);
    let mut names = HeaderMap::new();
    for n in 0..100 {
        let name = format!("x-ratelimit-remaining-{n}");
        names.insert(
            HeaderName::try_from(name).expect("a name"),
            HeaderValue::from(n),
        );
    }
    assert_eq!(check(&names).limits.len(), 64);
}

#[test]
fn long_names_and_keys_are_ignored() {
    let name = |length: usize| "n".repeat(length);
    let state = |text: String| lines(&read(&[("ratelimit", &text)]));
    assert_eq!(state(format!("\"{}\";r=1", name(256))).len(), 1);
    assert_eq!(state(format!("{};r=1", name(256))).len(), 1);
    assert!(state(format!("\"{}\";r=1", name(257))).is_empty());
    assert!(state(format!("{};r=1", name(257))).is_empty());
    // An escaped character is one.
    assert_eq!(state(format!("\"{}\";r=1", "\\\"".repeat(256))).len(), 1);
    assert!(state(format!("\"{}\";r=1", "\\\"".repeat(257))).is_empty());
    let key = |text: &str| {
        let said = read(&[("ratelimit", &format!("\"a\";r=1;pk=:{text}:"))]);
        said.limits[0].partition.clone().map(|key| key.len())
    };
    assert_eq!(key(&("AAAA".repeat(85) + "AA")), Some(256));
    assert_eq!(key(&("AAAA".repeat(85) + "AAA")), None);
    assert_eq!(key(&"AAAA".repeat(100)), None);
    for bucket in [256, 257] {
        let said = read(&[
            ("x-ratelimit-bucket", &name(bucket)),
            ("x-ratelimit-limit", "1"),
        ]);
        assert_eq!(
            said.limits[0].name.len(),
            if bucket == 256 { 256 } else { 0 }
        );
    }
}

#[test]
fn numbers_and_times_are_capped() {
    let most = "999999999999999";
    let said = read(&[
        ("ratelimit-policy", &format!("\"a\";q={most};w={most}")),
        ("ratelimit", &format!("\"a\";r={most};t={most}")),
        ("x-ratelimit-limit", "99999999999999999999999999"),
        ("x-ratelimit-remaining", "99999999999999999999999999"),
        ("retry-after", "1000000"),
    ]);
    assert_eq!(said.retry_after, Some(ServerLimits::MAX_WAIT));
    let limit = &said.limits[0];
    assert_eq!(
        (limit.quota, limit.remaining),
        (Some(ServerLimits::MAX_PERMITS), limit.quota)
    );
    assert_eq!(limit.window, Some(ServerLimits::MAX_WINDOW));
    assert_eq!(limit.reset, Some(ServerLimits::MAX_WAIT));
    let far = read(&[("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT")]);
    assert_eq!(far.retry_after, Some(ServerLimits::MAX_WAIT));
    let rate = [
        ("x-ratelimit-burst-capacity", most),
        ("x-ratelimit-replenish-rate", "1"),
        ("x-ratelimit-interval-seconds", most),
    ];
    assert_eq!(read(&rate).limits[0].window, Some(ServerLimits::MAX_WINDOW));
    // A rate of zero has no window.
    let rate = [
        ("x-ratelimit-burst-capacity", "5"),
        ("x-ratelimit-replenish-rate", "0"),
    ];
    assert_eq!(read(&rate).limits[0].window, None);
}

#[test]
fn ten_thousand_lines_and_long_values_are_read_or_ignored() {
    let mut headers = HeaderMap::new();
    for n in 0..10_000 {
        let name = HeaderName::from_static(NAMES[n % NAMES.len()]);
        headers.append(name, HeaderValue::from_static("\"a\";r=5,,;,\"\\"));
    }
    check(&headers);
    for text in [
        "\"",
        "a;",
        ",",
        "\\\"",
        "9",
        ":A",
        "(",
        "1h",
        "\"a\";r=1,",
        " ",
        ";r=1",
        "1,",
    ] {
        let long = text.repeat(LONG / text.len());
        for name in NAMES {
            let mut headers = HeaderMap::new();
            let value = HeaderValue::from_str(&long).expect("a value");
            headers.insert(name, value);
            check(&headers);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_ignored(
        fields in vec((0..NAMES.len(), vec(any::<u8>(), 0..60)), 0..8),
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.append(NAMES[name], value);
            }
        }
        check(&headers);
    }

    #[test]
    fn almost_well_formed_text_is_read_or_ignored(
        fields in vec((0..NAMES.len(), "[\"\\\\,;=:?@%()a-c0-9. +TZhms-]{0,40}"), 0..8),
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(NAMES[name], HeaderValue::from_str(&value).expect("ASCII"));
        }
        check(&headers);
    }
}
