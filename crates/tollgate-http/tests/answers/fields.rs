//! What each generation writes, byte by byte.

use std::time::Duration;

use tollgate::{Denied, Quota};
use tollgate_http::{Answers, Cause, Fields, LimitState, Refusal, Unit};

use crate::states::{denied, granted};
use crate::{lines, now, written};

const SECOND: Duration = Duration::from_secs(1);

/// A burst of which half is left, and a quota for the day.
fn two() -> [LimitState<'static>; 2] {
    let burst = Quota::per_minute(100);
    let day = Quota::per_day(1000);
    [
        granted("burst", burst, 50, 30 * SECOND),
        granted("daily", day, 999, Duration::from_millis(86_399_001)),
    ]
}

#[test]
fn drafts_08_to_11_list_all_limits() {
    assert_eq!(
        lines(&written(Fields::LIST, &two())),
        [
            r#"ratelimit-policy: "burst";q=100;w=60, "daily";q=1000;w=86400"#,
            r#"ratelimit: "burst";r=50;t=30, "daily";r=999;t=86400"#,
        ]
    );
}

#[test]
fn draft_07_has_the_tightest_limit_and_all_policies() {
    assert_eq!(
        lines(&written(Fields::DICTIONARY, &two())),
        [
            "ratelimit-policy: 100;w=60, 1000;w=86400",
            "ratelimit: limit=100, remaining=50, reset=30",
        ]
    );
}

#[test]
fn drafts_00_to_06_have_three_fields() {
    assert_eq!(
        lines(&written(Fields::TRIPLE, &two())),
        [
            "ratelimit-limit: 100",
            "ratelimit-policy: 100;w=60, 1000;w=86400",
            "ratelimit-remaining: 50",
            "ratelimit-reset: 30",
        ]
    );
}

#[test]
fn fields_with_an_x_have_seconds_or_a_time() {
    let both = |reset: &str| {
        [
            "x-ratelimit-limit: 100".to_owned(),
            "x-ratelimit-remaining: 50".to_owned(),
            format!("x-ratelimit-reset: {reset}"),
        ]
    };
    assert_eq!(lines(&written(Fields::X_SECONDS, &two())), both("30"));
    assert_eq!(lines(&written(Fields::X_EPOCH, &two())), both("1700000030"));
    // A time before 1970 has no number of seconds.
    let mut headers = http::HeaderMap::new();
    let before = std::time::UNIX_EPOCH - SECOND;
    let answers = Answers::new().fields(Fields::X_EPOCH);
    answers.write_at(two().into_iter(), before, &mut headers);
    assert_eq!(lines(&headers), both("30"));
}

#[test]
fn a_time_is_rounded_up() {
    let limits = [granted(
        "a",
        Quota::per_second(1),
        0,
        Duration::from_nanos(1),
    )];
    let mut headers = http::HeaderMap::new();
    let answers = Answers::new().fields(Fields::X_EPOCH);
    let now = now() + Duration::from_nanos(999_999_999);
    answers.write_at(limits.into_iter(), now, &mut headers);
    assert_eq!(headers["x-ratelimit-reset"], "1700000001");
    let now = now + Duration::from_nanos(1);
    answers.write_at(limits.into_iter(), now, &mut headers);
    assert_eq!(headers["x-ratelimit-reset"], "1700000002");
}

#[test]
fn springs_fields_have_its_parameters() {
    let limits = [granted("a", Quota::per_second(10).burst(20), 15, SECOND)];
    let spring = lines(&written(Fields::SPRING, &limits));
    assert_eq!(
        spring,
        [
            "x-ratelimit-burst-capacity: 20",
            "x-ratelimit-remaining: 15",
            "x-ratelimit-replenish-rate: 10",
            "x-ratelimit-requested-tokens: 1",
        ]
    );
    // The rate is rounded down.
    for (quota, rate) in [
        (Quota::per_minute(59), "0"),
        (Quota::per_minute(119), "1"),
        (Quota::per(1, Duration::from_nanos(1)), "1000000000"),
        (
            Quota::per(u64::MAX, Duration::from_nanos(1)),
            "999999999999999",
        ),
    ] {
        let headers = written(Fields::SPRING, &[granted("a", quota, 0, SECOND)]);
        assert_eq!(headers["x-ratelimit-replenish-rate"], rate, "{quota}");
    }
    let headers = written(Fields::SPRING, &[LimitState::of_concurrency("a", 5)]);
    assert!(!headers.contains_key("x-ratelimit-replenish-rate"));
}

#[test]
fn the_first_of_two_generations_with_the_same_fields_is_written() {
    let list = lines(&written(Fields::LIST, &two()));
    assert_eq!(
        lines(&written(Fields::LIST | Fields::DICTIONARY, &two())),
        list
    );
    let x = lines(&written(Fields::X_SECONDS, &two()));
    assert_eq!(
        lines(&written(Fields::X_SECONDS | Fields::X_EPOCH, &two())),
        x
    );
}

#[test]
fn generations_can_be_combined() {
    let all = Fields::LIST | Fields::TRIPLE | Fields::X_SECONDS | Fields::SPRING;
    let headers = written(all, &two());
    assert_eq!(headers.len(), 2 + 3 + 3 + 3);
    assert_eq!(
        headers["ratelimit"],
        r#""burst";r=50;t=30, "daily";r=999;t=86400"#
    );
    assert_eq!(headers["ratelimit-remaining"], "50");
    assert_eq!(headers["x-ratelimit-reset"], "30");
    assert_eq!(headers["x-ratelimit-burst-capacity"], "100");
    assert_eq!(format!("{all:?}"), "LIST | TRIPLE | X_SECONDS | SPRING");
}

#[test]
fn without_fields_or_limits_nothing_is_written() {
    assert!(written(Fields::OFF, &two()).is_empty());
    assert!(!Answers::new().has_fields());
    for fields in [
        Fields::LIST,
        Fields::DICTIONARY,
        Fields::TRIPLE,
        Fields::SPRING,
    ] {
        assert!(Answers::new().fields(fields).has_fields());
        assert!(written(fields, &[]).is_empty(), "{fields:?}");
    }
}

#[test]
fn units_and_partitions_are_parameters() {
    let bytes = granted("bytes", Quota::per_second(1000), 600, SECOND)
        .unit(Unit::ContentBytes)
        .partition(b"ann?");
    let inside = LimitState::of_concurrency("inside", 8);
    assert_eq!(
        lines(&written(Fields::LIST, &[bytes, inside])),
        [
            concat!(
                r#"ratelimit-policy: "bytes";q=1000;qu="content-bytes";w=1;pk=:YW5uPw==:, "#,
                r#""inside";q=8;qu="concurrent-requests""#
            ),
            r#"ratelimit: "bytes";r=600;t=1;pk=:YW5uPw==:, "inside";r=8"#,
        ]
    );
    let empty = bytes.partition(b"");
    let headers = written(Fields::LIST, &[empty]);
    assert_eq!(headers["ratelimit"], r#""bytes";r=600;t=1;pk=::"#);
}

#[test]
fn names_are_printable_and_each_is_different() {
    let long = "n".repeat(300);
    let cut = format!("\"{}\"", "n".repeat(256));
    for (names, expected) in [
        (&["a", "a", "a"][..], &["\"a\"", "\"a-2\"", "\"a-3\""][..]),
        // A name that another limit got is taken.
        (&["a", "a", "a-2"], &["\"a\"", "\"a-2\"", "\"a-2-2\""]),
        (&["a-2", "a", "a"], &["\"a-2\"", "\"a\"", "\"a-3\""]),
        (&[r#"say "hi""#, r"a\b"], &[r#""say \"hi\"""#, r#""a\\b""#]),
        (&["größe\n", "gr\u{7f}"], &["\"gr__e_\"", "\"gr_\""]),
        (&["é", "ü"], &["\"_\"", "\"_-2\""]),
        (&["", ""], &["\"\"", "\"-2\""]),
        (&[&long], &[&cut]),
    ] {
        let quota = Quota::per_second(1);
        let limits: Vec<_> = names
            .iter()
            .map(|name| granted(name, quota, 1, SECOND))
            .collect();
        let headers = written(Fields::LIST, &limits);
        let list = |rest: &str| {
            let members: Vec<_> = expected
                .iter()
                .map(|name| format!("{name}{rest}"))
                .collect();
            members.join(", ")
        };
        assert_eq!(headers["ratelimit"], list(";r=1;t=1"), "{names:?}");
        assert_eq!(headers["ratelimit-policy"], list(";q=1;w=1"), "{names:?}");
    }
}

/// A policy may have hundreds of limits, and proxies refuse answers with long headers.
#[test]
fn a_list_has_the_16_tightest_limits() {
    let quota = Quota::per_second(1000);
    let names: Vec<_> = (0..300).map(|number| format!("limit {number}")).collect();
    let limits = |count: u64| -> Vec<_> {
        let named = names.iter().zip(0..count);
        named
            .map(|(name, number)| match number {
                // Fewer are left of the later ones.
                7 => denied(name, quota, 900, SECOND),
                _ => granted(name, quota, 999 - number, SECOND),
            })
            .collect()
    };
    let listed = |count: u64| {
        let headers = written(Fields::LIST, &limits(count));
        ["ratelimit", "ratelimit-policy"].map(|field| {
            let members = headers[field].to_str().unwrap().split(", ");
            let names = members.map(|member| member.split('"').nth(1).unwrap().to_owned());
            names.collect::<Vec<_>>()
        })
    };
    assert_eq!(listed(16), [&names[..16], &names[..16]]);
    // The one that denies, and of the others those with the fewest permits left, in their order.
    let tightest = [&names[7..8], &names[285..300]].concat();
    assert_eq!(listed(300), [&tightest[..], &tightest[..]]);
    // Long names, and a concurrency that is full.
    let long: Vec<_> = (0..16).map(|number| format!("{number:0200}")).collect();
    let full = LimitState::of_concurrency("full", 8).untouched(1, 0);
    let mut states: Vec<_> = long
        .iter()
        .map(|name| granted(name, quota, 5, SECOND))
        .collect();
    states.push(full);
    let headers = written(Fields::LIST, &states);
    let list = headers["ratelimit"].to_str().unwrap();
    assert_eq!(list.split(", ").count(), 3);
    assert!(list.ends_with("\"full\";r=0"), "{list}");
    let len = |field: &str| written(Fields::LIST, &limits(300))[field].len();
    assert!(len("ratelimit") + len("ratelimit-policy") < 1000);
}

#[test]
fn numbers_are_at_most_those_of_structured_fields() {
    let most = 999_999_999_999_999_u64;
    let quota = Quota::per(1, Duration::MAX).burst(u64::MAX);
    let limits = [denied("a", quota, u64::MAX, Duration::MAX)];
    let all = Fields::LIST | Fields::TRIPLE | Fields::X_SECONDS | Fields::SPRING;
    let refusal = Refusal::new(Cause::Limit)
        .retry_after(Duration::MAX)
        .limits(&limits);
    let answer = Answers::new().fields(all).refuse(&refusal);
    let headers = answer.headers();
    assert_eq!(
        headers["ratelimit-policy"],
        format!("\"a\";q={most};w={most}")
    );
    assert_eq!(headers["ratelimit"], format!("\"a\";r={most};t={most}"));
    for name in [
        "retry-after",
        "ratelimit-limit",
        "ratelimit-remaining",
        "ratelimit-reset",
        "x-ratelimit-burst-capacity",
    ] {
        assert_eq!(headers[name], most.to_string(), "{name}");
    }
    // Two quotas that are written as the same number are one.
    let other = granted("b", quota.burst(u64::MAX - 1), 0, SECOND);
    let headers = written(Fields::DICTIONARY, &[limits[0], other]);
    assert_eq!(headers["ratelimit-policy"], format!("{most};w={most}"));
}

#[test]
fn a_quota_has_one_policy_in_draft_07() {
    let limits = [
        granted("a", Quota::per_second(10), 9, SECOND),
        granted("b", Quota::per_minute(10), 9, 6 * SECOND),
        granted("c", Quota::per_minute(10), 9, 6 * SECOND),
        granted("d", Quota::per_minute(20), 19, 3 * SECOND),
        LimitState::of_concurrency("e", 30),
    ];
    let headers = written(Fields::DICTIONARY, &limits);
    assert_eq!(headers["ratelimit-policy"], "10;w=60, 20;w=60");
}

#[test]
fn a_field_with_one_limit_has_the_tightest() {
    let quota = |n| Quota::per_minute(n);
    let waits = |name, n, wait: u64| denied(name, quota(n), 3, SECOND * wait as u32);
    let busy = LimitState::of_concurrency("busy", 2).denied(&Denied::busy(1), 0);
    let untouched = LimitState::of_rate("other", quota(1)).untouched(1, 0);
    for (limits, expected) in [
        // The one with the fewest permits left, whatever its quota.
        (&two()[..], "limit=100, remaining=50, reset=30"),
        // One that denies, even if another one has fewer left.
        (
            &[untouched, waits("a", 5, 7)],
            "limit=5, remaining=3, reset=7",
        ),
        // The longest wait.
        (
            &[waits("a", 5, 7), waits("b", 6, 9), waits("c", 7, 8)],
            "limit=6, remaining=3, reset=9",
        ),
        // A known wait before one that is not known.
        (&[busy, waits("a", 5, 7)], "limit=5, remaining=3, reset=7"),
        (&[untouched, busy], "limit=2, remaining=0"),
        // A rate before a concurrency, which has no reset.
        (
            &[LimitState::of_concurrency("x", 1), two()[0]],
            "limit=100, remaining=50, reset=30",
        ),
        (
            &[LimitState::of_concurrency("x", 4)],
            "limit=4, remaining=4",
        ),
    ] {
        let headers = written(Fields::DICTIONARY, limits);
        assert_eq!(headers["ratelimit"], expected, "{limits:?}");
    }
}

#[test]
fn what_is_not_known_is_left_out() {
    let unknown = LimitState::of_rate("a", Quota::per_second(1)).untouched(1, 1);
    let all = Fields::LIST | Fields::TRIPLE | Fields::X_SECONDS;
    let headers = written(all, &[unknown]);
    assert_eq!(headers["ratelimit"], "\"a\";r=1");
    assert!(!headers.contains_key("ratelimit-reset"));
    assert!(!headers.contains_key("x-ratelimit-reset"));
    assert!(!headers.contains_key("retry-after"));
}

#[test]
fn retry_after_is_at_least_a_second_and_every_wait() {
    let retry_after = |refusal: &Refusal<'_>| {
        let answer = Answers::new().refuse(refusal);
        let field = answer.headers().get("retry-after").cloned();
        field.map(|value| value.to_str().expect("digits").to_owned())
    };
    let limit = Refusal::new(Cause::Limit);
    for (wait, expected) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (1999, "2")] {
        let wait = Duration::from_millis(wait);
        assert_eq!(
            retry_after(&limit.retry_after(wait)).as_deref(),
            Some(expected)
        );
    }
    // A limit that was looked at after the decision may say more.
    let quota = Quota::per_second(1);
    let limits = [
        denied("a", quota, 0, 3 * SECOND),
        granted("b", quota, 0, 9 * SECOND),
        denied("c", quota, 0, 5 * SECOND),
    ];
    let refusal = limit.retry_after(4 * SECOND).limits(&limits);
    assert_eq!(refusal.wait(), Some(5 * SECOND));
    assert_eq!(retry_after(&refusal).as_deref(), Some("5"));
    // Without a known wait there is none.
    assert_eq!(retry_after(&limit.limits(&limits)), None);
    assert_eq!(retry_after(&Refusal::of_denied(&Denied::never(9, 5))), None);
}
