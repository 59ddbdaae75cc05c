//! Quotas as text: any text at all is a quota or an error that points at the offending part, and
//! every quota that has a text is read back from it.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{ParseQuotaError, Quota};

/// What is wrong with the text: the part, where it begins, and why.
fn wrong(text: &str) -> (String, usize, String) {
    let error = text.parse::<Quota>().expect_err(text);
    check_error(text, error);
    let span = error.span();
    (
        text[span.clone()].to_string(),
        span.start,
        error.to_string(),
    )
}

/// Whether the error points into the text, and says where.
fn check_error(text: &str, error: ParseQuotaError) {
    let span = error.span();
    let part = text.get(span.clone());
    assert!(part.is_some(), "{span:?} is no part of {text:?}");
    let start = format!("at byte {}: ", span.start);
    assert!(error.to_string().starts_with(&start), "{text:?}: {error}");
}

#[test]
fn errors_point_at_the_offending_part() {
    let cases = [
        // The text, the part, where it begins, and what the message says.
        ("", "", 0, "the text ends where a number must stand"),
        ("   ", "", 3, "the text ends where a number must stand"),
        ("many/s", "many/s", 0, "where a number must stand"),
        ("-1/s", "-1/s", 0, "where a number must stand"),
        ("٣/s", "٣/s", 0, "where a number must stand"),
        ("_1/s", "_1/s", 0, "where a number must stand"),
        (
            "18446744073709551616/s",
            "18446744073709551616",
            0,
            "is too large",
        ),
        ("10", "", 2, "the text ends where a `/` must stand"),
        ("10 per s", "per", 3, "where a `/` must stand"),
        ("1.5/s", ".5/s", 1, "where a `/` must stand"),
        (
            "10/",
            "",
            3,
            "the text ends where a unit of time must stand",
        ),
        (
            "10/250",
            "",
            6,
            "the text ends where a unit of time must stand",
        ),
        ("10/-5s", "-5s", 3, "where a unit of time must stand"),
        ("10/1.5s", ".5s", 4, "where a unit of time must stand"),
        ("10/S", "S", 3, "is no unit of time"),
        ("10/2 weeks", "weeks", 5, "is no unit of time"),
        ("10/sburst 5", "sburst", 3, "is no unit of time"),
        ("1/99999999999d", "99999999999d", 2, "is too long"),
        (
            "1/18446744073709551616ns",
            "18446744073709551616",
            2,
            "is too large",
        ),
        ("10/s 20", "20", 5, "is not known here"),
        ("10/s bursts 20", "bursts", 5, "is not known here"),
        ("10/s, burst 20", ",", 4, "is not known here"),
        (
            "10/s burst",
            "",
            10,
            "the text ends where a number must stand",
        ),
        ("10/s burst -3", "-3", 11, "where a number must stand"),
        (
            "10/s burst x initial 3",
            "x",
            11,
            "where a number must stand",
        ),
        (
            "10/s burst 5 burst 6",
            "burst",
            13,
            "stands here for the second time",
        ),
        (
            "10/s initial 5 initial 6",
            "initial",
            15,
            "stands here for the second time",
        ),
        ("10/s burst 5 🦀🦀 6", "🦀🦀", 13, "is not known here"),
    ];
    for (text, part, start, why) in cases {
        let (found, at, message) = wrong(text);
        assert_eq!((found.as_str(), at), (part, start), "{text:?}: {message}");
        assert!(message.contains(why), "{text:?}: {message}");
        assert!(message.contains(part), "{text:?}: {message}");
    }
}

#[test]
fn a_long_part_is_shown_in_part() {
    let text = "é".repeat(1000);
    let (part, _, message) = wrong(&text);
    assert_eq!(part, text);
    assert!(
        message.contains(&format!("`{}...`", "é".repeat(12))),
        "{message}"
    );
}

#[test]
fn texts_mean_what_they_say() {
    let ms = Duration::from_millis;
    let cases = [
        (
            "100/s burst 20",
            Quota::per_second(100).burst(20),
            "100/s burst 20",
        ),
        ("5000/h", Quota::per_hour(5000), "5000/h"),
        ("10/250ms", Quota::per(10, ms(250)), "10/250ms"),
        (
            "1/min initial 0",
            Quota::per_minute(1).initial(0),
            "1/min initial 0",
        ),
        (
            " 1_000 / 1 sec\tburst 1_0 ",
            Quota::per_second(1000).burst(10),
            "1000/s burst 10",
        ),
        (
            "7/hour initial 3 burst 9",
            Quota::per_hour(7).burst(9).initial(3),
            "7/h burst 9 initial 3",
        ),
        ("1/90s", Quota::per(1, ms(90_000)), "1/90s"),
        ("1/120s", Quota::per(1, ms(120_000)), "1/2min"),
        ("2/day burst 2 initial 2", Quota::per_day(2), "2/d"),
        ("2/3µs", Quota::per(2, Duration::from_micros(3)), "2/3us"),
        ("0/0s", Quota::per(0, Duration::ZERO), "0/0ns"),
    ];
    for (text, quota, written) in cases {
        assert_eq!(text.parse(), Ok(quota), "{text:?}");
        assert_eq!(quota.to_string(), written, "{text:?}");
    }
}

#[test]
fn a_period_beyond_its_text_is_an_error_and_no_panic() {
    for period in [
        Duration::from_nanos(u64::MAX) + Duration::from_nanos(1),
        Duration::MAX,
    ] {
        let text = Quota::per(1, period).to_string();
        wrong(&text);
    }
}

/// Any quota whose period a text can hold.
fn quotas() -> impl Strategy<Value = Quota> {
    let number = || (any::<u64>(), 0..64_u32).prop_map(|(n, bits)| n >> bits);
    let unit = prop::sample::select(vec![
        1,
        1000,
        1_000_000_000,
        60_000_000_000,
        3_600_000_000_000,
    ]);
    let period = (number(), unit).prop_map(|(count, unit)| match u64::checked_mul(count, unit) {
        Some(ns) => Duration::from_nanos(ns),
        None => Duration::from_nanos(count),
    });
    let option = || prop::option::of(number());
    (number(), period, option(), option()).prop_map(|(n, period, burst, initial)| {
        let quota = Quota::per(n, period);
        let quota = burst.map_or(quota, |burst| quota.burst(burst));
        initial.map_or(quota, |initial| quota.initial(initial))
    })
}

/// Words of the language in any order.
fn soup() -> impl Strategy<Value = String> {
    let words = [
        "0",
        "1",
        "18446744073709551615",
        "99999999999999999999",
        "7_",
        "_7",
        "/",
        " ",
        "\t",
        "s",
        "ns",
        "µs",
        "min",
        "d",
        "day",
        "burst",
        "initial",
        "-",
        ".",
        "🦀",
        "\u{0}",
        "\u{2003}",
        "x",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..12)
        .prop_map(|words| words.concat())
}

fn is_quota_or_points_at_it(text: &str) {
    match text.parse::<Quota>() {
        Ok(quota) => assert_eq!(quota.to_string().parse(), Ok(quota), "{text:?}"),
        Err(error) => check_error(text, error),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    #[test]
    fn any_text_is_a_quota_or_an_error_in_it(text in any::<String>(), soup in soup()) {
        is_quota_or_points_at_it(&text);
        is_quota_or_points_at_it(&soup);
    }

    #[test]
    fn a_quota_is_read_back_from_its_text(quota in quotas()) {
        let text = quota.to_string();
        prop_assert_eq!(text.parse(), Ok(quota), "{}", text);
    }

    #[test]
    fn a_quota_with_a_mistake_is_an_error_in_it(
        quota in quotas(),
        place in any::<prop::sample::Index>(),
        mistake in any::<char>(),
    ) {
        let mut text: Vec<char> = quota.to_string().chars().collect();
        text.insert(place.index(text.len() + 1), mistake);
        is_quota_or_points_at_it(&text.into_iter().collect::<String>());
    }
}

#[cfg(feature = "serde")]
mod serde {
    use proptest::prelude::*;
    use tollgate::Quota;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

        #[test]
        fn a_quota_is_read_back_from_json(quota in super::quotas()) {
            let json = serde_json::to_string(&quota).expect("a string");
            prop_assert_eq!(&json, &format!("\"{quota}\""));
            let read: Quota = serde_json::from_str(&json).expect("the same quota");
            prop_assert_eq!(read, quota);
        }
    }

    #[test]
    fn what_is_no_quota_is_an_error_that_says_so() {
        let error = |json| {
            serde_json::from_str::<Quota>(json)
                .expect_err(json)
                .to_string()
        };
        let unit = error("\"100/fortnight\"");
        assert!(
            unit.contains("at byte 4: `fortnight` is no unit of time"),
            "{unit}"
        );
        let number = error("100");
        assert!(
            number.contains("a quota such as \"100/s burst 20\""),
            "{number}"
        );
    }
}
