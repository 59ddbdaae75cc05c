//! Answers that pass several layers.

use std::time::Duration;

use http::HeaderMap;
use tollgate::Quota;
use tollgate_http::{Answers, Fields};

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
