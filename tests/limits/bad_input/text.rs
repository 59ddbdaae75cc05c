//! Quotas as text: any text at all is a quota or an error that points at the offending part, and
//! every quota that has a text is read back from it.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use tollgate::Quota;

use crate::bad_input::texts::{Wrong, check_errors, is_read_back, offending, quota, soup, with_a_mistake};

fn wrong(text: &str) -> Wrong {
    let error = text.parse::<Quota>().expect_err(text);
    offending(text, error.span(), &error)
}

#[test]
fn errors_point_at_the_offending_part() {
    let cases = [
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
    check_errors(&cases, wrong);
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

/// Words of the language in any order.
fn any_words() -> impl Strategy<Value = String> {
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
    soup(words.to_vec(), "")
}

fn is_quota_or_points_at_it(text: &str) {
    match text.parse::<Quota>() {
        Ok(quota) => is_read_back(&quota),
        Err(error) => {
            offending(text, error.span(), &error);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    #[test]
    fn any_text_is_a_quota_or_an_error_in_it(text in any::<String>(), soup in any_words()) {
        is_quota_or_points_at_it(&text);
        is_quota_or_points_at_it(&soup);
    }

    #[test]
    fn a_quota_is_read_back_from_its_text(quota in quota(0..64)) {
        is_read_back(&quota);
    }

    #[test]
    fn a_quota_with_a_mistake_is_an_error_in_it(
        quota in quota(0..64),
        place in any::<Index>(),
        mistake in any::<char>(),
    ) {
        is_quota_or_points_at_it(&with_a_mistake(&quota, place, mistake));
    }
}

#[cfg(feature = "serde")]
mod serde {
    use proptest::prelude::*;
    use tollgate::Quota;

    use crate::bad_input::texts::serde::{error, is_its_text};

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

        #[test]
        fn a_quota_is_read_back_from_json(quota in super::quota(0..64)) {
            is_its_text(&quota);
        }
    }

    #[test]
    fn what_is_no_quota_is_an_error_that_says_so() {
        let unit = error::<Quota>("\"100/fortnight\"");
        assert!(
            unit.contains("at byte 4: `fortnight` is no unit of time"),
            "{unit}"
        );
        let number = error::<Quota>("100");
        assert!(
            number.contains("a quota such as \"100/s burst 20\""),
            "{number}"
        );
    }
}
