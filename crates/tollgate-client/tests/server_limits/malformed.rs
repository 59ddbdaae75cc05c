//! Malformed fields: what is wrong is ignored, and the rest is read.

use std::time::Duration;

use crate::{lines, read};

/// What is read of a line of `RateLimit`.
fn state(value: &str) -> Vec<String> {
    lines(&read(&[("ratelimit", value)]))
}

#[test]
fn a_malformed_member_is_ignored() {
    let good = r#""a" remaining=5 reset=3s"#;
    for bad in [
        "",
        " ",
        r#""esc\n";r=1"#,
        r#""two""words";r=1"#,
        "\"\t\";r=1",
        "\"ü\";r=1",
        r#"name with spaces;r=1"#,
        ";r=1",
        "=5",
        "(\"a\" \"b\");r=1",
        ":YQ==:;r=1x",
        "5;r=1",
        "1.5;r=1",
        "?1;r=1",
        "@1700000000;r=1",
        "%\"a\";r=1",
        "limit=many",
        "remaining=-1",
        "reset=1.5",
        "Limit=5",
        "limit =5",
        "\"a\" ;r=1",
        "{}",
    ] {
        for value in [
            format!(r#"{bad}, "a";r=5;t=3"#),
            format!(r#""a";r=5;t=3,{bad}"#),
        ] {
            assert_eq!(state(&value), [good], "{value:?}");
        }
    }
    // A string that does not end takes the rest of its line, and no other line.
    assert_eq!(state(r#""a";r=5;t=3, "open, "b";r=1"#), [good]);
    let two = [
        ("ratelimit", r#""open, "x";r=1"#),
        ("ratelimit", r#""a";r=5;t=3"#),
    ];
    assert_eq!(lines(&read(&two)), [good]);
}

#[test]
fn a_malformed_parameter_is_ignored() {
    for bad in [
        "r=",
        "r",
        "r=-1",
        "r=1.0",
        "r=1.5",
        "r=\"1\"",
        "r=one",
        "r=1000000000000000",
        "r=1 ",
        "r=+1",
        "r=1_000",
        "r=0x5",
        "R=1",
        "=1",
        "r =1",
        "r= 1",
        "\tr=1",
        "pk=YQ==",
        "pk=:Y*==:",
        "pk=:Y:",
        "pk=\"YQ==\"",
        "qu=5",
    ] {
        let expected = [r#""a" quota=5 reset=3s"#];
        assert_eq!(state(&format!("\"a\";q=5;{bad};t=3")), expected, "{bad:?}");
        if !bad.ends_with(' ') {
            assert_eq!(state(&format!("\"a\";q=5;t=3;{bad}")), expected, "{bad:?}");
        }
    }
    // What can't be read at all does not count as a value, but another kind of value does.
    assert_eq!(state(r#""a";r=5;r=1_000"#), [r#""a" remaining=5"#]);
    assert!(state(r#""a";r=5;r=?1"#).is_empty());
    // A string that does not end takes the rest.
    assert_eq!(state(r#""a";r=5;x="no, end;t=3"#), [r#""a" remaining=5"#]);
}

#[test]
fn bytes_and_display_strings_that_cannot_be_decoded_are_malformed() {
    for (bad, good) in [
        (":Y:", ":YQ==:"),
        (":YQ=Q:", ":YQ:"),
        (r#"%"%zz""#, r#"%"%c3%bc""#),
        (r#"%"ü""#, r#"%"u""#),
        (r#"%"a"b""#, r#"%"ab""#),
    ] {
        // So they do not count as a value, which a value of another kind does.
        assert_eq!(
            state(&format!("\"a\";r=5;r={bad}")),
            [r#""a" remaining=5"#],
            "{bad}"
        );
        assert!(state(&format!("\"a\";r=5;r={good}")).is_empty(), "{good}");
        let keyed = state(&format!("\"a\";r=5;pk=:YQ==:;pk={bad}"));
        assert_eq!(keyed, [r#""a" remaining=5 partition="a""#], "{bad}");
    }
}

#[test]
fn of_a_parameter_that_comes_twice_the_last_one_counts() {
    assert_eq!(state(r#""a";r=5;r=6"#), [r#""a" remaining=6"#]);
    assert_eq!(
        state("limit=5, limit=6, reset=1"),
        [r#""" quota=6 reset=1s"#]
    );
}

#[test]
fn strings_and_white_space_are_read_as_the_rfc_says() {
    let commas = r#""a, b; c=\"d\" \\e";r=5"#;
    assert_eq!(state(commas), [r#""a, b; c=\"d\" \\e" remaining=5"#]);
    assert_eq!(
        state("\"a\";  r=5\t ,\t\"b\";r=6"),
        [r#""a" remaining=5"#, r#""b" remaining=6"#]
    );
    assert_eq!(state(r#"tok/en:*;r=5"#), [r#""tok/en:*" remaining=5"#]);
    assert_eq!(state("\"a\";r=000000000000005"), [r#""a" remaining=5"#]);
    assert_eq!(state("\"a\";r=-0"), [r#""a" remaining=0"#]);
    // Parsers are asked to read base64 without padding, and with bits that are left over.
    for key in [":YQ==:", ":YQ:", ":YR==:"] {
        assert_eq!(
            state(&format!("\"a\";r=5;pk={key}")),
            [r#""a" remaining=5 partition="a""#]
        );
    }
}

#[test]
fn a_policy_without_a_known_parameter_says_nothing() {
    let policy = |value| lines(&read(&[("ratelimit-policy", value)]));
    assert!(policy(r#""a";w=x, "b", token, 5x;w=1, -5;w=1"#).is_empty());
    assert_eq!(policy("5"), [r#""" quota=5"#]);
    assert_eq!(policy(r#""a";w=60"#), [r#""a" window=60s"#]);
    // Units that are not registered are permits.
    assert_eq!(policy(r#""a";q=1;qu="points""#), [r#""a" quota=1"#]);
    assert_eq!(
        policy(r#""a";q=1;qu=content-bytes"#),
        [r#""a" quota=1 unit=ContentBytes"#]
    );
}

#[test]
fn a_number_that_is_none_is_ignored() {
    for bad in [
        "", " ", "-", ".", "1.", ".5", "1,5x", "1e3", "0x10", "∞", "+5", "five", "-5x", "NaN",
    ] {
        let fields = [
            ("x-ratelimit-limit", bad),
            ("x-ratelimit-remaining", bad),
            ("x-ratelimit-reset", bad),
        ];
        let found = lines(&read(&fields));
        // Of a list the first member counts.
        let expected: &[&str] = if bad == "1,5x" {
            &[r#""" quota=1 remaining=1 reset=1s"#]
        } else {
            &[]
        };
        assert_eq!(found, expected, "{bad:?}");
    }
}

#[test]
fn the_first_line_that_can_be_read_counts() {
    let fields = [
        ("x-ratelimit-remaining", "none"),
        ("x-ratelimit-remaining", "7"),
        ("x-ratelimit-remaining", "9"),
    ];
    assert_eq!(lines(&read(&fields)), [r#""" remaining=7"#]);
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    let retry_after = |value| read(&[("retry-after", value)]).retry_after;
    for (value, millis) in [
        ("0", 0),
        ("12", 12_000),
        (" 12 ", 12_000),
        ("0012", 12_000),
        ("1.5", 1500),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60_000),
        ("Tuesday, 14-Nov-23 22:14:20 GMT", 60_000),
        ("Tue Nov 14 22:14:20 2023", 60_000),
        // It has passed.
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
    ] {
        assert_eq!(
            retry_after(value),
            Some(Duration::from_millis(millis)),
            "{value}"
        );
    }
    for value in [
        "",
        "-1",
        "soon",
        "12 s",
        "12s",
        "1e3",
        "2023-11-14",
        "Tue, 14 Nov 2023 22:14:20",
        "Tue, 14 Nov 2023 22:14:20 CET",
        "Tue, 40 Nov 2023 22:14:20 GMT",
        "1, 2",
    ] {
        assert_eq!(retry_after(value), None, "{value}");
    }
    // Of several, the longest.
    let several = [
        ("retry-after", "5"),
        ("retry-after", "9"),
        ("retry-after", "x"),
    ];
    assert_eq!(read(&several).retry_after, Some(Duration::from_secs(9)));
}
