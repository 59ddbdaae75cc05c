//! What the tests of quotas and of algorithms as text have in common.

use std::fmt::{Debug, Display};
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use tollgate::Quota;

/// A part of a text that is wrong: the part, where it begins, and what is said of it.
pub(crate) type Wrong = (String, usize, String);

/// What an error says is wrong. It must point into the text, and say where.
pub(crate) fn offending(text: &str, span: Range<usize>, error: &impl Display) -> Wrong {
    let part = text.get(span.clone());
    let part = part.unwrap_or_else(|| panic!("{span:?} is no part of {text:?}"));
    let message = error.to_string();
    let start = format!("at byte {}: ", span.start);
    assert!(message.starts_with(&start), "{text:?}: {message}");
    (part.to_owned(), span.start, message)
}

/// A text, the part that is wrong, where it begins, and what the message says.
pub(crate) type Case<'a> = (&'a str, &'a str, usize, &'a str);

pub(crate) fn check_errors(cases: &[Case<'_>], wrong: impl Fn(&str) -> Wrong) {
    for &(text, part, start, why) in cases {
        let (found, at, message) = wrong(text);
        assert_eq!((found.as_str(), at), (part, start), "{text:?}: {message}");
        assert!(message.contains(why), "{text:?}: {message}");
        assert!(message.contains(part), "{text:?}: {message}");
    }
}

/// A number of so many bits fewer than 64.
fn number(fewer: Range<u32>) -> impl Strategy<Value = u64> {
    (any::<u64>(), fewer).prop_map(|(n, fewer)| n >> fewer)
}

/// A length of time that a text can hold.
pub(crate) fn time() -> impl Strategy<Value = Duration> {
    let unit = prop::sample::select(vec![
        1,
        1000,
        1_000_000_000,
        60_000_000_000,
        3_600_000_000_000,
    ]);
    (number(0..64), unit)
        .prop_map(|(count, unit)| Duration::from_nanos(count.checked_mul(unit).unwrap_or(count)))
}

/// Any quota whose period a text can hold, of numbers with so many bits fewer than 64.
pub(crate) fn quota(fewer: Range<u32>) -> impl Strategy<Value = Quota> {
    let option = || prop::option::of(number(fewer.clone()));
    let quota = (number(fewer.clone()), time(), option(), option());
    quota.prop_map(|(n, period, burst, initial)| {
        let quota = Quota::per(n, period);
        let quota = burst.map_or(quota, |burst| quota.burst(burst));
        initial.map_or(quota, |initial| quota.initial(initial))
    })
}

/// Words of a language in any order, with `space` in between or nothing.
pub(crate) fn soup(words: Vec<&'static str>, space: &'static str) -> impl Strategy<Value = String> {
    let space = prop::sample::select(vec![space, space, space, ""]);
    let word = (prop::sample::select(words), space);
    prop::collection::vec(word, 0..12).prop_map(|words| {
        words
            .into_iter()
            .flat_map(|(word, space)| [word, space])
            .collect()
    })
}

/// The same text with a character more somewhere.
pub(crate) fn with_a_mistake(text: &impl Display, place: Index, mistake: char) -> String {
    let mut text: Vec<char> = text.to_string().chars().collect();
    text.insert(place.index(text.len() + 1), mistake);
    text.into_iter().collect()
}

/// What is read from a text is read again from how it is written.
pub(crate) fn is_read_back<T>(value: &T)
where
    T: Display + FromStr<Err: Debug + PartialEq> + Debug + PartialEq,
{
    let text = value.to_string();
    assert_eq!(text.parse().as_ref(), Ok(value), "{text}");
}

#[cfg(feature = "serde")]
pub(crate) mod serde {
    use std::fmt::{Debug, Display};

    use ::serde::Serialize;
    use ::serde::de::DeserializeOwned;

    /// In JSON it is its text.
    pub(crate) fn is_its_text<T>(value: &T)
    where
        T: Display + Debug + PartialEq + Serialize + DeserializeOwned,
    {
        let json = serde_json::to_string(value).expect("a string");
        assert_eq!(json, format!("\"{value}\""));
        let read: T = serde_json::from_str(&json).expect("the same");
        assert_eq!(read, *value);
    }

    /// What is said of a JSON that is none.
    pub(crate) fn error<T: Debug + DeserializeOwned>(json: &str) -> String {
        serde_json::from_str::<T>(json).expect_err(json).to_string()
    }
}
