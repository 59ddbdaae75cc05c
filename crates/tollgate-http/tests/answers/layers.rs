//! Answers that pass several layers.

use std::time::Duration;

use http::HeaderMap;
use tollgate::{Denied, Quota};
use tollgate_http::{Answers, Fields, LimitState, Refusal};

use crate::states::granted;
use crate::{lines, now};

/// Writes the fields of two layers, of which the inner one has fewer permits left or not.
fn both(fields: Fields, inner: u64, outer: u64) -> Vec<String> {
    let mut headers = HeaderMap::new();
    let answers = Answers::new().fields(fields);
    for (name, left) in [("inner", inner), ("outer", outer)] {
        let quota = Quota::per_minute(100 + left);
        let limit = granted(name, quota, left, Duration::from_secs(left));
        answers.write_at([limit].into_iter(), now(), &mut headers);
    }
    lines(&headers)
}

#[test]
fn lists_get_another_line() {
    assert_eq!(
        both(Fields::LIST, 5, 50),
        [
            r#"ratelimit-policy: "inner";q=105;w=60"#,
            r#"ratelimit-policy: "outer";q=150;w=60"#,
            r#"ratelimit: "inner";r=5;t=5"#,
            r#"ratelimit: "outer";r=50;t=50"#,
        ]
    );
}

#[test]
fn a_single_limit_is_that_of_the_tighter_layer() {
    for (inner, outer, left) in [(5, 50, 5), (50, 5, 5), (7, 7, 7)] {
        let expected = |line: &str| line.to_owned();
        assert_eq!(
            both(Fields::X_SECONDS, inner, outer),
            [
                format!("x-ratelimit-limit: {}", 100 + left),
                format!("x-ratelimit-remaining: {left}"),
                format!("x-ratelimit-reset: {left}"),
            ]
        );
        let triple = both(Fields::TRIPLE, inner, outer);
        assert!(
            triple.contains(&format!("ratelimit-remaining: {left}")),
            "{triple:?}"
        );
        assert!(
            triple.contains(&format!("ratelimit-limit: {}", 100 + left)),
            "{triple:?}"
        );
        let spring = both(Fields::SPRING, inner, outer);
        assert!(spring.contains(&format!("x-ratelimit-burst-capacity: {}", 100 + left)));
        let dictionary = both(Fields::DICTIONARY, inner, outer);
        let member = format!(
            "ratelimit: limit={}, remaining={left}, reset={left}",
            100 + left
        );
        assert!(dictionary.contains(&expected(&member)), "{dictionary:?}");
    }
}

#[test]
fn the_limit_that_refused_is_kept_whatever_outer_layers_have_left() {
    for fields in [Fields::X_SECONDS, Fields::TRIPLE, Fields::DICTIONARY] {
        let answers = Answers::new().fields(fields);
        let denied = Denied::later(5, Duration::from_secs(60));
        // It has 3 permits left, and the request asked for 5.
        let limits = [LimitState::of_rate("inner", Quota::per_minute(5)).denied(&denied, 3)];
        let refusal = Refusal::of_denied(&denied).limits(&limits);
        let mut refused = answers.refuse_at(&refusal, now());
        let inner = lines(refused.headers());
        let outer = granted("outer", Quota::per_minute(100), 0, Duration::from_secs(1));
        answers.write_at([outer].into_iter(), now(), refused.headers_mut());
        let is_policy = |line: &String| line.starts_with("ratelimit-policy");
        let mut both = lines(refused.headers());
        both.retain(|line| !is_policy(line));
        let inner: Vec<_> = inner.into_iter().filter(|line| !is_policy(line)).collect();
        assert_eq!(both, inner, "{fields:?}");
    }
}

#[test]
fn a_full_map_of_headers_stays_as_it_is() {
    let mut headers = HeaderMap::new();
    for number in 0.. {
        let name = http::HeaderName::try_from(format!("x-{number}")).expect("a name");
        if headers
            .try_append(name, http::HeaderValue::from(0))
            .is_err()
        {
            break;
        }
    }
    let before = headers.len();
    let all = Fields::LIST | Fields::TRIPLE | Fields::X_EPOCH | Fields::SPRING;
    let limit = granted("a", Quota::per_minute(9), 8, Duration::from_secs(7));
    let answers = Answers::new().fields(all);
    answers.write_at([limit].into_iter(), now(), &mut headers);
    assert_eq!(headers.len(), before);
}

#[test]
fn what_another_server_wrote_is_no_obstacle() {
    for old in ["-1", "many", "", "18446744073709551616"] {
        let mut headers = HeaderMap::new();
        for name in ["x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit"] {
            headers.insert(name, old.parse().expect("a value"));
        }
        let limit = granted("a", Quota::per_minute(9), 8, Duration::from_secs(7));
        let fields = Fields::X_SECONDS | Fields::DICTIONARY;
        let answers = Answers::new().fields(fields);
        answers.write_at([limit].into_iter(), now(), &mut headers);
        assert_eq!(headers["x-ratelimit-remaining"], "8", "{old}");
        assert_eq!(headers["x-ratelimit-reset"], "7", "{old}");
        assert_eq!(
            headers["ratelimit"], "limit=9, remaining=8, reset=7",
            "{old}"
        );
    }
}
