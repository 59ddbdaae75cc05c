//! What is written is what another parser of structured fields reads.

use std::time::Duration;

use http::HeaderMap;
use proptest::collection::vec;
use proptest::prelude::*;
use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parser};
use tollgate::{Denied, Quota};
use tollgate_http::{Answers, Cause, Fields, LimitState, Refusal, Unit};

use crate::states::grant;
use crate::{NOW, now};

const MOST: u64 = 999_999_999_999_999;

/// A limit and what it says, before it is written.
#[derive(Debug, Clone)]
struct Said {
    name: String,
    quota: Option<(u64, Duration)>,
    burst: u64,
    unit: Unit,
    partition: Option<Vec<u8>>,
    left: u64,
    reset: Option<Duration>,
    denies: bool,
}

impl Said {
    fn state(&self) -> LimitState<'_> {
        let state = match self.quota {
            Some((n, period)) => {
                LimitState::of_rate(&self.name, Quota::per(n, period).burst(self.burst))
            }
            None => LimitState::of_concurrency(&self.name, self.burst),
        };
        let state = match (self.denies, self.reset) {
            (true, Some(wait)) => state.denied(&Denied::later(1, wait), self.left),
            (true, None) => state.denied(&Denied::busy(1), self.left),
            (false, Some(reset)) => state.granted(grant(1, self.left, reset)),
            (false, None) => state.untouched(1, self.left),
        };
        let state = state.unit(self.unit);
        match &self.partition {
            Some(key) => state.partition(key),
            None => state,
        }
    }

    /// The parameters of its policy, as they must be read.
    fn policy(&self) -> Vec<(String, BareItem)> {
        let mut expected = vec![("q".to_owned(), integer(self.state().quota()))];
        let unit = match self.unit {
            Unit::ContentBytes => Some("content-bytes"),
            Unit::ConcurrentRequests => Some("concurrent-requests"),
            _ => None,
        };
        if let Some(unit) = unit {
            let unit = sfv::String::from_string(unit.to_owned()).expect("ASCII");
            expected.push(("qu".to_owned(), BareItem::String(unit)));
        }
        if let Some(window) = self.state().window() {
            expected.push(("w".to_owned(), integer(seconds(window).max(1))));
        }
        self.push_partition(&mut expected);
        expected
    }

    /// The parameters of its state, as they must be read.
    fn left(&self) -> Vec<(String, BareItem)> {
        let mut expected = vec![("r".to_owned(), integer(self.left))];
        if let Some(reset) = self.state().reset() {
            expected.push(("t".to_owned(), integer(seconds(reset))));
        }
        self.push_partition(&mut expected);
        expected
    }

    fn push_partition(&self, expected: &mut Vec<(String, BareItem)>) {
        if let Some(key) = &self.partition {
            expected.push(("pk".to_owned(), BareItem::ByteSequence(key.clone())));
        }
    }
}

fn seconds(time: Duration) -> u64 {
    time.as_secs()
        .saturating_add(u64::from(time.subsec_nanos() > 0))
}

fn integer(number: u64) -> BareItem {
    let number = i64::try_from(number.min(MOST)).expect("it is capped");
    BareItem::Integer(number.try_into().expect("it is capped"))
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..20_u64,
        any::<u64>(),
        Just(MOST),
        Just(MOST + 1),
        Just(u64::MAX)
    ]
}

fn time() -> impl Strategy<Value = Duration> {
    let small = (0..100_u64, 0..1_000_000_000_u32).prop_map(|(s, ns)| Duration::new(s, ns));
    prop_oneof![
        small,
        any::<Duration>(),
        Just(Duration::MAX),
        Just(Duration::ZERO)
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{0,2}",
        "[a-b]-[2-3]",
        "[\"\\\\ ~a]{0,4}",
        any::<String>()
    ]
}

fn said() -> impl Strategy<Value = Said> {
    let unit = prop_oneof![
        Just(Unit::Requests),
        Just(Unit::ContentBytes),
        Just(Unit::ConcurrentRequests)
    ];
    let rate = proptest::option::weighted(0.8, (number(), time()));
    let key = proptest::option::of(vec(any::<u8>(), 0..9));
    let state = (
        number(),
        proptest::option::weighted(0.8, time()),
        any::<bool>(),
    );
    (name(), rate, number(), unit, key, state).prop_map(
        |(name, quota, burst, unit, partition, (left, reset, denies))| Said {
            name,
            quota,
            burst,
            unit,
            partition,
            left,
            reset,
            denies,
        },
    )
}

fn field<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers[name].to_str().expect("visible text")
}

fn list(text: &str) -> Vec<Item> {
    let list: List = Parser::new(text)
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let items = list.into_iter().map(|entry| match entry {
        ListEntry::Item(item) => item,
        ListEntry::InnerList(list) => panic!("{list:?}"),
    });
    items.collect()
}

/// The names of a list, and the parameters of each.
fn named(text: &str) -> (Vec<String>, Vec<Vec<(String, BareItem)>>) {
    let items = list(text).into_iter().map(|item| {
        let BareItem::String(name) = item.bare_item else {
            panic!("{:?}", item.bare_item);
        };
        let params = item.params.into_iter();
        let params = params.map(|(key, value)| (key.to_string(), value));
        (name.as_str().to_owned(), params.collect())
    });
    items.unzip()
}

fn single(text: &str) -> BareItem {
    let item: Item = Parser::new(text)
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    assert!(item.params.is_empty());
    item.bare_item
}

const ALL: Fields = Fields::LIST
    .and(Fields::TRIPLE)
    .and(Fields::X_SECONDS)
    .and(Fields::SPRING);

fn check(said: &[Said], headers: &HeaderMap, tightest: &LimitState<'_>) {
    let (names, policies) = named(field(headers, "ratelimit-policy"));
    let (same, left) = named(field(headers, "ratelimit"));
    assert_eq!(names, same);
    let mut different = names.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), said.len(), "{names:?}");
    for (index, limit) in said.iter().enumerate() {
        let plain: String = limit
            .name
            .chars()
            .take(256)
            .map(|c| if (' '..='~').contains(&c) { c } else { '_' })
            .collect();
        assert!(names[index].starts_with(&plain), "{names:?}");
        assert_eq!(policies[index], limit.policy());
        assert_eq!(left[index], limit.left());
    }
    for prefix in ["", "x-"] {
        let number = |name: &str| single(field(headers, &format!("{prefix}ratelimit-{name}")));
        assert_eq!(number("limit"), integer(tightest.quota()));
        assert_eq!(number("remaining"), integer(tightest.remaining()));
        let reset = headers.get(format!("{prefix}ratelimit-reset"));
        let reset = reset.map(|_| number("reset"));
        assert_eq!(reset, tightest.reset().map(|reset| integer(seconds(reset))));
    }
    for name in ["burst-capacity", "requested-tokens"] {
        single(field(headers, &format!("x-ratelimit-{name}")));
    }
}

/// Returns the limit that fields with one limit must name.
fn tightest(said: &[Said]) -> LimitState<'_> {
    let states = said.iter().map(Said::state);
    let denying: Vec<_> = states.clone().filter(LimitState::denies).collect();
    let waits = denying.iter().filter_map(LimitState::reset);
    let candidates: Vec<_> = match waits.max() {
        Some(wait) => denying
            .iter()
            .copied()
            .filter(|it| it.reset() == Some(wait))
            .collect(),
        None if !denying.is_empty() => denying,
        None => {
            let with_reset: Vec<_> = states.clone().filter(|it| it.reset().is_some()).collect();
            if with_reset.is_empty() {
                states.collect()
            } else {
                with_reset
            }
        }
    };
    let tightest = candidates.into_iter().min_by_key(LimitState::remaining);
    tightest.expect("there are limits")
}

proptest! {
    #[test]
    fn all_fields_say_the_numbers_of_the_limits(said in vec(said(), 1..5)) {
        let limits: Vec<_> = said.iter().map(Said::state).collect();
        let mut headers = HeaderMap::new();
        Answers::new().fields(ALL).write_at(limits.iter().copied(), now(), &mut headers);
        check(&said, &headers, &tightest(&said));
        prop_assert!(!headers.contains_key("retry-after"));
    }

    #[test]
    fn a_refusal_has_the_same_fields_and_a_retry_that_is_late_enough(
        said in vec(said(), 1..5),
        wait in time(),
    ) {
        let limits: Vec<_> = said.iter().map(Said::state).collect();
        let refusal = Refusal::new(Cause::Limit).retry_after(wait).limits(&limits);
        let answer = Answers::new().fields(ALL).refuse_at(&refusal, now());
        check(&said, answer.headers(), &tightest(&said));
        let retry: u64 = field(answer.headers(), "retry-after").parse().expect("seconds");
        prop_assert!(retry >= 1 && retry >= seconds(wait).min(MOST));
        for limit in limits.iter().filter(|limit| limit.denies()) {
            prop_assert!(limit.reset().is_none_or(|wait| retry >= seconds(wait).min(MOST)));
        }
    }

    #[test]
    fn draft_07_is_a_dictionary_and_has_a_policy_for_each_quota(said in vec(said(), 1..5)) {
        let limits: Vec<_> = said.iter().map(Said::state).collect();
        let mut headers = HeaderMap::new();
        Answers::new().fields(Fields::DICTIONARY).write_at(limits.iter().copied(), now(), &mut headers);
        let text = field(&headers, "ratelimit");
        let dictionary: Dictionary = Parser::new(text).parse().expect("a dictionary");
        let tightest = tightest(&said);
        let number = |key| match dictionary.get(key) {
            Some(ListEntry::Item(item)) => Some(item.bare_item.clone()),
            _ => None,
        };
        prop_assert_eq!(number("limit"), Some(integer(tightest.quota())));
        prop_assert_eq!(number("remaining"), Some(integer(tightest.remaining())));
        let reset = tightest.reset().map(|reset| integer(seconds(reset)));
        prop_assert_eq!(number("reset"), reset);
        let policies: Vec<_> = headers
            .get("ratelimit-policy")
            .map(|text| list(text.to_str().expect("visible text")))
            .unwrap_or_default();
        // Each rate's quota has one policy, with its longest window.
        let mut expected = std::collections::BTreeMap::new();
        for limit in &limits {
            if let Some(window) = limit.window() {
                let longest = expected.entry(limit.quota().min(MOST)).or_insert(0);
                *longest = seconds(window).clamp(1, MOST).max(*longest);
            }
        }
        prop_assert_eq!(policies.len(), expected.len());
        for policy in policies {
            let BareItem::Integer(quota) = policy.bare_item else {
                panic!("{policy:?}");
            };
            let quota = u64::try_from(i64::from(quota)).expect("it is not negative");
            let window = policy.params.get("w").cloned();
            prop_assert_eq!(window, expected.get(&quota).map(|window| integer(*window)));
        }
    }

    #[test]
    fn a_time_of_day_is_never_too_early(said in said(), ns in 0..1_000_000_000_u32) {
        let now = NOW + Duration::from_nanos(ns.into());
        let limit = said.state();
        let mut headers = HeaderMap::new();
        let answers = Answers::new().fields(Fields::X_EPOCH);
        answers.write_at([limit].into_iter(), std::time::UNIX_EPOCH + now, &mut headers);
        if let Some(reset) = limit.reset() {
            let expected = integer(seconds(now.saturating_add(reset)));
            prop_assert_eq!(single(field(&headers, "x-ratelimit-reset")), expected);
        }
    }
}
