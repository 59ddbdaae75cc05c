//! How many lists of rules a request is looked for in.

use super::{Lists, Matcher, Places, Request};
use crate::facts::{FactName, Facts};
use crate::when::{Condition, Pattern, Test, When};

/// How many lists of rules a request has.
fn lists(matcher: &Matcher, facts: &impl Facts) -> usize {
    let mut places = Places::new();
    let request = Request::new(&matcher.facts, facts, &mut places);
    let mut lists = Lists::new();
    matcher.push_lists(&request, &mut lists);
    lists.len()
}

/// For each rule that is found, all lists are looked at. So a client must not make more of them by
/// values that lead to the same rules.
#[test]
fn equal_lists_are_one() {
    let name = FactName::new("header:x-tenant");
    let glob = |text| Test::OneOf(vec![Pattern::parse(&name, text).unwrap()]);
    let tests = [Test::Present, glob("t*"), glob("*x"), glob("t7x")];
    let rules = tests.map(|test| When {
        all: vec![Condition {
            fact: name.clone(),
            test,
        }],
        ..When::default()
    });
    let matcher = Matcher::new(rules.iter().map(Some));
    let values: Vec<_> = (0..200).map(|number| format!("t{number}x")).collect();
    let one = [("header:x-tenant", values[7].as_str())];
    assert_eq!(lists(&matcher, &one), 4);
    let all: Vec<_> = values
        .iter()
        .map(|value| ("header:x-tenant", value.as_str()))
        .collect();
    assert_eq!(lists(&matcher, &all), 4);
}
