//! Resets in the forms that servers write.

use std::time::Duration;

use proptest::prelude::*;

use crate::{NOW, read};

fn reset(value: &str) -> Option<Duration> {
    let said = read(&[("x-ratelimit-reset", value)]);
    said.limits.first().and_then(|limit| limit.reset)
}

fn secs(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

const DAY: u64 = 24 * 3600;

#[test]
fn a_number_is_seconds_or_a_time_by_its_size() {
    for (value, expected) in [
        ("0", secs(0)),
        ("0.25", Some(Duration::from_millis(250))),
        ("86400", secs(DAY)),
        // Capped.
        ("86401", secs(DAY)),
        ("999999999", secs(DAY)),
        // A time in seconds.
        ("1000000000", secs(0)),
        ("1699999999.9", secs(0)),
        ("1700000000", secs(0)),
        ("1700000012", secs(12)),
        ("1700000012.5", Some(Duration::from_millis(12_500))),
        ("99999999999", secs(DAY)),
        // A time in milliseconds.
        ("100000000000", secs(0)),
        ("1700000012500", Some(Duration::from_millis(12_500))),
        ("1700000012500.9", Some(Duration::from_millis(12_500))),
        ("18446744073709551615", secs(DAY)),
        ("99999999999999999999999999", secs(DAY)),
        ("-1", None),
    ] {
        assert_eq!(reset(value), expected, "{value}");
    }
}

#[test]
fn times_with_units_are_added_up() {
    for (value, expected) in [
        ("0s", secs(0)),
        ("7.66s", Some(Duration::from_millis(7660))),
        ("1h2m3.5s", Some(Duration::from_millis(3_723_500))),
        ("6m0s", secs(360)),
        ("20ms", Some(Duration::from_millis(20))),
        ("5us", Some(Duration::from_micros(5))),
        ("5ns", Some(Duration::from_nanos(5))),
        ("24h1s", secs(DAY)),
        ("99999999999999999999h", secs(DAY)),
        ("99999999999999999999ms", secs(DAY)),
        ("1d", None),
        ("1m2", None),
        ("m", None),
        ("1..5s", None),
        ("1 s", None),
    ] {
        assert_eq!(reset(value), expected, "{value}");
    }
}

#[test]
fn a_time_of_rfc_3339_may_lack_its_seconds() {
    for (value, expected) in [
        ("2023-11-14T22:14:20Z", secs(60)),
        ("2023-11-14t22:14:20z", secs(60)),
        ("2023-11-14 22:14:20Z", secs(60)),
        ("2023-11-14T22:15Z", secs(100)),
        (
            "2023-11-14T22:14:20.250Z",
            Some(Duration::from_millis(60_250)),
        ),
        (
            "2023-11-14T22:14:20.2500000001Z",
            Some(Duration::from_millis(60_250)),
        ),
        ("2023-11-15T00:14:20+02:00", secs(60)),
        ("2023-11-14T17:44:20-04:30", secs(60)),
        ("2023-11-14T22:13:60Z", secs(40)),
        ("2024-02-29T00:00:00Z", secs(DAY)),
        ("9999-12-31T23:59:59Z", secs(DAY)),
        ("1970-01-01T00:00:00Z", secs(0)),
        ("1970-01-01T00:00:00+23:59", None),
        ("1969-12-31T23:59:59Z", None),
        ("2023-11-14", None),
        ("2023-11-14T22:14:20", None),
        ("2023-13-14T22:14:20Z", None),
        ("2023-00-14T22:14:20Z", None),
        ("2023-11-32T22:14:20Z", None),
        ("2023-11-14T24:14:20Z", None),
        ("2023-11-14T22:60:20Z", None),
        ("2023-11-14T22:14:61Z", None),
        ("2023-11-14T22:14:20ZZ", None),
        ("2023-11-14T22:14:20+0100", None),
        ("23-11-14T22:14:20Z", None),
        ("2023-11-14T22:14:20ü", None),
    ] {
        assert_eq!(reset(value), expected, "{value}");
    }
}

#[test]
fn the_time_until_the_reset_goes_first() {
    for fields in [
        [("x-ratelimit-reset-after", "7"), ("x-ratelimit-reset", "9")],
        [("x-ratelimit-reset", "9"), ("x-ratelimit-reset-after", "7")],
    ] {
        assert_eq!(read(&fields).limits[0].reset, secs(7));
    }
    // It is no time of day, however large.
    let said = read(&[("x-ratelimit-reset-after", "1700000001")]);
    assert_eq!(said.limits[0].reset, secs(DAY));
}

#[test]
fn the_date_of_the_answer_is_its_clock() {
    let date = ("date", "Tue, 14 Nov 2023 22:13:00 GMT");
    let said = read(&[date, ("x-ratelimit-reset", "1700000000")]);
    assert_eq!(said.limits[0].reset, secs(20));
    let said = read(&[date, ("retry-after", "Tue, 14 Nov 2023 22:13:05 GMT")]);
    assert_eq!(said.retry_after, secs(5));
    let said = read(&[("date", "today"), ("x-ratelimit-reset", "1700000012")]);
    assert_eq!(said.limits[0].reset, secs(12));
}

proptest! {
    #[test]
    fn a_time_of_rfc_3339_is_that_of_the_date_of_http(offset in 0..DAY, day in 0_u64..800_000) {
        // Any day from 1970 on. The answer has a date, or the wait for a later day would be capped.
        let time = std::time::UNIX_EPOCH + Duration::from_secs(day * DAY + offset);
        let date = httpdate::fmt_http_date(time);
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];
        let parts: Vec<_> = date.split(' ').collect();
        let month = months.iter().position(|name| *name == parts[2]).expect("a month") + 1;
        let stamp = format!("{}-{month:02}-{}T{}Z", parts[3], parts[1], parts[4]);
        let before = httpdate::fmt_http_date(time.checked_sub(Duration::from_secs(9)).unwrap_or(time));
        let said = read(&[("date", &before), ("x-ratelimit-reset", &stamp)]);
        let wait = if day == 0 && offset < 9 { 0 } else { 9 };
        prop_assert_eq!(said.limits[0].reset, secs(wait), "{}", stamp);
    }

    #[test]
    fn a_time_since_1970_is_the_seconds_until_it(wait in 0..DAY) {
        prop_assert_eq!(reset(&(NOW + wait).to_string()), secs(wait));
        prop_assert_eq!(reset(&((NOW + wait) * 1000).to_string()), secs(wait));
        prop_assert_eq!(reset(&wait.to_string()), secs(wait));
    }
}
