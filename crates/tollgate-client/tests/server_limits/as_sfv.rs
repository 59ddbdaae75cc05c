//! Each list that a parser of structured fields accepts as a whole is read as that whole, although
//! the reader splits it into parts.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use sfv::{BareItem, List, ListEntry, Parser};
use tollgate_client::{ServerLimit, ServerLimits};

use crate::read;

/// Returns what a list says, as its structure is read by `sfv`.
fn expected(list: List) -> Vec<ServerLimit> {
    let mut limits: Vec<ServerLimit> = Vec::new();
    for entry in list {
        let ListEntry::Item(item) = entry else {
            continue;
        };
        let mut limit = ServerLimit::default();
        limit.name = match item.bare_item {
            BareItem::String(name) => name.as_str().to_owned(),
            BareItem::Token(name) => name.as_str().to_owned(),
            _ => continue,
        };
        for (key, value) in item.params {
            let number = match &value {
                BareItem::Integer(number) => u64::try_from(i64::from(*number)).ok(),
                _ => None,
            };
            let seconds = number.map(Duration::from_secs);
            match key.as_str() {
                "q" => limit.quota = number,
                "r" => limit.remaining = number,
                "t" => limit.reset = seconds.map(|wait| wait.min(ServerLimits::MAX_WAIT)),
                "w" => limit.window = seconds.map(|window| window.min(ServerLimits::MAX_WINDOW)),
                "pk" => {
                    if let BareItem::ByteSequence(key) = value {
                        limit.partition = Some(key);
                    }
                }
                _ => {}
            }
        }
        let says = [limit.quota, limit.remaining];
        let times = [limit.reset, limit.window];
        if says == [None; 2] && times == [None; 2] {
            continue;
        }
        limits.push(limit);
    }
    limits
}

/// Returns the limits without those that an earlier one covers, which the reader leaves out.
fn without_repetitions(limits: Vec<ServerLimit>) -> Vec<ServerLimit> {
    fn agrees<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
        one.is_none() || one == other
    }
    let mut kept: Vec<ServerLimit> = Vec::new();
    for limit in limits {
        let is_covered = kept.iter().any(|other| {
            (limit.name.is_empty() || limit.name == other.name)
                && agrees(&limit.quota, &other.quota)
                && agrees(&limit.remaining, &other.remaining)
                && agrees(&limit.reset, &other.reset)
                && agrees(&limit.window, &other.window)
                && agrees(&limit.partition, &other.partition)
        });
        if !is_covered {
            kept.push(limit);
        }
    }
    kept
}

fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(texts).prop_map(str::to_owned)
}

fn item() -> impl Strategy<Value = String> {
    prop_oneof![
        "\"[a-z]{1,2}\"",
        one_of(&[
            "\"b\\\"\"",
            "\"c, d;r=1\"",
            "\"\"",
            "tok",
            "*t:/",
            "\"e\\\\\"",
            "\"say \\\"a, b\\\"\""
        ]),
        one_of(&[
            "(\"a\" b;r=1)",
            "5",
            "-1.5",
            "?0",
            "@0",
            "%\"a%c3%bc\"",
            ":YQ==:",
            "()"
        ]),
    ]
}

fn parameter() -> impl Strategy<Value = String> {
    prop_oneof![
        (one_of(&["q", "r", "t", "w"]), 0..2000_u64).prop_map(|(key, n)| format!(";{key}={n}")),
        one_of(&[
            "; t=3",
            ";q=-1",
            ";w=1.5",
            ";r=?1",
            ";r",
            ";x=\"y;z, r=1\"",
            ";pk=:YQ==:",
            ";pk=:YWI:",
            ";pk=::",
            ";t=@5",
            ";r=999999999999999",
            ";r=tok",
            ";r=\"5\"",
            ";*=1",
            ";a-b.c_d*=1",
            ";pk=x",
            ";pk",
        ]),
    ]
}

/// Text that ends or begins a string, a list or a parameter at the wrong place, mostly.
fn wrong() -> impl Strategy<Value = String> {
    one_of(&[
        " ", ",", ";", "\"", "\\", "=", "(", ")", ":", "R=1", ",\t", "1", "?", "ü",
    ])
}

/// Lists that are well-formed, mostly.
fn list() -> impl Strategy<Value = String> {
    let member = (
        item(),
        vec(parameter(), 0..4),
        proptest::option::weighted(0.1, wrong()),
    )
        .prop_map(|(item, rest, wrong)| item + &rest.concat() + &wrong.unwrap_or_default());
    vec(member, 0..5).prop_map(|members| members.join(", "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 2000 } else { 100_000 }))]

    #[test]
    fn a_list_that_is_well_formed_is_read_as_a_whole(text in list()) {
        if let Ok(list) = Parser::new(&text).parse::<List>() {
            let read = read(&[("ratelimit", &text)]);
            prop_assert_eq!(read.limits, without_repetitions(expected(list)), "{}", text);
        }
    }
}

#[test]
fn many_random_lists_are_well_formed() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut accepted = 0;
    for _ in 0..1000 {
        let text = list().new_tree(&mut runner).expect("text").current();
        let parsed = Parser::new(&text).parse::<List>();
        accepted += usize::from(parsed.is_ok_and(|list| !expected(list).is_empty()));
    }
    assert!(accepted > 300, "{accepted} of 1000");
}
