//! Quotas as text. Any text is a quota or an error that points at the offending part, and every
//! quota that has a text is parsed from it again. The shared part of the tests of algorithms as
//! text is here too.

use std::fmt::Display;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::Range;
use std::str::FromStr;

use tollgate::error::ParseAlgorithmError;

use crate::support::*;

/// A quota or an algorithm.
pub(crate) trait Text:
    FromStr<Err: Debug + PartialEq> + Display + Debug + PartialEq
{
    /// Returns where a text is not understood, and the message.
    fn wrong(text: &str) -> Option<(Range<usize>, String)>;
}

impl Text for Quota {
    fn wrong(text: &str) -> Option<(Range<usize>, String)> {
        let error = text.parse::<Self>().err()?;
        Some((error.span(), error.to_string()))
    }
}

impl Text for AnyAlgorithm {
    fn wrong(text: &str) -> Option<(Range<usize>, String)> {
        match text.parse::<Self>() {
            Err(error @ ParseAlgorithmError::Text(inner)) => {
                Some((inner.span(), error.to_string()))
            }
            _ => None,
        }
    }
}

/// Checks texts in which `<` and `>` mark the wrong part, each with `=>` and its message.
pub(crate) fn check_errors<T: Text>(cases: &[&str]) {
    for case in cases {
        let (text, why) = case.split_once(" => ").expect(case);
        let (before, rest) = text.split_once('<').expect("a mark");
        let (part, after) = rest.split_once('>').expect("a mark");
        let span = before.len()..before.len() + part.len();
        let (found, message) = T::wrong(&format!("{before}{part}{after}")).expect(text);
        assert_eq!(found, span, "{text:?}: {message}");
        let start = format!("at byte {}: ", span.start);
        assert!(
            message.starts_with(&start) && message.contains(part),
            "{text:?}: {message}"
        );
        assert!(message.contains(why), "{text:?}: {message}");
    }
}

/// Checks that a value parsed from a text is parsed again from its own text, and that an error
/// points into the text.
pub(crate) fn is_read_or_points_at_it<T: Text>(text: &str) {
    if let Some((span, message)) = T::wrong(text) {
        assert!(
            text.get(span.clone()).is_some(),
            "{span:?} is no part of {text:?}"
        );
        assert!(
            message.starts_with(&format!("at byte {}: ", span.start)),
            "{message}"
        );
    } else if let Ok(value) = text.parse::<T>() {
        is_read_back(&value);
    }
}

pub(crate) fn is_read_back<T: Text>(value: &T) {
    let text = value.to_string();
    assert_eq!(text.parse().as_ref(), Ok(value), "{text}");
}

/// Checks random texts, words of the language in any order, valid texts, and valid texts with an
/// extra character, `n` times.
pub(crate) fn check_any<T: Text>(
    times: u64,
    random: &mut Random,
    soup: impl Fn(&mut Random) -> String,
    any: impl Fn(&mut Random) -> T,
) {
    for _ in 0..times {
        let value = any(random);
        is_read_back(&value);
        let mut text: Vec<char> = value.to_string().chars().collect();
        text.insert(
            random.below(text.len() as u64 + 1) as usize,
            any_char(random),
        );
        is_read_or_points_at_it::<T>(&text.into_iter().collect::<String>());
        is_read_or_points_at_it::<T>(&soup(random));
        let text: String = (0..random.below(30)).map(|_| any_char(random)).collect();
        is_read_or_points_at_it::<T>(&text);
    }
}

fn any_char(random: &mut Random) -> char {
    char::from_u32(random.upto(0x0010_ffff) as u32).unwrap_or('/')
}

/// Returns up to a number of these words, joined with `space` or nothing.
pub(crate) fn soup(words: &[&str], space: &str, random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..random.below(12) {
        text += words[random.below(words.len() as u64) as usize];
        text += if random.one_in(4) { "" } else { space };
    }
    text
}

/// Returns a random duration that a text can express.
pub(crate) fn any_time(random: &mut Random) -> Duration {
    let units = [1, 1000, 1_000_000_000, 60_000_000_000, 3_600_000_000_000];
    let (count, unit) = (random.upto(u64::MAX), units[random.below(5) as usize]);
    Duration::from_nanos(count.checked_mul(unit).unwrap_or(count))
}

/// Returns a random quota whose period a text can express, with numbers up to `most`.
pub(crate) fn any_quota(most: u64, random: &mut Random) -> Quota {
    let mut quota = Quota::per(random.upto(most), any_time(random));
    if random.one_in(2) {
        quota = quota.burst(random.upto(most));
    }
    if random.one_in(2) {
        quota = quota.initial(random.upto(most));
    }
    quota
}

#[test]
fn errors_point_at_the_offending_part() {
    check_errors::<Quota>(&[
        "<> => the text ends where a number is expected for n,",
        "   <> => the text ends where a number is expected",
        "<many/s> => where a number is expected",
        "<k/s> => where a number is expected",
        "<-1/s> => where a number is expected",
        "<٣/s> => where a number is expected",
        "<_1/s> => where a number is expected",
        "<18446744073709551616>/s => is too large",
        "<18446744073709552k>/s => is too large for n",
        "1/s burst <20_000_000_000 GiB> => is too large for burst",
        "10<> => the text ends where a `/` or `per` is expected",
        "10 <every> s => where a `/` or `per` is expected",
        "10 <pers> => where a `/` or `per` is expected",
        "1<.5/s> => `100/s`; numbers are whole: write 1.5/s as `3/2s`",
        "1<./s> => where a `/` or `per` is expected, as in `100/s`",
        "10<K>/s => Gi, and B if bytes are counted; did you mean `k`?",
        "5<Mb>/s => did you mean `M`?",
        "5 <KB/s> => where a `/` or `per` is expected",
        "5<mper>/s => is not a multiplier",
        "5<BB> per s => is not a multiplier",
        "5<Mk>/s => is not a multiplier",
        "5/s burst 5<K> initial 3 => is not a multiplier",
        "5/s initial 5_<x> => is not a multiplier",
        "10 per <> => ends where a unit of time is expected",
        "10 per <Minute> => or d; did you mean `min`?",
        "10/2<k> => is not a unit of time",
        "10/2<Mi> s => is not a unit of time",
        "10/<> => ends where a unit of time is expected",
        "10/250<> => ends where a unit of time is expected",
        "10/<-5s> => where a unit of time is expected",
        "10/1<.5s> => or d; numbers are whole: write 1.5s as `1500ms`",
        "10/<S> => is not a unit of time: write ns, us, ms, s, min, h or d; did you mean `s`?",
        "10/<M> => did you mean `min`?",
        "10/2 <weeks> => or d; write a week as `7d`",
        "10/<Month> => or d; write a month as `30d`",
        "10/<sburst> 5 => is not a unit of time",
        "1/<99999999999d> => is too long",
        "1/<18446744073709551616>ns => is too large for period",
        "10/s <20> => is not an option here",
        "10/s <bursts> 20 => is not an option here",
        "10/s<,> burst 20 => is not an option here",
        "10/s burst<> => the text ends where a number is expected",
        "10/s burst <-3> => where a number is expected for burst,",
        "10/s initial <-3> => where a number is expected for initial,",
        "10/s burst <x> initial 3 => where a number is expected",
        "10/s burst 5 <burst> 6 => is given twice",
        "10/s initial 5 <initial> 6 => is given twice",
        "10/s burst 5 <🦀🦀> 6 => is not an option here",
    ]);
}

#[test]
fn a_long_part_is_shortened_and_its_control_characters_are_replaced() {
    let long = "é".repeat(1000);
    for (text, shown) in [
        (long.as_str(), "é".repeat(12) + "..."),
        ("\u{7}x", "\u{fffd}x".into()),
    ] {
        let (span, message) = Quota::wrong(text).expect("no quota");
        assert_eq!(span, 0..text.len());
        assert!(message.contains(&format!("`{shown}`")), "{message}");
    }
}

#[test]
fn texts_mean_what_they_say() {
    let ms = |n, count| Quota::per(n, Duration::from_millis(count));
    let cases = [
        ("100/s burst 20", Quota::per_second(100).burst(20)),
        ("5000/h", Quota::per_hour(5000)),
        ("10/250ms", ms(10, 250)),
        ("1/min initial 0", Quota::per_minute(1).initial(0)),
        ("1/2min", ms(1, 120_000)),
        ("2/3us", Quota::per(2, Duration::from_micros(3))),
        ("0/0ns", Quota::per(0, Duration::ZERO)),
        ("1000/s burst 10", Quota::per_second(1000).burst(10)),
        (
            "7/h burst 9 initial 3",
            Quota::per_hour(7).burst(9).initial(3),
        ),
        ("1/90s", ms(1, 90_000)),
        ("2/d", Quota::per_day(2)),
    ];
    for (text, quota) in cases {
        let actual = (text.parse(), quota.to_string());
        assert_eq!(actual, (Ok(quota), text.to_owned()));
    }
    let others = [
        "1/120s => 1/2min",
        "2/3µs => 2/3us",
        "0/0s => 0/0ns",
        " 1_000 / 1 sec\tburst 1_0  => 1000/s burst 10",
        "7/hour initial 3 burst 9 => 7/h burst 9 initial 3",
        "2/day burst 2 initial 2 => 2/d",
        "100/second => 100/s",
        "100 per minute => 100/min",
        "100per\u{2003}5minutes => 100/5min",
        "1 per 2 minutes => 1/2min",
        "5MB/s => 5000000/s",
        "10k/h => 10000/h",
        "10k/h burst 3k initial 1Ki => 10000/h burst 3000 initial 1024",
        "2G/s burst 1_0 GiB => 2000000000/s burst 10737418240",
        "7 B per hr => 7/h",
        "1kB/s burst 1KiB => 1000/s burst 1024",
        "3MiB/mins burst 3M => 3145728/min burst 3000000",
        // The spelling from before multiples existed.
        "5/s burst 6initial 3 => 5/s burst 6 initial 3",
    ];
    let hash = |quota: Quota| BuildHasherDefault::<DefaultHasher>::default().hash_one(quota);
    for (text, written) in others.map(|other| other.split_once(" => ").expect(other)) {
        let [read, same] = [text, written].map(|text| text.parse::<Quota>().expect(text));
        assert_eq!((read, hash(read)), (same, hash(same)), "{text}");
        let actual = text.parse::<Quota>().map(|quota| quota.to_string());
        assert_eq!(actual, Ok(written.into()));
    }
}

#[test]
fn a_period_that_text_can_not_express_is_an_error_and_not_a_panic() {
    for period in [
        Duration::from_nanos(u64::MAX) + Duration::from_nanos(1),
        Duration::MAX,
    ] {
        assert!(Quota::wrong(&Quota::per(1, period).to_string()).is_some());
    }
}

#[test]
fn any_text_parses_as_a_quota_or_an_error_with_its_position() {
    let words = "0 1 18446744073709551615 99999999999999999999 7_ _7 / \t s ns µs min d day burst \
                 initial - . 🦀 \u{0} \u{2003} x per minutes k M Gi B KiB Mb";
    let words: Vec<_> = words.split(' ').chain([" "]).collect();
    let soup = |random: &mut Random| soup(&words, "", random);
    let any = |random: &mut Random| any_quota(u64::MAX, random);
    check_any(4000, &mut Random(0x0070_11a7_e501), soup, any);
}

#[cfg(feature = "serde")]
#[test]
fn a_limit_in_json_is_its_text() {
    use serde::{Serialize, de::DeserializeOwned};

    fn check<T: Text + Serialize + DeserializeOwned>(value: &T) {
        let json = serde_json::to_string(value).expect("a string");
        assert_eq!(json, format!("\"{value}\""));
        assert_eq!(&serde_json::from_str::<T>(&json).expect("the same"), value);
    }
    fn error<T: Text + DeserializeOwned>(json: &str) -> String {
        serde_json::from_str::<T>(json).expect_err(json).to_string()
    }

    let mut random = Random(0x0070_11a7_e502);
    for _ in 0..300 {
        check(&any_quota(u64::MAX, &mut random));
        check(&crate::algorithm::text::any_algorithm(&mut random));
    }
    let errors = [
        (
            error::<Quota>("\"100/fortnight\""),
            "at byte 4: `fortnight` is not a unit of time",
        ),
        (error::<Quota>("100"), "a quota such as \"100/s burst 20\""),
        (
            error::<AnyAlgorithm>("\"bucket 5/s\""),
            "at byte 0: `bucket` is not an algorithm",
        ),
        (
            error::<AnyAlgorithm>("\"fixed-window 5/s burst 6\""),
            "but a window of 5 permits",
        ),
        (
            error::<AnyAlgorithm>("100"),
            "an algorithm such as \"gcra 100/s burst 20\"",
        ),
    ];
    for (error, says) in errors {
        assert!(error.contains(says), "{error}");
    }
}

/// Tests every unit and every multiple, alone and together, against values that are computed
/// differently.
#[test]
fn every_unit_and_multiple_means_what_the_table_says() {
    let units = [
        ("ns nsec nanosecond nanoseconds", 1),
        ("us µs μs usec microsecond microseconds", 1000),
        ("ms msec millisecond milliseconds", 1_000_000),
        ("s sec secs second seconds", 1_000_000_000),
        ("m min mins minute minutes", 60_000_000_000),
        ("h hr hrs hour hours", 3_600_000_000_000),
        ("d day days", 86_400_000_000_000),
    ];
    let multiples = [
        ("", 1),
        ("k", 1000),
        ("M", 1000 * 1000),
        ("G", 1000 * 1000 * 1000),
        ("Ki", 1024),
        ("Mi", 1024 * 1024),
        ("Gi", 1024 * 1024 * 1024),
    ];
    let names = units.map(|(names, ns)| names.split(' ').map(move |name| (name, ns)));
    for (unit, ns) in names.into_iter().flatten() {
        for (multiple, times) in multiples {
            for bytes in ["", "B"] {
                let quota = Quota::per(7 * times, Duration::from_nanos(3 * ns));
                let quota = quota.burst(5 * times);
                let number = |n: u64| format!("{n}{multiple}{bytes}");
                let (rate, burst) = (number(7), number(5));
                for text in [
                    format!("{rate}/3{unit} burst {burst}"),
                    format!("{rate} per 3 {unit}\tburst {burst} "),
                ] {
                    assert_eq!(text.parse(), Ok(quota), "{text}");
                }
                is_read_back(&quota);
            }
        }
    }
}

/// A number of any length with any multiple parses as the product, or is too large.
#[test]
fn a_number_with_a_multiple_never_wraps() {
    let mut random = Random(0x0070_11a7_e503);
    let multiples = [("k", 1000), ("Gi", 1 << 30), ("MB", 1_000_000)];
    let (mut read, mut refused) = (0, 0);
    for _ in 0..3000 {
        let n = random.upto(u64::MAX);
        for (name, times) in multiples {
            let text = format!("{n}{name}/s");
            match (text.parse::<Quota>(), n.checked_mul(times)) {
                (Ok(quota), Some(product)) => {
                    assert_eq!(quota.permits(), product, "{text}");
                    read += 1;
                }
                (Err(error), None) => {
                    assert_eq!(error.span(), 0..text.len() - 2, "{text}");
                    refused += 1;
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }
    assert!(read > 100 && refused > 100, "{read} and {refused}");
}

/// `main` prints the `Debug` of an error that `?` returns. That of a text says what to write.
#[test]
fn the_debug_of_an_error_of_a_text_is_its_display() {
    fn same<E: std::error::Error>(error: &E, says: &str) {
        let expected = (says.into(), says.into());
        assert_eq!((format!("{error:?}"), error.to_string()), expected);
    }
    let error = "10/x".parse::<Quota>().expect_err("no unit");
    let says = "at byte 3: `x` is not a unit of time: write ns, us, ms, s, min, h or d";
    same(&error, says);
    same(&ParseAlgorithmError::Text(error), says);
    let error = TokenBucket::new(Quota::per_second(0)).expect_err("no permits");
    let says = "n is 0, but must be at least 1 permit";
    same(&ParseAlgorithmError::Quota(error), says);
}
