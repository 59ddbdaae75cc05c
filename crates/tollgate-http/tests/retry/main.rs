//! Random states of real limits: a retry at `Retry-After` is granted, `Retry-After` is no earlier
//! than any `t`, and the `t` of a grant is when the limit is whole.

mod compositions;
mod limiters;
#[cfg(feature = "policy")]
mod policies;
#[path = "../../../../tests/support/random.rs"]
mod random;

use std::time::Duration;

use http::HeaderMap;
use sfv::{BareItem, List, ListEntry, Parser};
use tollgate::{AnyAlgorithm, ManualClock};
use tollgate_http::{Answers, Cause, Fields, LimitState, Refusal};

use crate::random::Random;

/// How many answers each test checks.
const ANSWERS: u64 = if cfg!(debug_assertions) {
    20_000
} else {
    1_000_000
};

/// How many requests one limit gets.
const REQUESTS: u64 = 200;

/// A random algorithm with its text. Its clock begins at zero.
fn algorithm(random: &mut Random) -> (String, AnyAlgorithm) {
    let n = 1 + random.skewed(60);
    let period = ["1s", "7s", "1min", "1h", "100ms", "3s", "1d", "1234567ns"];
    let period = period[random.below(8) as usize];
    let burst = 1 + random.skewed(2 * n);
    let text = match random.below(8) {
        0 => format!("gcra {n}/{period}"),
        1 => format!("fixed-window {n}/{period}"),
        2 => format!("fixed-window {n}/{period} first-hit"),
        3 => format!("sliding-window {n}/{period}"),
        4 => format!("intervals {n}/{period} burst {burst}"),
        5 => format!("leaky-meter {n}/{period} burst {burst}"),
        6 => format!("sliding-window {n}/{period} rounding down"),
        _ => format!("token-bucket {n}/{period} burst {burst}"),
    };
    let algorithm = text
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    (text, algorithm)
}

/// Moves a clock on: not at all, or by as much as may matter for a limit.
fn advance(clock: &ManualClock, random: &mut Random, period: Duration) {
    let most = u64::try_from(period.as_nanos()).expect("a short period");
    let step = match random.below(4) {
        0 | 1 => 0,
        2 => random.upto(most / 8),
        _ => random.upto(3 * most),
    };
    clock.advance(Duration::from_nanos(step));
}

/// The `t` of each limit, as `RateLimit` says it.
fn times(headers: &HeaderMap) -> Vec<Option<u64>> {
    let text = headers["ratelimit"].to_str().expect("visible text");
    let list: List = Parser::new(text)
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let time = |entry| {
        let ListEntry::Item(item) = entry else {
            panic!("{text}");
        };
        match item.params.get("t") {
            Some(BareItem::Integer(seconds)) => u64::try_from(i64::from(*seconds)).ok(),
            _ => None,
        }
    };
    list.into_iter().map(time).collect()
}

/// Writes the answer to a granted request, and returns the `t` of each limit.
fn granted(limits: &[LimitState<'_>]) -> Vec<Option<u64>> {
    let mut headers = HeaderMap::new();
    let answers = Answers::new().fields(Fields::LIST);
    answers.write(limits.iter().copied(), &mut headers);
    assert!(!headers.contains_key("retry-after"));
    times(&headers)
}

/// Writes the answer to a denied request, and returns `Retry-After`, if there is one.
fn refused(refusal: &Refusal<'_>) -> Option<Duration> {
    let answer = Answers::new().fields(Fields::LIST).refuse(refusal);
    let retry_after = answer.headers().get("retry-after");
    let retry_after = retry_after.map(|value| {
        let text = value.to_str().expect("visible text");
        text.parse::<u64>().expect("seconds")
    });
    let times = times(answer.headers());
    if refusal.cause() == Cause::TooLarge {
        assert_eq!(retry_after, None);
        return None;
    }
    let retry_after = retry_after.unwrap_or_else(|| panic!("{refusal:?} has no wait"));
    assert!(retry_after >= 1);
    for (limit, time) in refusal.asked().iter().zip(times) {
        assert_eq!(time.is_some(), limit.denies(), "{refusal:?}");
        assert!(time.is_none_or(|time| retry_after >= time), "{refusal:?}");
    }
    Some(Duration::from_secs(retry_after))
}
