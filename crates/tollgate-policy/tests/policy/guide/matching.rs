//! The rules that match a request: found by the crate's reading and index, and by the model.

use std::ops::ControlFlow;

use tollgate_policy::file::{Applies, PolicyFile};
use tollgate_policy::when::{Matcher, When};

use crate::guide::document::examples;
use crate::guide::lines::{Line, Pairs, read};
use crate::guide::model::Model;
use crate::guide::random_policies;
use crate::random::Random;

/// The conditions of all entries and rules, with their names.
fn conditions(file: &PolicyFile) -> Vec<(&str, Option<&When>)> {
    let entries = file.deny.iter().chain(&file.allow);
    let entries = entries.map(|entry| (entry.name.as_str(), Some(&entry.when)));
    let rules = file.rules.iter().filter_map(|rule| match &rule.when.value {
        Applies::Always => Some((rule.name.as_str(), None)),
        Applies::Never => None,
        Applies::When(when) => Some((rule.name.as_str(), Some(when))),
    });
    entries.chain(rules).collect()
}

/// Compares who matches each request. Returns how many matches there were.
fn compare(policy: &str, requests: &[Pairs]) -> usize {
    let file = PolicyFile::from_toml(policy).unwrap_or_else(|error| panic!("{error}\n{policy}"));
    let conditions = conditions(&file);
    let matcher = Matcher::new(conditions.iter().map(|(_, when)| *when));
    let model = Model::new(policy);
    let mut matches = 0;
    for facts in requests {
        let mut found = Vec::new();
        let end = matcher.each(facts, |at| {
            found.push(at);
            ControlFlow::<()>::Continue(())
        });
        assert!(end.is_continue());
        let expected = model.matching(facts);
        let names: Vec<_> = found.iter().map(|at| conditions[*at].0).collect();
        let expected_names: Vec<_> = expected.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected_names, "{facts:?}\n{policy}");
        for (at, (_, captures)) in found.iter().zip(&expected) {
            let path = facts.iter().find(|(name, _)| name == "path");
            for (name, value) in captures {
                let (when, (_, path)) = (conditions[*at].1.expect("a path"), path.expect("a path"));
                let captured = when.capture(path, &name["path:".len()..]);
                assert_eq!(captured, Some(value.as_str()), "{facts:?}\n{policy}");
            }
        }
        matches += found.len();
    }
    matches
}

#[test]
fn the_requests_of_the_page_match_as_in_the_model() {
    let (examples, _) = examples();
    let requests = |line: &Line| match line {
        Line::Requests { request, .. } => Some(request.facts.clone()),
        _ => None,
    };
    let all: Vec<_> = examples
        .iter()
        .flat_map(|example| &example.lines)
        .filter_map(|(_, line)| requests(&read(line).ok()??))
        .collect();
    // Each policy gets the requests of all.
    let matches = examples
        .iter()
        .map(|example| compare(&example.policy, &all));
    assert!(matches.sum::<usize>() > 3000);
}

#[test]
fn random_requests_match_as_in_the_model() {
    let random = &mut Random(7);
    let mut matches = 0;
    for _ in 0..1000 {
        let policy = random_policies::policy(random);
        let requests: Vec<_> = (0..20).map(|_| random_policies::request(random)).collect();
        matches += compare(&policy, &requests);
    }
    assert!(matches > 20_000, "{matches}");
}
